"""Recorded extractions in place of a model, from our own files and from those of others."""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triax.records.documents import Chunk
from triax.records.files import read_jsonl
from triax.records.text import clean, normalise
from triax.records.triplet_text import parse_triplets
from triax.records.triplets import Extraction, Triplet

_log = logging.getLogger(__name__)


def extraction_to_json(extraction: Extraction) -> dict[str, Any]:
    """The row of `triplets.jsonl`; a triplet is [s, p, o] or [s, p, o, confidence]."""
    return {
        "chunk_id": extraction.chunk_id,
        "status": extraction.status,
        "reason": extraction.reason,
        "entities": list(extraction.entities),
        "triplets": [
            [*triplet.fields]
            if triplet.confidence is None
            else [*triplet.fields, triplet.confidence]
            for triplet in extraction.triplets
        ],
    }


def extraction_from_json(row: Mapping[str, Any]) -> Extraction:
    """The inverse of `extraction_to_json`, field by field the same.

    Raises:
        ValueError: the row is not of that form.
    """
    try:
        return Extraction(
            row["chunk_id"],
            tuple(Triplet(*triplet) for triplet in row["triplets"]),
            tuple(row["entities"]),
            row["status"],
            row["reason"],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"a row of extractions lacks or bends a field ({error!r}); expected chunk_id, status, "
            "reason, entities and triplets, as extract_corpus writes them"
        ) from None


def read_extractions(path: Path | str) -> Iterator[Extraction]:
    """Yields the extractions of a file, in its order.

    Three forms are read: our own `triplets.jsonl`; rows `{id or passage_id, entities, triples or
    triplets}` with optional title and text (.jsonl or .jsonl.gz); and the `.json` that HippoRAG
    and T2RAG write, `{"docs": [{idx, passage, extracted_entities, extracted_triples}]}`. Foreign
    triplets follow the rule of `parse_triplets`: surplus fields are joined, short rows dropped and
    counted in the reason.

    Raises:
        ValueError: the file has none of these forms.
    """
    return (extraction for extraction, _ in _read(Path(path)))


class RecordedExtractor:
    """Gives what was recorded for a chunk.

    A record is a chunk's if it has its id, and its text where the record has one; otherwise if it
    has its title and text. A chunk without a record is a failed extraction. `num_unmatched` is the
    number of records that no chunk has asked for.
    """

    name = "recorded"

    def __init__(self, path: Path | str | Mapping[str, Extraction]) -> None:
        """Takes a file (see `read_extractions`) or extractions by chunk id."""
        rows: list[tuple[Extraction, str]]
        if isinstance(path, Mapping):
            rows = [(extraction, "") for extraction in path.values()]
            keys = list(path)
        else:
            rows = list(_read(Path(path)))
            keys = [extraction.chunk_id for extraction, _ in rows]
        self._by_id: dict[str, int] = {}
        self._by_passage: dict[str, int] = {}
        self._rows = rows
        self._used: set[int] = set()
        for number, (key, (_, passage)) in enumerate(zip(keys, rows)):
            self._by_id.setdefault(key, number)
            if passage:
                self._by_passage.setdefault(passage, number)

    @property
    def config(self) -> dict[str, str]:
        """The hash of all records, which tells two recordings apart."""
        digest = hashlib.sha256()
        for extraction, passage in self._rows:
            row = json.dumps([extraction_to_json(extraction), passage], sort_keys=True)
            digest.update(row.encode("ascii"))
        return {"records": digest.hexdigest()}

    @property
    def num_unmatched(self) -> int:
        """Records that no chunk has matched so far."""
        return len(self._rows) - len(self._used)

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, `failed` where nothing was recorded for it."""
        found = [self._find(chunk) for chunk in chunks]
        missing = sum(extraction.reason == "not recorded" for extraction in found)
        if missing:
            _log.warning("%d of %d chunks have no recorded extraction", missing, len(chunks))
        return found

    def _find(self, chunk: Chunk) -> Extraction:
        number = self._by_id.get(chunk.id)
        passage = _passage_key(chunk.title, chunk.text)
        if number is None or self._rows[number][1] not in ("", passage):
            number = self._by_passage.get(passage)
        if number is None:
            return Extraction(chunk.id, (), status="failed", reason="not recorded")
        self._used.add(number)
        record = self._rows[number][0]
        return Extraction(chunk.id, record.triplets, record.entities, record.status, record.reason)


def _passage_key(title: str, text: str) -> str:
    """What makes two passages the same here: title and text after `normalise`."""
    return normalise(f"{title}\n{text}")


def _read(path: Path) -> Iterator[tuple[Extraction, str]]:
    """Extractions with the key of their passage, "" where the file does not have it."""
    if path.suffix == ".json":
        value = json.loads(path.read_text(encoding="utf-8"))
        docs = value.get("docs") if isinstance(value, dict) else None
        if not isinstance(docs, list):
            raise ValueError(f'{path} has no list "docs"; expected the openie file of HippoRAG')
        rows: Iterator[dict[str, Any]] = iter(docs)
    else:
        rows = read_jsonl(path)
    for number, row in enumerate(rows, 1):
        try:
            yield _read_row(row)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, record {number}: {error}") from None


def _read_row(row: Mapping[str, Any]) -> tuple[Extraction, str]:
    if "chunk_id" in row:
        return extraction_from_json(row), ""
    key = next((row[name] for name in ("id", "passage_id", "idx") if name in row), None)
    names = ("triples", "triplets", "extracted_triples")
    triplets = next((row[name] for name in names if name in row), None)
    if key is None or not isinstance(triplets, list):
        raise ValueError(
            f"no extraction in an object with the fields {sorted(row)}; expected chunk_id and "
            "triplets, id and triples, or idx and extracted_triples"
        )
    entities = row.get("entities", row.get("extracted_entities")) or ()
    if "passage" in row:
        passage = normalise(row["passage"])
    else:
        passage = _passage_key(row.get("title", ""), row["text"]) if "text" in row else ""
    parsed = parse_triplets(json.dumps({"triplets": triplets}))
    cleaned = dict.fromkeys(clean(str(entity)).strip() for entity in entities)
    cleaned.pop("", None)
    extraction = Extraction(str(key), parsed.triplets, tuple(cleaned), parsed.status, parsed.reason)
    return extraction, passage
