"""Building an index, adding documents to it and deleting documents from it (R10)."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from triax.indexing.embedding import embed, fingerprint, missing_shards
from triax.indexing.store import (
    TripletIndex,
    check_encoder,
    identity_of,
    load_index,
    refuse_other,
    save_index,
)
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Proposition
from triax.records.verbs import Encoder, TextRole

_log = logging.getLogger(__name__)
Progress = Callable[[int], None] | None
Vectors = tuple[np.ndarray, np.ndarray | None]


class MissingVectorsError(RuntimeError):
    """Shards of vectors that were to be there are not; the message lists them."""


def build_index(
    chunks: Iterable[Chunk],
    propositions: Iterable[Proposition],
    encoder: Encoder,
    folder: Path | str,
    *,
    extractor: str = "",
    embeds_chunks: bool = True,
    dtype: Literal["float32", "float16"] = "float32",
    role: TextRole = "passage",
    is_embedded: bool = False,
    progress: Progress = None,
) -> TripletIndex:
    """Embeds propositions, and chunks for the dense retriever, and writes the index.

    Vectors are kept shard by shard in `<folder>.embedding` until the index is written, so a run
    that was killed goes on where it was (R4). An index of the same inputs that is already there is
    opened, not built. The same content in another order gives the same bytes (R18).

    Args:
        chunks: every chunk, also those without a proposition.
        propositions: their chunk ids must be among the chunks.
        encoder: embeds the texts now and the queries later.
        folder: where the index goes; must not hold anything else.
        extractor: name of what read the triplets, for the manifest.
        embeds_chunks: also embed `Chunk.passage` of every chunk.
        dtype: of the vectors on disk.
        role: how the encoder reads propositions. T2RAG's code embeds them as queries.
        is_embedded: all shards of vectors are there (see `vector_shards`); none is made here.
        progress: is called with the number of texts done, propositions and then chunks.

    Raises:
        MissingVectorsError: with `is_embedded`, some are not; the message lists them.
        ValueError: the folder holds an index, or half-made vectors, of other inputs (R28).
    """
    folder = Path(folder)
    tables = TripletTables.of(chunks, propositions)
    described = fingerprint(encoder)
    identity = identity_of(tables, described, dtype, role, extractor, embeds_chunks)
    if (folder / "manifest.json").exists():
        refuse_other(folder, identity)
        return load_index(folder, encoder)

    def make() -> Vectors:
        (texts, work), *rest = texts_to_embed(tables, folder, embeds_chunks)
        if is_embedded:
            _refuse_missing(folder, [(texts, work), *rest])
        vectors = embed(texts, encoder, work, role, progress).astype(dtype, copy=False)
        if not embeds_chunks:
            return vectors, None
        ((passages, work),) = rest
        after = _behind(len(set(texts)), progress)
        of_chunks = embed(passages, encoder, work, "passage", after)
        return vectors, of_chunks.astype(dtype, copy=False)

    return _write(folder, tables, identity, make)


def texts_to_embed(
    tables: TripletTables, folder: Path, embeds_chunks: bool
) -> list[tuple[list[str], Path]]:
    """What `build_index` embeds for an index at `folder`, and where the shards of vectors are.

    First the propositions, then the passages of the chunks if they are embedded.
    """
    found = [(tables.propositions["text"].to_pylist(), _work(folder) / "propositions")]
    if embeds_chunks:
        found.append(([chunk.passage for chunk in tables.all_chunks()], _work(folder) / "chunks"))
    return found


def clear_shards(folder: Path | str) -> None:
    """Removes the shards of vectors of an index.

    They go by one rename first, so that whoever still writes shards finds no folder to write to.
    """
    work = _work(Path(folder))
    with suppress(FileNotFoundError):
        aside = tempfile.mkdtemp(prefix=f".{work.name}.", dir=work.parent)
        try:
            os.rename(work, aside)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def add(
    index: TripletIndex,
    chunks: Iterable[Chunk],
    propositions: Iterable[Proposition],
    encoder: Encoder,
    folder: Path | str,
    *,
    progress: Progress = None,
) -> TripletIndex:
    """Writes a new index that also holds these documents; only what is new is embedded.

    Equal to `build_index` over all documents, up to the rounding of an encoder whose rows depend
    on the batch. A proposition that is known gains sources and keeps its vector.

    Raises:
        ValueError: another encoder, or a chunk id that is taken by another content.
    """
    check_encoder(index, encoder)
    tables = TripletTables.of(
        [*index.tables.all_chunks(), *chunks], [*index.tables.all_propositions(), *propositions]
    )
    work = _work(Path(folder))
    role = index.manifest["role"]

    def make() -> Vectors:
        vectors = _carry(
            index.tables.propositions["id"].to_pylist(),
            index.vectors,
            tables.propositions["id"].to_pylist(),
            tables.propositions["text"].to_pylist(),
            lambda texts: embed(texts, encoder, work / "propositions", role, progress),
        )
        if index.chunk_vectors is None:
            return vectors, None
        return vectors, _carry(
            index.tables.chunks["id"].to_pylist(),
            index.chunk_vectors,
            tables.chunks["id"].to_pylist(),
            [chunk.passage for chunk in tables.all_chunks()],
            lambda texts: embed(texts, encoder, work / "chunks", "passage", progress),
        )

    return _write(Path(folder), tables, _with_inputs(index, tables), make)


def delete(index: TripletIndex, document_ids: Collection[str], folder: Path | str) -> TripletIndex:
    """Writes a new index without these documents; nothing is embedded, many go in one pass.

    A proposition keeps its other sources and goes with its last one. Its confidence stays.

    Raises:
        ValueError: a document is not in the index.
    """
    gone = set(document_ids)
    all_chunks = index.tables.all_chunks()
    if unknown := sorted(gone - {chunk.document_id for chunk in all_chunks}):
        raise ValueError(
            f"documents {unknown} are not in {index.folder}, expected ids of its documents; "
            "leave them out"
        )
    kept = [chunk for chunk in all_chunks if chunk.document_id not in gone]
    kept_ids = {chunk.id for chunk in kept}
    propositions = [
        Proposition(old.id, old.triplet, old.text, sources)
        for old in index.tables.all_propositions()
        if (sources := tuple(name for name in old.chunk_ids if name in kept_ids))
    ]
    tables = TripletTables.of(kept, propositions)
    names = index.tables.propositions["id"].to_pylist()
    still = {proposition.id for proposition in propositions}
    rows = np.array([row for row, name in enumerate(names) if name in still], np.int64)
    chunk_rows = np.array([r for r, c in enumerate(all_chunks) if c.id in kept_ids], np.int64)
    chunk_vectors = None if index.chunk_vectors is None else index.chunk_vectors[chunk_rows]
    vectors = (index.vectors[rows], chunk_vectors)
    return _write(Path(folder), tables, _with_inputs(index, tables), lambda: vectors)


def _work(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.embedding")


def _carry(
    old_ids: Sequence[str],
    old: np.ndarray,
    ids: Sequence[str],
    texts: Sequence[str],
    embed_texts: Callable[[list[str]], np.ndarray],
) -> Float[np.ndarray, "rows dimension"]:
    """Old rows where an id is known, embedded ones elsewhere."""
    row_of = {name: row for row, name in enumerate(old_ids)}
    from_old = np.array([row_of.get(name, -1) for name in ids], np.int64)
    fresh = np.flatnonzero(from_old < 0)
    vectors = np.empty((len(ids), old.shape[1]), old.dtype)
    vectors[from_old >= 0] = old[from_old[from_old >= 0]]
    vectors[fresh] = embed_texts([texts[row] for row in fresh])
    _log.info("kept %d vectors, embedded %d", len(ids) - len(fresh), len(fresh))
    return vectors


def _with_inputs(index: TripletIndex, tables: TripletTables) -> dict[str, Any]:
    """The identity of an index that differs in its documents only."""
    manifest = index.manifest
    return identity_of(
        tables,
        manifest["encoder"],
        manifest["dtype"],
        manifest["role"],
        manifest["extractor"],
        manifest["embeds_chunks"],
    )


def _write(
    folder: Path,
    tables: TripletTables,
    identity: Mapping[str, Any],
    make: Callable[[], Vectors],
) -> TripletIndex:
    if (folder / "manifest.json").exists():
        refuse_other(folder, identity)
        return load_index(folder)
    try:
        save_index(folder, tables, *make(), identity)
    except FileNotFoundError:
        # Another run of the same was done first and took the shards away (R30).
        if not (folder / "manifest.json").exists():
            raise
        refuse_other(folder, identity)
    clear_shards(folder)
    return load_index(folder)


def _refuse_missing(folder: Path, parts: Sequence[tuple[list[str], Path]]) -> None:
    missing = {
        work.name: numbers for texts, work in parts if (numbers := missing_shards(texts, work))
    }
    if missing:
        listed = "; ".join(f"{name}: {numbers}" for name, numbers in missing.items())
        count = sum(map(len, missing.values()))
        raise MissingVectorsError(
            f"{count} shards of vectors for {folder} are not there ({listed}); submit the same "
            "again, which makes only these"
        )


def _behind(done: int, progress: Progress) -> Progress:
    """Progress of a second stage, counted on from the first."""
    return None if progress is None else lambda count: progress(done + count)
