"""Rows of three fields, as every text form of triplets gives them (R1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from triax.records.text import clean

Row = tuple[str, str, str, float | None]

# What models call the three fields. A row of nothing but such names is the header of a table.
FIELD_NAMES = (
    frozenset({"subject", "subj", "head", "s", "h", "source", "entity1"}),
    frozenset({"predicate", "pred", "relation", "relationship", "rel", "verb", "p", "r"}),
    frozenset({"object", "obj", "tail", "o", "t", "target", "entity2"}),
)
_BLANK = re.compile(r"[-–—_.…]*")


@dataclass(slots=True)
class Reading:
    """What a form found in a text.

    `dropped` counts parts that were meant as triplets but are none; `is_sound` says that the text
    has the form even if it holds no triplet; `is_cut` that the text ends inside the form.
    """

    rows: list[Row] = field(default_factory=list)
    dropped: int = 0
    is_sound: bool = False
    is_cut: bool = False

    def add(
        self, fields: Iterable[str], weight: float | None = None, *, has_commas: bool = False
    ) -> None:
        """Adds a row, or counts it as malformed; passes over a header row.

        Fewer than three fields, or one without any text, are malformed. With more than three, the
        first is the subject, the last the object and all between the predicate; where commas
        separate (`has_commas`), all beyond the second is the object.
        """
        cleaned = [" ".join(clean(text).split()) for text in fields]
        if len(cleaned) > 3:
            cleaned = [text for text in cleaned if text]
        if len(cleaned) > 3 and has_commas:
            cleaned[2:] = [", ".join(cleaned[2:])]
        elif len(cleaned) > 3:
            cleaned[1:-1] = [" ".join(cleaned[1:-1])]
        if len(cleaned) < 3 or any(_BLANK.fullmatch(text) for text in cleaned):
            self.dropped += 1
        elif not _is_header(*cleaned):
            self.rows.append((cleaned[0], cleaned[1], cleaned[2], weight))


def _is_header(subject: str, predicate: str, object: str) -> bool:
    """`subject | predicate | object`, also with words before and after, as in an echoed prompt."""
    words = [re.findall(r"\w+", name.casefold()) or [""] for name in (subject, predicate, object)]
    edges = (words[0][-1], " ".join(words[1]), words[2][0])
    return all(name in names for name, names in zip(edges, FIELD_NAMES))
