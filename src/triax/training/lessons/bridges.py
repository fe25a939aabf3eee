"""HotpotQA's bridge questions become chains, by what their two supporting passages say.

The passage that the question names leads to the title of the other one, which the question hides,
and there the answer stands. What is asked of the first passage is the run of words around its name
that it shares with the question, what is asked of the second is the rest: a question without its
inner span, as Min et al. (2019, DecompRC, section 4.1) cut it, with the words of the passages in
place of labelled spans.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from triax.training.lessons.phrases import STOP, WORD, plain_predicate

Row = Mapping[str, Any]
Fields = tuple[str, str, str]

# Small words that an inner span leaves behind.
_LEFT = re.compile(r"(?i)^(?:[\s,.?!:;\"“”)]|(?:of|at|in|on|for|by|to|that|who|which|and)\b)+")
_RIGHT = re.compile(
    r"(?i)(?:[\s,.?!:;\"“”(]|\b(?:(?:at|in|on|for|by|to|from|of|with)\s+which|whose|that|who|which|and|or"
    r"|this|these|when|where))+$"
)
# What no name has inside unless it is a title: a comma, a verb, and dates.
_OPEN = re.compile(
    r",|\b(?:is|was|are|were|has|had|that|who|from|to)\b|^(?:January|February|March|April|May|June|July"
    r"|August|September|October|November|December)\b|^[\W\d]*$"
)
_MAX_NAME = 9  # words of the longest name
_MAX_PREDICATE = 20  # words; longer ones are whole stories
_NO_WORD = -0.01  # a span is no longer than it must be


@dataclass(frozen=True, slots=True)
class _Passage:
    title: str
    text: str
    supporting: str

    @property
    def shown(self) -> str:
        return f"{self.title} . {self.supporting}"


def bridge(row: Row) -> tuple[Fields, ...] | None:
    """The triplets of a bridge question with its supporting passages.

    Two where the answer stands behind a hidden title; one where a passage that the question names
    holds the answer itself.

    Returns:
        None where the row is no bridge question, or where the passages do not tell.
    """
    passages = _supporting(row)
    if row.get("type") != "bridge" or len(passages) != 2:
        return None
    question, answer = row["question"].strip(), _plain(row["answer"])
    if _has(question, answer):  # a choice among what the question names is no chain
        return None
    chains, singles = [], []
    for first, second in (passages, passages[::-1]):
        hidden = _plain(second.title)
        name = _name(question, first)
        if name is None:
            continue
        size, *words = name
        if _has(first.shown, answer):
            singles.append((size, *words))
        if (
            not _has(question, hidden)
            and hidden != answer
            and _has(first.text, hidden)
            and _has(second.supporting, answer)
        ):
            chains.append((size, *words, first, second))
    if chains:
        _, start, end, first, second = max(chains, key=lambda chain: chain[0])
        return _chain(question, start, end, first, second)
    if singles:
        _, start, end = max(singles)
        return _single(question, start, end)
    return None


def _chain(
    question: str, start: int, end: int, first: _Passage, second: _Passage
) -> tuple[Fields, ...] | None:
    words = list(WORD.finditer(question))
    left, right = _inner(words, start, end, first, second)

    def between(a: int, b: int) -> str:
        return question[words[a].start() : words[b - 1].end()] if a < b else ""

    inner = _tidy(plain_predicate(between(left, start), between(end, right)))
    outer = _tidy(plain_predicate(between(0, left), between(right, len(words))))
    if not inner or not outer:
        return None
    return (between(start, end), inner, "?1"), ("?1", outer, "?2")


def _single(question: str, start: int, end: int) -> tuple[Fields, ...] | None:
    words = list(WORD.finditer(question))
    first, last = words[start].start(), words[end - 1].end()
    predicate = _tidy(plain_predicate(question[:first], question[last:]))
    return ((question[first:last], predicate, "?1"),) if predicate else None


def _inner(
    words: Sequence[re.Match[str]], start: int, end: int, first: _Passage, second: _Passage
) -> tuple[int, int]:
    """The span around the name, but not the whole question, that fits the first passage best.

    A word counts for the passage that has it where the other has not: fully in the supporting
    sentences, less in the rest.
    """
    near = _stems(first.shown), _stems(second.shown)
    far = _stems(first.text), _stems(second.text)
    fits = []
    for word in words:
        one = word.group()
        if one.casefold() in STOP or not one[0].isalnum():
            fits.append(_NO_WORD)
            continue
        stem = _stem(one)
        said = (stem in near[0]) - (stem in near[1])
        fits.append(float(said) or 0.3 * ((stem in far[0]) - (stem in far[1])))
    sums = [0.0, *accumulate(fits)]
    spans = [
        (left, right)
        for left in range(start + 1)
        for right in range(end, len(words) + 1)
        if (left, right) != (start, end) and right - left < len(words)
    ]
    if not spans:
        return start, end
    return max(spans, key=lambda span: (sums[span[1]] - sums[span[0]], span[0] - span[1]))


def _name(question: str, passage: _Passage) -> tuple[float, int, int] | None:
    """(how good, first word, behind the last word) of the best name that both have."""
    words = list(WORD.finditer(question))
    title = _plain(passage.title)
    found = []
    for start, first in enumerate(words):
        if not (first.group()[0].isupper() or first.group()[0].isdigit()):
            continue
        if start == 0 and first.group().casefold() in STOP:
            continue
        is_cut = _runs_on(question, words, start)
        for end in range(start + 1, min(start + _MAX_NAME, len(words)) + 1):
            last = words[end - 1].group()
            text = question[first.start() : words[end - 1].end()]
            name = _plain(text)
            if last.casefold() in STOP or not last[0].isalnum() or not re.search(r"[A-Z]", text):
                continue
            if not _has(passage.shown, name):
                continue
            # A piece of a longer name, a list of names or a clause stands for nothing.
            whole = not is_cut and not _runs_on(question, words, end) and not _OPEN.search(text)
            if name != title and not whole:
                continue
            count = sum(one.group().casefold() not in STOP for one in words[start:end])
            # The title itself, then a part of it, then any other name.
            found.append((count * (1 + 0.5 * _has(title, name)) + 5 * (name == title), start, end))
    return max(found, default=None)


def _runs_on(question: str, words: Sequence[re.Match[str]], place: int) -> bool:
    """Whether a name goes on over the border before word `place`."""
    if not 0 < place < len(words):
        return False
    gap = question[words[place - 1].end() : words[place].start()]
    before, after = words[place - 1].group(), words[place].group()
    starts = place == 1 and before.casefold() in (*STOP, "in", "on", "at")
    return gap == " " and before[0].isupper() and after[0].isupper() and not starts


def _supporting(row: Row) -> list[_Passage]:
    """The supporting passages with their supporting sentences."""
    given = {one["title"]: one for one in row.get("paragraphs") or ()}
    numbers: dict[str, list[int]] = {}
    for title, number in row.get("supporting_facts") or ():
        numbers.setdefault(title, []).extend([] if number is None else [number])
    found = []
    for title, sentences in numbers.items():
        if (one := given.get(title)) is None:
            continue
        starts = [*(one.get("sents") or [0]), len(one["text"])]
        kept = [one["text"][starts[n] : starts[n + 1]] for n in sentences if n + 1 < len(starts)]
        found.append(_Passage(title, one["text"], " ".join(kept) or one["text"]))
    return found


def _tidy(predicate: str) -> str:
    words = _RIGHT.sub("", _LEFT.sub("", predicate)).split()
    return " ".join(words) if len(words) <= _MAX_PREDICATE else ""


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", re.sub(r"\s*\([^()]*\)$", "", text).casefold()).strip()


def _has(text: str, name: str) -> bool:
    return bool(name) and f" {name} " in " " + re.sub(r"\W+", " ", text.casefold()) + " "


def _stem(word: str) -> str:
    # Five letters stand for a word with its endings.
    return word.casefold()[:5]


def _stems(text: str) -> set[str]:
    return {_stem(one.group()) for one in WORD.finditer(text)}
