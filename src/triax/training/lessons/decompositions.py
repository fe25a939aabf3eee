"""Rows with decompositions become lessons: a question, an operator, query triplets.

Three kinds of rows are read: those with `query_triples` (2WikiMultihopQA, PopQA,
EntityQuestions), those with sub-questions that refer to each other by #1 or <1> (MuSiQue,
ProbTree, Break), and HotpotQA's, whose comparisons name their operands and whose bridges are told
by their passages.

A sub-question becomes a triplet by one rule: its subject is the reference in it or else the name
in it that the question has too, its predicate is the rest without the wh-words that say nothing,
its object is a new placeholder.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triax.models.query_vocabulary import MAX_PLACEHOLDERS, MAX_TRIPLETS, NO_OPERATOR
from triax.training.lessons.bridges import bridge
from triax.training.lessons.phrases import AUXILIARY, plain_predicate, shared_span

Fields = tuple[str, str, str]

_REFERENCE = re.compile(r"(?:#|<)(\d)>?")
_PLACEHOLDER = re.compile(r"\?\d")
_OF_SETS = re.compile(
    r"^(?:the )?(?:number|sum|difference|size|lowest|highest|first|last) of #", re.I
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One question and what is to be written for it; fields are text or `?1` to `?6`."""

    question: str
    operator: str
    triplets: tuple[Fields, ...]
    origin: str


def lesson_of(row: Mapping[str, Any]) -> Lesson | None:
    """The lesson in a row of a data set, None where the row gives none."""
    question = row["question"].strip()
    if row.get("query_triples"):
        triplets = tuple((str(s), str(p), str(o)) for s, p, o in row["query_triples"])
        # "loose" is a remark on how 2Wiki made the question, not a way to compare.
        operator = row.get("query_op") or NO_OPERATOR
        operator = NO_OPERATOR if operator == "loose" else operator
    elif steps := flat_steps(row):
        if row["dataset"] == "break_qdmr" and not is_lookup(steps):
            return None
        triplets = triplets_of_steps(question, steps) or ()
        operator = NO_OPERATOR
        if triplets and not any(_PLACEHOLDER.search(f"{s} {p}") for s, p, _ in triplets):
            # Branches that never meet are compared, or else the decomposition forgot a link.
            operator = operator_of(question)
            if operator == NO_OPERATOR and len(triplets) > 1:
                return None
    else:
        operator, triplets = comparison(question) or (NO_OPERATOR, bridge(row) or ())
    if not is_sound(triplets):
        return None
    return Lesson(question, operator, triplets, row["dataset"])


def is_sound(triplets: Sequence[Fields]) -> bool:
    """1 to 6 triplets, no empty field, placeholders in order, something unknown in each."""
    used = 0
    for fields in triplets:
        numbers = [int(found[1:]) for field in fields for found in _PLACEHOLDER.findall(field)]
        new = {n for n in numbers if n > used}
        if not all(fields) or not numbers or len(set(numbers)) < len(numbers):
            return False
        if new - {used + 1} or _PLACEHOLDER.fullmatch(fields[1]):
            return False
        used = max([used, *numbers])
    return 1 <= len(triplets) <= MAX_TRIPLETS and used <= MAX_PLACEHOLDERS


def is_lookup(steps: Sequence[str]) -> bool:
    """Whether Break's steps only look things up: no filter, count, sum or superlative of a set."""
    return not any(
        step.startswith("#") or len(_REFERENCE.findall(step)) > 1 or _OF_SETS.search(step)
        for step in steps
    )


def flat_steps(row: Mapping[str, Any]) -> list[str]:
    """The sub-questions of a row, with references as #1; trees are flattened to their leaves."""
    if tree := row.get("tree"):
        steps: list[str] = []
        _flatten(tree, {}, steps)
        return steps
    found = [step.get("question") or "" for step in row.get("decomposition") or ()]
    return [_REFERENCE.sub(r"#\1", step) for step in found]


