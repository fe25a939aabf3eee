"""Passages with gold triplets, to measure extractors on: Re-DocRED, CaRB and their like."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triax.records.documents import Chunk
from triax.records.files import read_jsonl
from triax.records.text import clean

Fields = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A passage and its gold triplets, each in all forms that its fields may take."""

    chunk: Chunk
    triplets: tuple[tuple[Fields, ...], ...]


def read_gold(path: Path | str, limit: int | None = None) -> list[GoldPassage]:
    """Reads rows `{id, title, text, triples[{s, p, o}]}` of a .jsonl or .jsonl.gz file.

    With a field `entities[{mentions}]`, subject and object may be any mention of theirs. Further
    arguments of CaRB (`args`) are added to the object; triplets without an object are left out.
    The order is that of the ids' own text, so that `limit` takes a sample that does not depend on
    the order of the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row lacks a field.
    """
    rows = sorted(read_jsonl(Path(path)), key=lambda row: str(row.get("id")))
    try:
        return [_passage(row) for row in rows[:limit]]
    except KeyError as error:
        raise ValueError(
            f"a row of {path} has no field {error}; expected id, title, text and triples of s, p, o"
        ) from None


def _passage(row: Mapping[str, Any]) -> GoldPassage:
    forms: dict[str, list[str]] = {}
    for entity in row.get("entities") or ():
        mentions = list(dict.fromkeys(map(clean, entity["mentions"])))
        forms |= dict.fromkeys(mentions, mentions)
    triplets = []
    for one in row["triples"]:
        other = " ".join(filter(None, (one["o"], *one.get("args", ()))))
        if one["s"] and other:
            subject, predicate, other = clean(one["s"]), clean(one["p"]), clean(other)
            triplets.append(
                tuple(
                    (first, predicate, second)
                    for first in forms.get(subject, [subject])
                    for second in forms.get(other, [other])
                )
            )
    text, title = clean(row["text"]), clean(row["title"] or "")
    return GoldPassage(Chunk(row["id"], row["id"], text, title), tuple(triplets))
