"""Questions whose type a data set says, and the part of them that is held back for choices."""

import hashlib
import logging
import unicodedata
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from triax.corpora.jsonl import read_rows
from triax.records.question_types import gold_type
from triax.records.questions import Question

logger = logging.getLogger(__name__)


def load_typed(
    folder: str | Path, name: str, split: str = "train", limit: int | None = None
) -> list[Question]:
    """The questions of `<folder>/<name>/<split>.jsonl.gz` whose type is known.

    Args:
        folder: has a folder a data set.
        name: of the data set.
        split: "train" or "dev".
        limit: keeps the first ones.

    Returns:
        Id, text, and as `kind` one of `QUESTION_TYPES`. The rest is left out, and counted in the
        log.

    Raises:
        FileNotFoundError: the file is missing; the message lists those that are there.
        ValueError: no question has a type.
    """
    path = Path(folder).expanduser() / name / f"{split}.jsonl.gz"
    rows = list(read_rows(path, ["question"]))
    kinds = [gold_type(row.get("type") or "") for row in rows]
    found = [
        Question(str(row["id"]), row["question"], kind=kind)
        for row, kind in zip(rows, kinds, strict=True)
        if kind is not None
    ]
    if not found:
        raise ValueError(
            f"{path}: none of {len(rows)} questions has a type; expected a field `type` with "
            "bridge, comparison, compositional, bridge_comparison, inference or a number of hops"
        )
    if len(found) < len(rows):
        logger.info("%s: %d of %d questions have a type", path, len(found), len(rows))
    return list(islice(found, limit))


def hold_out(questions: Sequence[Question], share: float) -> tuple[list[Question], list[Question]]:
    """Questions to learn from, and about this share of them to choose by.

    By a hash of the question's words: the same question falls on the same side in every data set.
    """
    learnt: list[Question] = []
    held: list[Question] = []
    for one in questions:
        (held if _draw(one.text) < share else learnt).append(one)
    return learnt, held


def _draw(text: str) -> float:
    """A number in [0, 1)."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