def _flatten(node: Mapping[str, Any], outer: Mapping[int, int], steps: list[str]) -> int:
    """Appends the leaves below a node; returns the number of the step that answers it.

    `outer` leads from the numbers that the node's own text uses to those of the flat list. A
    child's reference counts among its siblings.
    """
    children = node.get("children") or ()
    if not children:
        steps.append(
            _REFERENCE.sub(lambda m: f"#{outer.get(int(m[1]), int(m[1]))}", node["question"])
        )
        return len(steps)
    own: dict[int, int] = {}
    last = 0
    for number, child in enumerate(children, 1):
        last = own[number] = _flatten(child, own, steps)
    return last


def triplets_of_steps(question: str, steps: Sequence[str]) -> tuple[Fields, ...] | None:
    """A triplet a step; None where a step has no subject or no predicate.

    A step that is only a name (Break) brings in no triplet: references to it become the name.
    """
    values: dict[int, str] = {}
    triplets: list[Fields] = []
    for number, step in enumerate(steps, 1):
        step = " ".join(step.split()).rstrip("?. ")
        if not _REFERENCE.search(step) and ">>" not in step and is_name(step, question):
            values[number] = shared_span(step, question)
            continue
        named = [values.get(int(n), "") for n in _REFERENCE.findall(step)]
        step = _REFERENCE.sub(lambda m: values.get(int(m[1]), f"#{m[1]}"), step)
        name = next((one for one in named if one and not _PLACEHOLDER.fullmatch(one)), "")
        made = triplet_of_step(step, question, name)
        if made is None:
            return None
        value = f"?{len(triplets) + 1}"
        values[number] = value
        triplets.append((*made, value))
    return tuple(triplets)


def is_name(step: str, question: str) -> bool:
    """Whether a step is no question but a phrase of the question (Break's first steps)."""
    return not re.match(rf"(?i)(?:what|which|who|when|where|how|{AUXILIARY})\b", step) and (
        step.casefold() in question.casefold()
    )


def triplet_of_step(step: str, question: str, name: str = "") -> tuple[str, str] | None:
    """Subject and predicate of a step whose references are already `?1`, or the name that they
    stand for.
    """
    if "#" in step and _REFERENCE.search(step):
        return None  # of a step that does not exist, or comes later
    if ">>" in step:
        subject, predicate = (part.strip() for part in step.split(">>", 1))
        found = _PLACEHOLDER.search(subject)
        if found and found[0] != subject:
            if named := shared_span(_PLACEHOLDER.sub(" ", subject), question):
                return named, f"{predicate} {found[0]}"
            subject = found[0]
        return (subject, predicate) if subject and predicate else None
    if found := _PLACEHOLDER.search(step):
        subject = found[0]
        before, after = step[: found.start()], step[found.end() :]
    else:
        # The case of the question tells names; sub-questions are often in lower case.
        subject = name or shared_span(step, question)
        place = step.casefold().find(subject.casefold())
        if not subject or place < 0:
            return None
        before, after = step[:place], step[place + len(subject) :]
    predicate = plain_predicate(before, after)
    return (subject, predicate) if predicate else None


_EARLY = re.compile(
    r"(?i)\b(first|earlier|earliest|older|oldest|fewer|less|smaller|shorter|lower)\b"
)
_LATE = re.compile(
    r"(?i)\b(later|latest|last|younger|youngest|newer|recently|more|most|larger|largest|bigger|"
    r"higher|taller|tallest|longer|greater|farther|further)\b"
)
_SAME = re.compile(r"(?i)\b(same|share|common|similar|different)\b")
AUXILIARY_FIRST = re.compile(rf"(?i)^({AUXILIARY})\b")


def operator_of(question: str) -> str:
    """How a comparison compares, by its words; "none" where no word tells it.

    min and max are of the answers of the branches (the earlier date, the larger number), same
    asks whether they are equal, both whether each has the property, which for the one that has.
    """
    if re.search(r"(?i)\blived? longer\b", question):
        return "longest"
    if _SAME.search(question) or re.search(r"(?i)\bboth\b.*\bwhat\b|\bwhat\b.*\bboth\b", question):
        return "same"
    if re.search(r"(?i)\bor\b", question):
        if _EARLY.search(question):
            return "min"
        return "max" if _LATE.search(question) else "which"
    if AUXILIARY_FIRST.match(question) and re.search(r"(?i)\b(and|both)\b", question):
        return NO_OPERATOR if re.search(r"(?i)\bthan\b", question) else "both"
    return "same" if re.search(r"(?i)\bboth\b", question) else NO_OPERATOR


