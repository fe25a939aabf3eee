"""What is around a short answer: thinking, markdown, quotes, and the ways to say nothing."""

import re

from triax.records.text import clean

ABSTAIN = frozenset(
    (
        "unknown",
        "i don't know",
        "i do not know",
        "not sure",
        "cannot determine",
        "can't tell",
        "not found",
        "not stated",
        "not mentioned",
        "not specified",
        "no answer",
        "insufficient information",
    )
)
_THINKING = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_PAIRS = ('""', "''", "\u201c\u201d", "\u2018\u2019", "``", "**", "__")


def without_thinking(text: str) -> str:
    """The text after a leading `<think>` block; "" where that block never ends."""
    thinking = _THINKING.match(text)
    return text[thinking.end() :] if thinking else text


def first_line(text: str) -> str:
    """The first line that says something, without what is wrapped around all of it.

    Quotes and markdown go only in pairs, so `the "Boss"` keeps its own.
    """
    for line in clean(text).splitlines():
        line = line.strip().lstrip("*`").rstrip("*`").strip()
        if bare := _unwrap(line):
            return bare
    return ""


def is_abstention(line: str) -> bool:
    """Whether a line says in one of the usual ways that there is no answer."""
    return line.rstrip(".!").casefold().replace("\u2019", "'") in ABSTAIN


def _unwrap(line: str) -> str:
    while any(len(line) >= 2 and line[0] == a and line[-1] == b for a, b in _PAIRS):
        inner = line[1:-1]
        # `"A" and "B"` is not a quoted text.
        if line[0] in inner or line[-1] in inner:
            break
        line = inner.strip()
    return line
