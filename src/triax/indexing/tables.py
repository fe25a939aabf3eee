"""Chunks and propositions as Arrow tables in a fixed order of rows, joined by sources (R27)."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Int32, Int64

from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet

CHUNK_SCHEMA = pa.schema(
    [(name, pa.large_string()) for name in ("id", "document_id", "title", "text")]
    + [("start", pa.int64())]
)
PROPOSITION_SCHEMA = pa.schema(
    [(name, pa.large_string()) for name in ("id", "subject", "predicate", "object", "text")]
    + [("confidence", pa.float64()), ("chunk_rows", pa.list_(pa.int32()))]
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Which chunk rows each proposition row comes from: `rows[offsets[i] : offsets[i + 1]]`."""

    offsets: Int64[np.ndarray, "offsets"]
    rows: Int32[np.ndarray, "edges"]
    num_chunks: int

    @classmethod
    def identity(cls, count: int) -> "Sources":
        """Each row is its own chunk: what a search over chunk vectors needs."""
        return cls(np.arange(count + 1, dtype=np.int64), np.arange(count, dtype=np.int32), count)

    def of(self, row: int) -> Int32[np.ndarray, "found"]:
        """The chunk rows of one proposition, ascending."""
        return self.rows[self.offsets[row] : self.offsets[row + 1]]


@dataclass(frozen=True, slots=True)
class TripletTables:
    """What an index knows besides vectors. Rows of both tables are in the order of their ids.

    The order of rows decides ties, so it must not depend on the order of arrival (R18).
    """

    chunks: pa.Table
    propositions: pa.Table
    sources: Sources

    @classmethod
    def of(cls, chunks: Iterable[Chunk], propositions: Iterable[Proposition]) -> "TripletTables":
        """Builds the tables from records in any order.

        Raises:
            ValueError: an id stands for two different records, or a proposition names a chunk
                that is not given, or none.
        """
        merged_chunks = _by_id(chunks)
        merged = merge_propositions(propositions)
        row_of = {chunk.id: row for row, chunk in enumerate(merged_chunks)}
        for proposition in merged:
            missing = [name for name in proposition.chunk_ids if name not in row_of]
            if missing or not proposition.chunk_ids:
                raise ValueError(
                    f"proposition {proposition.id!r} names chunks {missing or 'none at all'}, "
                    f"expected some of the {len(row_of)} given; give its chunks too"
                )
        return cls.from_arrow(
            _chunk_table(merged_chunks),
            _proposition_table(merged, [[row_of[c] for c in p.chunk_ids] for p in merged]),
        )

    @classmethod
    def from_arrow(cls, chunks: pa.Table, propositions: pa.Table) -> "TripletTables":
        """Takes tables of `CHUNK_SCHEMA` and `PROPOSITION_SCHEMA`, as `of` and the store give."""
        chunks, propositions = chunks.combine_chunks(), propositions.combine_chunks()
        lists = propositions["chunk_rows"].combine_chunks()
        lengths = np.asarray(lists.value_lengths(), np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        rows = np.asarray(lists.flatten(), np.int32)
        return cls(chunks, propositions, Sources(offsets, rows, chunks.num_rows))

    def chunk(self, row: int) -> Chunk:
        """The chunk of a row."""
        return Chunk(**{name: self.chunks[name][row].as_py() for name in CHUNK_SCHEMA.names})

    def chunk_id(self, row: int) -> str:
        """The id of a row's chunk."""
        return self.chunks["id"][row].as_py()

    def proposition(self, row: int) -> Proposition:
        """The proposition of a row, with all its sources."""
        table = self.propositions
        cell = {name: table[name][row].as_py() for name in table.column_names[:-1]}
        triplet = Triplet(cell["subject"], cell["predicate"], cell["object"], cell["confidence"])
        chunk_ids = tuple(self.chunk_id(int(source)) for source in self.sources.of(row))
        return Proposition(cell["id"], triplet, cell["text"], chunk_ids)

    def all_chunks(self) -> list[Chunk]:
        """Every chunk, in row order."""
        return [Chunk(**row) for row in self.chunks.to_pylist()]

    def all_propositions(self) -> list[Proposition]:
        """Every proposition, in row order."""
        ids = self.chunks["id"].to_pylist()
        return [
            Proposition(
                row["id"],
                Triplet(row["subject"], row["predicate"], row["object"], row["confidence"]),
                row["text"],
                tuple(ids[source] for source in row["chunk_rows"]),
            )
            for row in self.propositions.to_pylist()
        ]

    def digests(self) -> dict[str, str]:
        """Hashes of the content, the same whatever order the records came in."""
        return {
            "chunks": _digest(self.chunks.to_pylist()),
            "propositions": _digest(self.propositions.to_pylist()),
        }


def merge_propositions(propositions: Iterable[Proposition]) -> list[Proposition]:
    """One proposition an id, in the order of ids, with the sources of all, sorted.

    Where confidences differ, the highest stands.

    Raises:
        ValueError: an id stands for two different sentences or triplets.
    """
    found: dict[str, Proposition] = {}
    for new in propositions:
        old = found.get(new.id, new)
        if (old.text, old.triplet.fields) != (new.text, new.triplet.fields):
            raise ValueError(
                f"proposition id {new.id!r} stands for {old.text!r} and {new.text!r}, expected "
                "one content an id; make ids from the content"
            )
        known = [c for c in (old.triplet.confidence, new.triplet.confidence) if c is not None]
        triplet = Triplet(*new.triplet.fields, confidence=max(known, default=None))
        sources = tuple(sorted({*old.chunk_ids, *new.chunk_ids}))
        found[new.id] = Proposition(new.id, triplet, new.text, sources)
    return [found[key] for key in sorted(found)]


def _by_id(chunks: Iterable[Chunk]) -> list[Chunk]:
    found: dict[str, Chunk] = {}
    for chunk in chunks:
        if found.setdefault(chunk.id, chunk) != chunk:
            raise ValueError(
                f"chunk id {chunk.id!r} stands for two contents, {found[chunk.id].text[:60]!r} and "
                f"{chunk.text[:60]!r}; give each its own id, or delete the old document first"
            )
    return [found[key] for key in sorted(found)]


def _digest(rows: Iterable[dict]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode("ascii") + b"\n")
    return digest.hexdigest()


def _chunk_table(chunks: Sequence[Chunk]) -> pa.Table:
    names = CHUNK_SCHEMA.names
    return _table({name: [getattr(c, name) for c in chunks] for name in names}, CHUNK_SCHEMA)


def _proposition_table(
    propositions: Sequence[Proposition], chunk_rows: Sequence[list[int]]
) -> pa.Table:
    columns = {
        "id": [p.id for p in propositions],
        "subject": [p.triplet.subject for p in propositions],
        "predicate": [p.triplet.predicate for p in propositions],
        "object": [p.triplet.object for p in propositions],
        "text": [p.text for p in propositions],
        "confidence": [p.triplet.confidence for p in propositions],
        "chunk_rows": chunk_rows,
    }
    return _table(columns, PROPOSITION_SCHEMA)


def _table(columns: dict[str, list], schema: pa.Schema) -> pa.Table:
    try:
        return pa.table(columns, schema=schema)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text {error.object[:60]!r} cannot be written as UTF-8 ({error.reason}); "
            "clean texts when they are read"
        ) from None
