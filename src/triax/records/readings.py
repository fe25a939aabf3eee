"""What an extractive reader is asked, and what it finds."""

from dataclasses import dataclass
from typing import Literal

ReadingKind = Literal["span", "yes", "no"]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One query, a question or a triplet with `?` where the answer belongs, and its passages.

    `kinds` says what may answer it: spans, the verdicts yes and no, or any of them.
    """

    query: str
    passages: tuple[str, ...]
    kinds: Literal["any", "span", "verdict"] = "any"


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer that was found in a passage.

    `start` and `end` are characters of that passage (0, 0 for yes and no). `margin` is the log of
    how much more probable the answer is than "not here", `p_right` the probability that the answer
    is right, `p_here` that any passage answers at all.
    """

    text: str
    passage: int
    start: int
    end: int
    margin: float
    p_right: float
    p_here: float
    kind: ReadingKind = "span"


def shown_passage(title: str, text: str) -> str:
    """A passage as a reader sees it, in lessons and in use: the title as its first sentence."""
    return f"{title}. {text}" if title else text


def shown_slot(subject: str, predicate: str, object: str) -> str:
    """A query triplet as a reader sees it: fields with bars between, the unknown one as `?`."""
    return f"{subject} | {predicate} | {object}"
