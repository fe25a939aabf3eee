"""Rows for a reader: a query and a passage as token ids, the passage in windows if it is long."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triax.models.tokenizer import Tokenizer

Offsets = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Window:
    """`[CLS] query [SEP] part of a passage [SEP]`.

    `first` is the place of the passage's first token in `ids`; token `first + n` covers the
    characters `offsets[n]` of the passage.
    """

    ids: list[int]
    first: int
    offsets: Offsets

    @property
    def length(self) -> int:
        """Tokens of the row."""
        return len(self.ids)

    def characters(self, start: int, end: int) -> tuple[int, int]:
        """The characters [from, to) of the passage under the places start to end, both in."""
        return self.offsets[start - self.first][0], self.offsets[end - self.first][1]

    def places(self, start: int, end: int) -> tuple[int, int] | None:
        """The places of the first and last token that cover characters [start, end), if here."""
        inside = [n for n, (a, b) in enumerate(self.offsets) if a < end and b > start]
        if not inside:
            return None
        low, high = inside[0], inside[-1]
        if self.offsets[low][0] > start or self.offsets[high][1] < end:
            return None  # a part of the answer lies in the next window
        return self.first + low, self.first + high


class Windower:
    """Cuts rows for a BERT-like model; a query longer than half a row is cut too."""

    def __init__(self, tokenizer: Tokenizer, max_length: int, stride: int = 48):
        """Takes the longest row in tokens, and how many tokens two windows of a passage share.

        Raises:
            ValueError: the tokenizer has no tokens to begin and to separate with.
        """
        self.max_length = max_length
        self.stride = stride
        self._tokenizer = tokenizer
        frame = tokenizer.encode("", add_special=True)
        if len(frame) != 2:
            raise ValueError(
                f"the tokenizer frames a text with {len(frame)} tokens, expected [CLS] and [SEP]"
            )
        self._first, self._last = frame

    def __call__(self, queries: Sequence[str], passages: Sequence[str]) -> list[list[Window]]:
        """The windows of each (query, passage); one at least, empty passages too."""
        # Each distinct text is read once: a query stands beside many passages.
        texts = list(dict.fromkeys([*queries, *passages]))
        tokens = dict(zip(texts, self._tokenizer.encode_offsets(texts)))
        return [
            list(self._cut(tokens[query][0], *tokens[passage]))
            for query, passage in zip(queries, passages, strict=True)
        ]

    def _cut(self, query: list[int], ids: list[int], offsets: Offsets) -> Iterator[Window]:
        head = [self._first, *query[: self.max_length // 2], self._last]
        room = self.max_length - len(head) - 1
        step = max(1, room - self.stride)
        start = 0
        while True:
            part = ids[start : start + room]
            yield Window([*head, *part, self._last], len(head), offsets[start : start + room])
            if start + room >= len(ids):
                return
            start += step
