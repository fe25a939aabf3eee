"""Title and text of a passage as tokens that know their characters, cut into windows."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int32
from tokenizers import Tokenizer as Backend

# A sentence may end here; only windows depend on it, so that a mistake does no harm.
SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]]*(?=\s|\Z)|\n")


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """`[CLS] title [SEP] text [SEP]`, one row for the encoder.

    `spans` are the characters of each token in `title + "\\n" + text` (also for an empty title),
    (0, 0) for special tokens. A word begins at tokens where `begins` is True and ends where `ends`
    is; both are False at special tokens. Tokens before `title_end` belong to the title.
    """

    ids: Int32[np.ndarray, " length"]
    spans: Int32[np.ndarray, "length 2"]
    begins: Bool[np.ndarray, " length"]
    ends: Bool[np.ndarray, " length"]
    title_end: int

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last token of the whole words that characters [start, end) touch, if any."""
        inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        places = np.flatnonzero(inside)
        if not len(places):
            return None
        first, last = int(places[0]), int(places[-1])
        while first > 0 and not self.begins[first]:
            first -= 1
        while last < len(self.ids) - 1 and not self.ends[last]:
            last += 1
        is_split = first < self.title_end <= last
        return None if is_split else (first, last)


class PassageTokenizer:
    """Makes `PassageTokens` with the tokenizer.json of a BERT-like model."""

    def __init__(self, folder: Path | str):
        """Reads the folder's tokenizer.json.

        Raises:
            FileNotFoundError: the folder has none.
        """
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; the tagger needs a tokenizer.json")
        self._backend = Backend.from_file(str(path))
        self._backend.no_truncation()
        self._backend.no_padding()

    def windows(
        self, title: str, text: str, max_length: int = 256, max_title: int = 48
    ) -> list[PassageTokens]:
        """The passage in windows of at most `max_length` tokens, each with the title before it.

        Windows are made of whole sentences, and each begins with the last sentence of the one
        before, where it fits. A sentence that is too long is cut. A title is cut after `max_title`
        tokens. An empty text gives no window.
        """
        # A pair in one call: offsets of both, and the special tokens where the model wants them.
        first = self._backend.encode(title, add_special_tokens=False)
        second = self._backend.encode(text, add_special_tokens=False)
        if not second.ids:
            return []
        frame = self._backend.encode("", "", add_special_tokens=True).ids
        shift = len(title) + 1
        head = _Part(first.ids, first.offsets, first.word_ids, 0).cut(0, max_title)
        body = _Part(second.ids, second.offsets, second.word_ids, shift)
        room = max_length - len(head.ids) - len(frame)
        return [
            _join(head, body.cut(start, end), frame)
            for start, end in _ranges(text, second.offsets, room)
        ]


@dataclass(frozen=True, slots=True)
class _Part:
    """The tokens of the title or of the text, with the place of their first character."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    words: list[int | None]
    shift: int

    def cut(self, start: int, end: int) -> "_Part":
        return _Part(
            self.ids[start:end], self.offsets[start:end], self.words[start:end], self.shift
        )


def _join(head: _Part, body: _Part, frame: list[int]) -> PassageTokens:
    """[CLS] head [SEP] body [SEP]; `frame` has the ids of the three."""
    opening, middle, closing = frame if len(frame) == 3 else (frame[0], frame[1], frame[-1])
    ids = [opening, *head.ids, middle, *body.ids, closing]
    spans = np.zeros((len(ids), 2), np.int32)
    begins, ends = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
    place = 1
    for part in (head, body):
        stop = place + len(part.ids)
        if part.ids:
            spans[place:stop] = np.asarray(part.offsets, np.int32) + part.shift
            words = np.asarray(part.words)
            changes = words[1:] != words[:-1]
            begins[place:stop] = np.concatenate([[True], changes])
            ends[place:stop] = np.concatenate([changes, [True]])
        place = stop + 1
    return PassageTokens(np.asarray(ids, np.int32), spans, begins, ends, len(head.ids) + 1)


def _ranges(text: str, offsets: list[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """Token ranges [start, end) of at most `room` tokens, by sentences, with one in common."""
    count = len(offsets)
    if count <= room:
        return [(0, count)]
    borders = [0]
    stops = [match.end() for match in SENTENCE_END.finditer(text)]
    for stop in [*stops, len(text)]:
        place = borders[-1]
        while place < count and offsets[place][1] <= stop:
            place += 1
        while place - borders[-1] > room:
            borders.append(borders[-1] + room)
        if place > borders[-1]:
            borders.append(place)
    if borders[-1] < count:
        borders.append(count)
    ranges = []
    first = 0
    while first < len(borders) - 1:
        last = first + 1
        while last + 1 < len(borders) and borders[last + 1] - borders[first] <= room:
            last += 1
        ranges.append((borders[first], borders[last]))
        if last == len(borders) - 1:
            break
        # The last sentence once more, if the next one then fits beside it and there is progress.
        repeats = last - 1 > first and borders[last + 1] - borders[last - 1] <= room
        first = last - 1 if repeats else last
    return ranges
