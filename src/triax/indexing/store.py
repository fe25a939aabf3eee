"""A triplet index as a folder: written whole or not at all, checked when it is opened (R5, R21).

    chunks.parquet         id, document_id, title, text, start
    propositions.parquet   id, subject, predicate, object, text, confidence, chunk_rows
    vectors.npy            one row a proposition
    chunk_vectors.npy      one row a chunk, where chunks were embedded
    manifest.json          schema, counts, hash and size of each file, encoder, extractor, inputs

A folder is never changed once it is there: readers need no lock, and an update is a new folder.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from jaxtyping import Float

from triax.indexing.embedding import fingerprint, refuse_mismatch
from triax.indexing.tables import TripletTables
from triax.records.files import write_json
from triax.records.verbs import Encoder, TextRole

SCHEMA = 1
# Two encoders that differ by rounding, or by float16 on disk, stay far below this; two that differ
# by weights, pooling or normalisation stay far above.
_PROBE_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class TripletIndex:
    """An opened index. Vectors are memory-mapped; row i of each belongs to row i of its table."""

    tables: TripletTables
    vectors: Float[np.ndarray, "propositions dimension"]
    chunk_vectors: Float[np.ndarray, "chunks dimension"] | None
    manifest: Mapping[str, Any]
    folder: Path


def identity_of(
    tables: TripletTables,
    encoder: Mapping[str, Any],
    dtype: str,
    role: TextRole,
    extractor: str,
    embeds_chunks: bool,
) -> dict[str, Any]:
    """What an index is made from: two indexes with the same identity answer alike (R28).

    `encoder` is its fingerprint, `dtype` that of the vectors on disk, `role` the one in which the
    propositions were read.
    """
    return {
        "schema": SCHEMA,
        "encoder": dict(encoder),
        "dtype": dtype,
        "role": role,
        "extractor": extractor,
        "embeds_chunks": embeds_chunks,
        "inputs": tables.digests(),
    }


def save_index(
    folder: Path | str,
    tables: TripletTables,
    vectors: Float[np.ndarray, "propositions dimension"],
    chunk_vectors: Float[np.ndarray, "chunks dimension"] | None,
    identity: Mapping[str, Any],
) -> None:
    """Writes an index beside `folder` and renames it into place.

    Where another writer was first with the same identity, its index stands and this one goes (R30).

    Raises:
        ValueError: the folder holds an index of another identity.
        FileExistsError: the folder holds something else.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        pq.write_table(tables.chunks, temporary / "chunks.parquet", compression="zstd")
        pq.write_table(tables.propositions, temporary / "propositions.parquet", compression="zstd")
        np.save(temporary / "vectors.npy", vectors)
        if chunk_vectors is not None:
            np.save(temporary / "chunk_vectors.npy", chunk_vectors)
        files = {path.name: _sync(path) for path in sorted(temporary.iterdir())}
        manifest = {
            **identity,
            "files": files,
            "normalisation": _normalisation(vectors),
            "counts": {
                "chunks": tables.chunks.num_rows,
                "propositions": tables.propositions.num_rows,
                "sources": len(tables.sources.rows),
            },
        }
        write_json(temporary / "manifest.json", manifest)
        os.chmod(temporary, 0o755)
        _rename(temporary, folder, identity)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load_index(
    folder: Path | str, encoder: Encoder | None = None, is_verified: bool = True
) -> TripletIndex:
    """Opens an index.

    Args:
        folder: what `build_index`, `add` or `delete` wrote.
        encoder: the one that will embed the queries. Its fingerprint must be that of the manifest,
            and it must give one stored row again.
        is_verified: compare the hash of every file. Sizes are compared in any case.

    Raises:
        FileNotFoundError: there is no index.
        ValueError: a file is truncated or altered, the schema is another, or the encoder is.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    for name, expected in manifest["files"].items():
        path = folder / name
        size = path.stat().st_size if path.exists() else None
        if size != expected["bytes"]:
            raise ValueError(
                f"{path} has {size} bytes, expected {expected['bytes']}; copy it or build it again"
            )
        if is_verified and (found := _hash(path)) != expected["sha256"]:
            raise ValueError(
                f"{path} was altered: sha256 {found}, expected {expected['sha256']}; "
                "copy it or build it again"
            )
    tables = TripletTables.from_arrow(
        pq.read_table(folder / "chunks.parquet"), pq.read_table(folder / "propositions.parquet")
    )
    vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    chunk_vectors = None
    if manifest["embeds_chunks"]:
        chunk_vectors = np.load(folder / "chunk_vectors.npy", mmap_mode="r", allow_pickle=False)
    index = TripletIndex(tables, vectors, chunk_vectors, manifest, folder)
    if encoder is not None:
        check_encoder(index, encoder)
    return index


def read_manifest(folder: Path | str) -> dict[str, Any]:
    """Reads what an index says of itself.

    Raises:
        FileNotFoundError: there is no index.
        ValueError: it was written in another schema.
    """
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise FileNotFoundError(f"{folder} holds no manifest.json, expected an index; build it")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if manifest.get("schema") != SCHEMA:
        raise ValueError(
            f"{folder} has schema {manifest.get('schema')!r}, expected {SCHEMA}; build it again"
        )
    return manifest


def check_encoder(index: TripletIndex, encoder: Encoder, probes: bool = True) -> None:
    """Makes sure that queries and propositions will live in one space.

    With `probes` one stored text is embedded again: the name cannot tell other weights, pooling or
    normalisation, one row can.

    Raises:
        ValueError: another fingerprint, or other vectors for the same text.
    """
    fix = "open it with the encoder it was built with, or build it again with this one"
    refuse_mismatch(index.folder, index.manifest["encoder"], fingerprint(encoder), fix)
    if not probes or not len(index.vectors):
        return
    text = index.tables.propositions["text"][0].as_py()
    row = np.asarray(encoder.encode([text], index.manifest["role"]), np.float32)[0]
    apart = float(np.abs(row - index.vectors[0].astype(np.float32)).max())
    if not apart <= _PROBE_TOLERANCE:
        raise ValueError(
            f"encoder {encoder.name!r} (norm {np.linalg.norm(row):.4g}) gives another vector for "
            f"{text[:60]!r} than {index.folder} holds (norm "
            f"{np.linalg.norm(index.vectors[0].astype(np.float32)):.4g}, apart by {apart:.3g}, "
            f"expected at most {_PROBE_TOLERANCE}); {fix}"
        )


def _rename(temporary: Path, folder: Path, identity: Mapping[str, Any]) -> None:
    try:
        os.rename(temporary, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        if not (folder / "manifest.json").exists():
            raise FileExistsError(
                f"{folder} exists and is no index; choose another folder, or clear it"
            ) from None
        refuse_other(folder, identity)
        return
    handle = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_other(folder: Path, identity: Mapping[str, Any]) -> None:
    """Compares an existing index with the identity of the one that is asked for.

    Raises:
        ValueError: they differ.
    """
    manifest = read_manifest(folder)
    stored = {key: manifest.get(key) for key in identity}
    refuse_mismatch(folder, stored, identity, "choose another folder, or delete this one")


def _sync(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return {"sha256": _hash(path), "bytes": path.stat().st_size}


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _normalisation(vectors: np.ndarray) -> str:
    for start in range(0, len(vectors), 65536):
        norms = np.linalg.norm(vectors[start : start + 65536].astype(np.float32), axis=1)
        if not np.all((np.abs(norms - 1) < 2e-3) | (norms == 0)):
            return "none"
    return "l2"
