"""The costly part of a graph, kept beside its index: vectors and synonyms of the phrases.

    <index>.graph/vectors.npy                one row a phrase
    <index>.graph/graph-<hash>.npz           synonym pairs of one rule
    <index>.graph/manifest.json              encoder, phrases

An index never changes once it is there, so neither does this; another rule is another file.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from triax.indexing.embedding import embed, fingerprint, refuse_mismatch
from triax.indexing.graph import PassageGraph, build_graph, phrases_of
from triax.indexing.store import TripletIndex
from triax.indexing.synonyms import SynonymRule, Synonyms, find_synonyms, update_synonyms
from triax.records.files import atomic_write, write_json
from triax.records.verbs import Encoder
from triax.tracking.progress import track

SCHEMA = 1
_log = logging.getLogger(__name__)


def graph_folder(index: TripletIndex) -> Path:
    """Where what belongs to an index's graph is kept."""
    return index.folder.with_name(f"{index.folder.name}.graph")


def open_graph(
    index: TripletIndex,
    encoder: Encoder | None = None,
    rule: SynonymRule | None = None,
    *,
    is_multigraph: bool = True,
    has_chunks: bool = True,
    previous: Synonyms | None = None,
) -> PassageGraph:
    """The graph of an index; its phrases are embedded and compared the first time.

    Args:
        index: an opened index.
        encoder: embeds phrases; not needed without a rule.
        rule: when phrases are synonyms; None leaves synonyms out.
        is_multigraph, has_chunks: as for `build_graph`.
        previous: synonyms of the index that this one was made from by `add` or `delete`; then
            only new phrases are embedded and compared.

    Raises:
        ValueError: the stored vectors are of another encoder or of other phrases (R28).
    """
    synonyms = None
    if rule is not None:
        if encoder is None:
            raise ValueError("a rule for synonyms needs an encoder; give one, or rule=None")
        synonyms = open_synonyms(index, encoder, rule, previous)
    return build_graph(index.tables, synonyms, is_multigraph, has_chunks)


def open_synonyms(
    index: TripletIndex,
    encoder: Encoder,
    rule: SynonymRule,
    previous: Synonyms | None = None,
) -> Synonyms:
    """Reads the synonyms of an index's phrases, or finds and writes them, telling how far it is."""
    folder = graph_folder(index)
    phrases = phrases_of(index.tables)
    given = {
        "schema": SCHEMA,
        "encoder": fingerprint(encoder),
        "num_phrases": len(phrases),
        "phrases_sha256": hashlib.sha256("\n".join(phrases).encode("utf-8")).hexdigest(),
    }
    manifest, vectors_file = folder / "manifest.json", folder / "vectors.npy"
    pairs_file = folder / f"graph-{_short(asdict(rule))}.npz"
    if manifest.exists():
        fix = "open it with the encoder it was built with, or delete this folder"
        refuse_mismatch(folder, json.loads(manifest.read_text(encoding="utf-8")), given, fix)
        vectors = np.load(vectors_file, mmap_mode="r", allow_pickle=False)
        if pairs_file.exists():
            with np.load(pairs_file, allow_pickle=False) as pairs:
                columns = (pairs[name] for name in ("sources", "targets", "cosines"))
                return Synonyms(phrases, vectors, *columns, rule)
        found = _find(phrases, vectors, rule)
    else:
        work = folder / "embedding"

        def embed_phrases(texts: list[str]) -> np.ndarray:
            with track("phrases embedded", len(texts)) as progress:
                return embed(texts, encoder, work, "passage", progress)

        if previous is not None and previous.rule == rule:
            found = update_synonyms(previous, phrases, embed_phrases)
        else:
            found = _find(phrases, embed_phrases(list(phrases)), rule)
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(vectors_file, "wb") as stream:
            np.save(stream, found.vectors)
    with atomic_write(pairs_file, "wb") as stream:
        np.savez(stream, sources=found.sources, targets=found.targets, cosines=found.cosines)
    # Last: with the manifest, all is there (R4).
    write_json(manifest, given)
    shutil.rmtree(folder / "embedding", ignore_errors=True)
    _log.info("%d phrases, %d synonym pairs in %s", len(phrases), len(found.sources), folder)
    return found


def _find(phrases: Sequence[str], vectors: np.ndarray, rule: SynonymRule) -> Synonyms:
    with track("phrases compared", len(phrases)) as progress:
        return find_synonyms(phrases, vectors, rule, progress)


def _short(value: dict) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()[:12]
