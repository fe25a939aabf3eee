"""The semantics of T2RAG's released code, kept beside the paper's for parity with its runs.

Where the released code departs from the paper it does so in its parsers and in its update: a
placeholder is any question mark, and a triplet that the solver does not repeat is lost. These are
findings about that code, reproduced here so that its published numbers can be reproduced; the
default semantics is the paper's. Source: repository rockcor/T2RAG, revision 72c43bd.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

Fields = tuple[str, str, str]

_SECTIONS = ("reasoning:", "triples:", "propositions:")
_WH_WORDS = ("what", "who", "where", "when", "why", "how", "which", "whose")


@dataclass(frozen=True, slots=True)
class OriginalState:
    """Resolved, traceable and fuzzy triplets as plain texts; a mark `?` is part of a text."""

    resolved: tuple[Fields, ...] = ()
    traceable: tuple[Fields, ...] = ()
    fuzzy: tuple[Fields, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Nothing traceable and nothing fuzzy is left."""
        return not self.traceable and not self.fuzzy


@dataclass(frozen=True, slots=True)
class OriginalDecomposition:
    """What the two parsers of the released code read out of one answer."""

    triplets: tuple[Fields, ...] = ()
    state: OriginalState = field(default_factory=OriginalState)


def count_marks(fields: Fields) -> int:
    """Question marks anywhere in the three texts, those inside names included."""
    return sum(text.count("?") for text in fields)


def classify(triplets: Sequence[Fields]) -> OriginalState:
    """Sorts by the number of question marks: 0 resolved, 1 traceable, 2 or more fuzzy."""
    return OriginalState(
        tuple(fields for fields in triplets if count_marks(fields) == 0),
        tuple(fields for fields in triplets if count_marks(fields) == 1),
        tuple(fields for fields in triplets if count_marks(fields) >= 2),
    )


def parse_decomposition(text: str) -> OriginalDecomposition:
    """The lines under `Triples:`, or failing that every line with a bar. May be empty."""
    lines = [line.strip() for line in text.strip().split("\n")]
    unlabelled = [line for line in lines if not line.lower().startswith(_SECTIONS)]
    return _decomposition(_parse_section(lines) or _parse_anywhere(unlabelled))


def parse_simple(text: str, limit: int = 3) -> OriginalDecomposition:
    """The answer to the simpler second prompt: the first lines with two bars or more."""
    lines = [line.strip() for line in text.strip().split("\n")]
    found = _parse_anywhere(
        [line for line in lines if not line.startswith(("Question:", "Examples:"))]
    )
    return _decomposition([fields for fields in found if not _is_generic(fields)][:limit])


def parse_resolution(text: str) -> tuple[tuple[Fields, ...], tuple[Fields, ...]]:
    """(resolved, newly traceable): blocks under exact prefixes, complete in all three fields."""
    found: dict[str, list[Fields]] = {"Fully Resolved Clue": [], "Newly Traceable Clue": []}
    kind = ""
    parts: dict[str, str] = {}
    for line in [*text.splitlines(), "Fully Resolved Clue"]:
        line = line.strip()
        heading = next((prefix for prefix in found if line.startswith(prefix)), None)
        if heading:
            if kind and len(parts) == 3:
                found[kind].append((parts["Subject"], parts["Predicate"], parts["Object"]))
            kind, parts = heading, {}
            continue
        name, colon, value = line.partition(":")
        if colon and name in ("Subject", "Predicate", "Object"):
            parts[name] = value.strip()
    return tuple(found["Fully Resolved Clue"]), tuple(found["Newly Traceable Clue"])


def queries(state: OriginalState, question: str) -> list[str]:
    """One text a traceable triplet that has any, and always the stripped question."""
    texts = [
        " ".join(part for part in fields if part and not part.startswith("?"))
        for fields in state.traceable
    ]
    return [text for text in (*texts, strip_question(question)) if text]


def strip_question(question: str) -> str:
    """Lower case without wh-words, which are cut out of longer words too, and without marks."""
    text = question.lower()
    for word in _WH_WORDS:
        text = text.replace(word, "")
    return text.replace("?", "").strip()


def update(
    state: OriginalState, resolved: Sequence[Fields], newly_traceable: Sequence[Fields]
) -> OriginalState:
    """The next state: all that the answer does not repeat is gone, and nothing stays fuzzy."""
    return OriginalState(
        state.resolved
        + tuple(resolved)
        + tuple(fields for fields in newly_traceable if count_marks(fields) == 0),
        tuple(fields for fields in newly_traceable if count_marks(fields) == 1),
    )


def final_triplets(state: OriginalState) -> tuple[Fields, ...]:
    """What the last prompt shows: distinct resolved ones, then those still traceable."""
    return _distinct(state.resolved) + state.traceable


def parse_answer(text: str) -> str:
    """What follows the last `Answer:`, or all of it."""
    return text.split("Answer:")[-1].strip() if "Answer:" in text else text


def _decomposition(triplets: Sequence[Fields]) -> OriginalDecomposition:
    kept = _distinct(triplets)
    return OriginalDecomposition(kept, classify(kept))


def _distinct(triplets: Sequence[Fields]) -> tuple[Fields, ...]:
    found: dict[tuple[str, ...], Fields] = {}
    for fields in triplets:
        found.setdefault(tuple(part.lower().strip() for part in fields), fields)
    return tuple(found.values())


def _parse_section(lines: Sequence[str]) -> list[Fields]:
    inside = False
    triplets = []
    for line in lines:
        if line.startswith(("Reasoning:", "Propositions:")):
            inside = False
        elif line.startswith("Triples:"):
            inside = True
        elif inside and (fields := _bars(line)):
            triplets.append(fields)
    return triplets


def _parse_anywhere(lines: Sequence[str]) -> list[Fields]:
    triplets = []
    for line in lines:
        if fields := _bars(line.split(". ", 1)[-1].replace("- ", "")):
            subject, predicate, object = (part.strip('"').strip("'") for part in fields)
            triplets.append((subject, predicate, object))
    return triplets


def _is_generic(fields: Fields) -> bool:
    """`? | is related to | <most of the question>`, which the simple prompt tends to give."""
    return fields[0] == "?" and "related" in fields[1].lower() and len(fields[2]) > 30


def _bars(line: str) -> Fields | None:
    parts = [part.strip() for part in line.split("|")]
    return (parts[0], parts[1], parts[2]) if len(parts) >= 3 else None
