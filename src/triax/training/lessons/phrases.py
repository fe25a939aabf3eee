"""Phrases of questions: the name that a part of a question is about, and what is asked of it."""

import re
from collections.abc import Sequence

WORD = re.compile(r"\?\d|['’][sS]\b|[\w&.]+(?:['’-](?![sS]\b)\w+)*|[^\w\s]")
STOP = frozenset(
    "a an the of in on at to for from by with and or as that which who whom whose what when where "
    "how is was are were be been being did does do has have had will can could would it its this "
    "these those there their his her s ’s 's many much than both name".split()
)
AUXILIARY = "is|was|are|were|did|does|do|has|have|had|will|would|can|could|be"
_PLAIN = re.compile(
    rf"^(?:(?:in|on|at|to|for|of|by|from|with)\s+)?(?:what|which|name|the)\b\s*(?:{AUXILIARY})?\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    rf"^((?:who|whom|whose|when|where|how\s+\w+|how)(?:['’]s)?)\s+(?:{AUXILIARY})?\b",
    re.IGNORECASE,
)
_NOMINAL = re.compile(
    r"^(?:who|whose)\s+(?=(?:the\s+|a\s+|an\s+)?[\w-]+(?:\s[\w-]+){0,2}\s+of\b)", re.I
)
_EDGE = re.compile(
    rf"^(?:[\s,.?!:;]|['’]s\b|(?:the|a|an|{AUXILIARY})\b(?!-))+"
    rf"|(?:[\s,.?!:;]|['’]s\b|\b(?:the|a|an|{AUXILIARY}|who|whom|what)\b)+$",
    re.IGNORECASE,
)


def plain_predicate(before: str, after: str) -> str:
    """What is left of a sub-question: without `what is`, with `when` and `where`, which tell
    what sort of answer is asked for.

    >>> plain_predicate("What is the capital of ", "")
    'capital of'
    >>> plain_predicate("when did ", " become a state")
    'when become a state'
    """
    text = " ".join(f"{before} {after}".split())
    telling = ""
    if found := _TELLING.match(text):
        telling, text = found[1], text[found.end() :]
        if _NOMINAL.match(f"{telling} {text.strip()}"):
            telling = ""
    elif found := _PLAIN.match(text):
        text = text[found.end() :]
    # Marks of the possessive and of questions belong to no predicate.
    text = re.sub(r"\s*(?:['’]s?)(?=\s|$)|\b(?:do|does|did)\b", " ", text)
    while (shorter := _EDGE.sub("", text)) != text:
        text = shorter
    return " ".join(f"{telling.lower()} {text}".split())


def shared_span(step: str, question: str) -> str:
    """The part of the question that a sub-question names, as the question writes it.

    The longest run of words that both have and that is a name (all its words but small ones begin
    with a capital or a digit); without one, the longest run that both have. "" if they share no
    word but small ones.
    """
    theirs = [word.group().casefold() for word in WORD.finditer(step)]
    ours = list(WORD.finditer(question))
    folded = [word.group().casefold() for word in ours]
    best: tuple[int, int, int, int] = (0, 0, 0, 0)  # is a name, words that count, start, end
    for start in range(len(ours)):
        for begin in (n for n, word in enumerate(theirs) if word == folded[start]):
            size = 0
            while (
                start + size < len(ours)
                and begin + size < len(theirs)
                and folded[start + size] == theirs[begin + size]
            ):
                size += 1
                rated = _rated(ours, folded, start, start + size)
                best = max(best, rated, key=lambda x: (x[0], x[1], x[3] - x[2]))
    _, count, start, end = best
    return question[ours[start].start() : ours[end - 1].end()] if count else ""


def _rated(
    ours: Sequence[re.Match[str]], folded: Sequence[str], start: int, end: int
) -> tuple[int, int, int, int]:
    """How good a subject the words start to end of the question make."""
    while start < end and (
        (folded[start] in STOP and (start == 0 or ours[start].group()[0].islower()))
        or folded[start][0] in ",.;:?!)-'’"
    ):
        start += 1
    while start < end and (folded[end - 1] in STOP or folded[end - 1] in ",.;:?!(-'’"):
        end -= 1
    big = [n for n in range(start, end) if folded[n] not in STOP and folded[n][0].isalnum()]
    named = [n for n in big if not ours[n].group()[0].islower()]
    # A number alone is no name.
    is_name = len(named) == len(big) and any(ours[n].group()[0].isupper() for n in named)
    return int(is_name), len(big), start, end