_SMALL = r"(?:of|the|de|la|le|du|des|von|van|der|&|in|on|for|to|a|an|del|di|et|y)"
_BIG = r"[\"'“(]?[A-Z0-9À-Þ][^\s,?]*"
_NAME = rf"{_BIG}(?:\s(?:{_SMALL}\s)*{_BIG})*"
_NAMED = rf"(?:[Tt]he\s)?{_NAME}"
_OR = re.compile(
    rf"^(?i:which|what|who|whose)\s(?P<rest>[^,]*?)[,:]?\s(?:out of |between |of )?"
    rf"(?P<a>{_NAMED}),?\s(?:or|and)\s(?P<b>{_NAMED})\s*\?*$"
)
_BETWEEN = re.compile(
    rf"^(?i:between)\s(?P<a>{_NAMED})\sand\s(?P<b>{_NAMED}),\s(?:which|what|who)\s"
    rf"(?P<rest>.+?)\s*\?*$"
)
_AND = re.compile(
    rf"^(?i:{AUXILIARY})\s(?:(?i:both)\s)?(?P<a>{_NAMED})\sand\s"
    rf"(?P<b>{_NAMED})\s(?P<rest>.+?)\s*\?*$"
)
_DROPPED = re.compile(
    r"(?i)\b(both|first|earlier|later|last|most recently|more recently|same|from the|of the|the|"
    r"is|was|are|were|has|have|been|all|a|an|types? of|examples? of|came out)\b"
)


def comparison(question: str) -> tuple[str, tuple[Fields, ...]] | None:
    """Operator and triplets of a comparison of two names, as in HotpotQA; None if it is none.

    >>> comparison("Which band formed first, Swervedriver or Incubus?")[1][0]
    ('Swervedriver', 'when formed', '?1')
    """
    match = _OR.match(question) or _BETWEEN.match(question) or _AND.match(question)
    if match is None:
        return None
    operator = operator_of(question)
    if operator == NO_OPERATOR:
        return None
    predicate = _compared(match["rest"], operator)
    if not predicate:
        return None
    names = (match["a"].strip(" ,"), match["b"].strip(" ,"))
    return operator, tuple((name, predicate, f"?{n}") for n, name in enumerate(names, 1))


def _compared(rest: str, operator: str) -> str:
    """The predicate of both branches, from what a comparison says beside the names."""
    if operator == "longest":
        return ""
    if re.search(r"(?i)\b(born|older|younger|oldest|youngest)\b", rest) and operator in (
        "min",
        "max",
    ):
        is_person = re.search(
            r"(?i)\b(born|young\w+|who|actor|actress|director|singer|author)", rest
        )
        return "date of birth" if is_person else "when founded"
    text = " ".join(_DROPPED.sub(" ", rest).split()).strip(" ,?")
    text = re.sub(r"(?i)^(?:who|that|which)\s", "", text)
    if operator in ("min", "max") and re.search(
        r"(?i)\b(first|earlier|later|recently|last)\b", rest
    ):
        verb = re.search(r"(?i)\b(\w+ed|began publication|opened|built|published)\b", text)
        return f"when {verb[1].lower()}" if verb else "publication date"
    if operator in ("min", "max"):
        if found := re.search(r"(?i)\b(?:more|most|fewer|less)\s(.+)$", text):
            return f"how many {found[1]}"
        if found := re.search(
            r"(?i)\b(taller|tallest|higher|larger|largest|bigger|longer)\b", text
        ):
            return {"t": "height", "h": "height", "lo": "length"}.get(
                found[1].lower()[: 2 if found[1].lower().startswith("lo") else 1], "size"
            )
    return text


def lessons_of(rows: Iterable[Mapping[str, Any]]) -> list[Lesson]:
    """The lessons of all rows that give one; a question that stands twice is taken once."""
    found: dict[str, Lesson] = {}
    for row in rows:
        if lesson := lesson_of(row):
            found.setdefault(lesson.question.casefold(), lesson)
    return list(found.values())
