"""Entities and their relations, merged over all chunks, as GraphRAG and LightRAG have them.

An entity is a subject or object by its normal form (R7), as in `graph`; a relation is a pair of
entities, whichever of them is the subject, with all propositions that join them. Both systems have
a language model write entities, types and descriptions; here both stand on the triplets of the
index, so that all systems share one extraction: a description is what the propositions say.

Sources: "From Local to Global" (Edge et al., 2024, section 3.1); "LightRAG" (Guo et al., 2024,
section 3.1); incidence matrices as in fast-graphrag.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Int32, Int64, Integer

from triax.indexing.derived import open_derived
from triax.indexing.embedding import embed, fingerprint
from triax.indexing.store import TripletIndex
from triax.indexing.tables import TripletTables
from triax.records.files import atomic_write
from triax.records.text import normalise
from triax.records.usage import Usage
from triax.records.verbs import Encoder
from triax.tracking.progress import track

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """An undirected graph without parallel edges; rows are in the order of normal forms.

    entities: normal forms, sorted; as `graph.PassageGraph.phrases`.
    names: the way that each is written most often.
    heads, tails: the two entities of each relation, heads < tails; relations are sorted by them.
    weights: how often each relation is stated: a proposition counts once for each of its chunks.
    statements: [relations, propositions], 1 where the proposition joins the two.
    mentions: [entities, propositions], 1 where it is subject or object.
    relation_chunks: [relations, chunks], how many propositions of the chunk state the relation.
    entity_chunks: [entities, chunks], how many propositions of the chunk mention the entity.
    """

    entities: tuple[str, ...]
    names: tuple[str, ...]
    heads: Int32[np.ndarray, "relations"]
    tails: Int32[np.ndarray, "relations"]
    weights: Float32[np.ndarray, "relations"]
    statements: "csr_array"
    mentions: "csr_array"
    relation_chunks: "csr_array"
    entity_chunks: "csr_array"

    @property
    def incidence(self) -> "csr_array":
        """[entities, relations], 1 where the entity is one of the two."""
        both = np.concatenate([self.heads, self.tails])
        relations = np.tile(np.arange(len(self.heads)), 2)
        return _ones(both, relations, (len(self.entities), len(self.heads)))

    @property
    def degrees(self) -> Int64[np.ndarray, "entities"]:
        """The number of relations of each entity."""
        both = np.concatenate([self.heads, self.tails])
        return np.bincount(both, minlength=len(self.entities)).astype(np.int64)


def build_entity_graph(tables: TripletTables) -> EntityGraph:
    """Merges the propositions of an index into entities and relations.

    What joins an entity to itself, or to a text without a letter, is no relation, but counts as a
    mention. All components are kept (R14).
    """
    texts = [tables.propositions[name].to_pylist() for name in ("subject", "object")]
    forms = [[normalise(text) for text in field] for field in texts]
    entities = tuple(sorted({form for field in forms for form in field if form}))
    row_of = {form: row for row, form in enumerate(entities)}
    ends = np.array([[row_of.get(form, -1) for form in field] for field in forms], np.int64)
    ends = ends.reshape(2, -1)
    num_propositions, num_chunks = ends.shape[1], tables.sources.num_chunks
    joins = np.flatnonzero((ends >= 0).all(axis=0) & (ends[0] != ends[1]))
    pairs, relation_of = np.unique(np.sort(ends[:, joins], axis=0), axis=1, return_inverse=True)
    statements = _ones(relation_of.reshape(-1), joins, (pairs.shape[1], num_propositions))
    places = np.tile(np.arange(num_propositions), 2)
    known = ends.reshape(-1) >= 0
    mentions = _ones(
        ends.reshape(-1)[known], places[known], (len(entities), num_propositions)
    ).minimum(1)
    counts = np.diff(tables.sources.offsets)
    rows = np.repeat(np.arange(num_propositions), counts)
    sources = _ones(rows, tables.sources.rows, (num_propositions, num_chunks))
    return EntityGraph(
        entities,
        _names(entities, texts, forms),
        pairs[0].astype(np.int32),
        pairs[1].astype(np.int32),
        (statements @ counts.astype(np.float32)).astype(np.float32),
        statements,
        mentions,
        (statements @ sources).tocsr(),
        (mentions @ sources).tocsr(),
    )


def entity_texts(graph: EntityGraph, tables: TripletTables) -> list[str]:
    """Name and description of each entity: what is said of it, the most often stated first."""
    return [
        "\n".join([name, *said])
        for name, said in zip(graph.names, _said(graph.mentions, tables), strict=True)
    ]


def relation_texts(graph: EntityGraph, tables: TripletTables) -> list[str]:
    """Keywords (the predicates), the two names, and what is said, as LightRAG embeds a relation."""
    predicates = tables.propositions["predicate"].to_pylist()
    texts = []
    for relation, said in enumerate(_said(graph.statements, tables)):
        rows = _row(graph.statements, relation)
        keywords = ", ".join(dict.fromkeys(predicates[row] for row in rows.tolist()))
        pair = (graph.names[graph.heads[relation]], graph.names[graph.tails[relation]])
        texts.append("\n".join([keywords, *pair, *said]))
    return texts


def open_text_vectors(
    index: TripletIndex, encoder: Encoder, kind: str, texts: Sequence[str]
) -> Float32[np.ndarray, "texts dimension"]:
    """Vectors of texts that follow from an index, such as descriptions; embedded the first time.

    Args:
        index: what the texts were made of.
        encoder: the one of the index.
        kind: names the texts, in one word.
        texts: in row order; other texts are other vectors.
    """

    def build(folder: Path) -> Usage:
        with track(f"{kind} embedded", len(texts)) as progress:
            vectors = embed(texts, encoder, folder / "shards", "passage", progress)
        with atomic_write(folder / "vectors.npy", "wb") as stream:
            np.save(stream, np.asarray(vectors, np.float32))
        return Usage()

    digest = hashlib.sha256("\0".join(texts).encode("utf-8")).hexdigest()
    settings = {"encoder": fingerprint(encoder), "texts_sha256": digest}
    found = open_derived(index, kind, settings, build)
    return np.load(found.folder / "vectors.npy", mmap_mode="r", allow_pickle=False)


def _said(places: "csr_array", tables: TripletTables) -> list[list[str]]:
    """The texts of each row's propositions, the most often stated first, equal ones by row."""
    texts = tables.propositions["text"].to_pylist()
    counts = np.diff(tables.sources.offsets)
    found = []
    for row in range(places.shape[0]):
        rows = _row(places, row)
        found.append([texts[one] for one in rows[np.lexsort((rows, -counts[rows]))].tolist()])
    return found


def _row(matrix: "csr_array", row: int) -> Integer[np.ndarray, "found"]:
    """The columns of a row, ascending."""
    return np.sort(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]])


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> "csr_array":
    """A sparse matrix of counts; entries of the same place are summed."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)


def _names(
    entities: Sequence[str], texts: Sequence[Sequence[str]], forms: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    written: dict[str, Counter[str]] = {form: Counter() for form in entities}
    for field, normal in zip(texts, forms):
        for text, form in zip(field, normal):
            if form:
                written[form][text.strip()] += 1
    return tuple(min(written[form], key=lambda t, c=written[form]: (-c[t], t)) for form in entities)
