"""The graph of phrases and passages over an index's triplets, as HippoRAG 2 builds it.

Phrases are the subjects and objects of triplets, by their normal form (R7); passages are chunks.
Source: "From RAG to Memory" (Gutierrez et al., 2025, section 3.2) and the code released with it.

Everything but the synonyms follows from the tables, in 0.2 s for 17,000 propositions. So the graph
is derived anew when it is opened, and adding and deleting documents cannot leave anything behind:
the graph of the new tables is the graph (R10). What is costly is kept: see `graph_store`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32, Int64, Integer

from triax.indexing.synonyms import Synonyms
from triax.indexing.tables import Sources, TripletTables
from triax.records.text import normalise


@dataclass(frozen=True, slots=True)
class PassageGraph:
    """An undirected weighted graph; each edge stands in both directions, parallel ones summed.

    Node i is phrase i; node `len(phrases) + row` is the chunk of that row. All components are
    kept (R14), and so are nodes without an edge.

    phrases: normal forms, sorted.
    sources, targets, weights: directed edges, sorted by target and then by source.
    chunk_counts: in how many chunks each phrase occurs.
    subjects, objects: the phrase of each proposition row; -1 where its normal form is empty.
    """

    phrases: tuple[str, ...]
    num_chunks: int
    sources: Int32[np.ndarray, "edges"]
    targets: Int32[np.ndarray, "edges"]
    weights: Float32[np.ndarray, "edges"]
    chunk_counts: Int32[np.ndarray, "phrases"]
    subjects: Int32[np.ndarray, "propositions"]
    objects: Int32[np.ndarray, "propositions"]
    synonyms: Synonyms | None = None

    @property
    def num_nodes(self) -> int:
        """Phrases and chunks together."""
        return len(self.phrases) + self.num_chunks


def phrases_of(tables: TripletTables) -> tuple[str, ...]:
    """The phrases of a graph: normal forms of subjects and objects, sorted, without the empty."""
    fields = (tables.propositions[name].to_pylist() for name in ("subject", "object"))
    return tuple(sorted({form for field in fields for form in map(normalise, field) if form}))


def build_graph(
    tables: TripletTables,
    synonyms: Synonyms | None = None,
    is_multigraph: bool = True,
    has_chunks: bool = True,
) -> PassageGraph:
    """Derives the graph from the tables of an index.

    A triplet joins its subject and object once for each chunk that states it; a chunk is joined
    to every phrase of its triplets; a phrase to those that it names as synonyms. What joins a
    phrase to itself is no edge.

    Args:
        tables: propositions and their sources.
        synonyms: of `phrases_of(tables)`.
        is_multigraph: weights as they are in HippoRAG 2, whose undirected graph holds both
            directions of an edge: 2 x count for triplets, the sum of the cosines that two phrases
            name each other with (mostly 2 x cosine), 1 for chunks. Otherwise count, cosine and 1.
            There a synonym edge replaces a triplet edge; here they add up.
        has_chunks: False leaves the edges of chunks out, as HippoRAG (1) does.

    Raises:
        ValueError: the synonyms are of other phrases (R28).
    """
    forms = [
        [normalise(text) for text in tables.propositions[name].to_pylist()]
        for name in ("subject", "object")
    ]
    phrases = tuple(sorted({form for field in forms for form in field if form}))
    if synonyms is not None and synonyms.phrases != phrases:
        raise ValueError(
            f"synonyms are of {len(synonyms.phrases)} phrases, the tables have other "
            f"{len(phrases)}; update them with update_synonyms"
        )
    row_of = {form: row for row, form in enumerate(phrases)}
    subjects, objects = (
        np.array([row_of.get(form, -1) for form in field], np.int64) for field in forms
    )
    size = len(phrases) + tables.sources.num_chunks
    chunks, members = mentions(tables.sources, subjects, objects)
    edges = [_triplet_edges(tables.sources, subjects, objects, 2.0 if is_multigraph else 1.0)]
    if has_chunks:
        edges.append((members, chunks + len(phrases), np.ones(len(chunks))))
    if synonyms is not None:
        edges.append(_synonym_edges(synonyms, is_multigraph))
    sources, targets, weights = _summed(edges, size)
    return PassageGraph(
        phrases,
        tables.sources.num_chunks,
        sources,
        targets,
        weights,
        np.bincount(members, minlength=len(phrases)).astype(np.int32),
        subjects.astype(np.int32),
        objects.astype(np.int32),
        synonyms,
    )


_Edges = tuple[np.ndarray, np.ndarray, np.ndarray]


def mentions(
    sources: Sources,
    subjects: Integer[np.ndarray, "propositions"],
    objects: Integer[np.ndarray, "propositions"],
) -> tuple[Int64[np.ndarray, "pairs"], Int64[np.ndarray, "pairs"]]:
    """Each (chunk row, phrase of one of its triplets) once, sorted."""
    rows = np.repeat(np.arange(len(subjects)), np.diff(sources.offsets))
    chunks = np.concatenate([sources.rows, sources.rows]).astype(np.int64)
    phrases = np.concatenate([subjects[rows], objects[rows]])
    pairs = np.unique(np.stack([chunks, phrases], axis=1)[phrases >= 0], axis=0)
    return pairs[:, 0], pairs[:, 1]


def _triplet_edges(
    sources: Sources, subjects: np.ndarray, objects: np.ndarray, weight: float
) -> _Edges:
    counts = np.diff(sources.offsets)
    joins = (subjects >= 0) & (objects >= 0) & (subjects != objects)
    return subjects[joins], objects[joins], weight * counts[joins]


def _synonym_edges(synonyms: Synonyms, is_multigraph: bool) -> _Edges:
    ours, theirs = synonyms.sources.astype(np.int64), synonyms.targets.astype(np.int64)
    cosines = synonyms.cosines.astype(np.float64)
    if is_multigraph:
        return ours, theirs, cosines
    # Once for both directions: a cosine is the same from either side.
    low, high = np.minimum(ours, theirs), np.maximum(ours, theirs)
    pairs, first = np.unique(np.stack([low, high], axis=1), axis=0, return_index=True)
    return pairs[:, 0], pairs[:, 1], cosines[first]


def _summed(edges: Iterable[_Edges], size: int) -> _Edges:
    """Both directions of every edge, parallel ones summed, sorted by target and source."""
    ours, theirs, weights = (np.concatenate(column) for column in zip(*edges))
    targets, sources = np.concatenate([ours, theirs]), np.concatenate([theirs, ours])
    keys, inverse = np.unique(targets * max(1, size) + sources, return_inverse=True)
    # In float64, and in the order of the tables: the same sums on every machine.
    totals = np.bincount(inverse, np.concatenate([weights, weights]), minlength=len(keys))
    targets, sources = np.divmod(keys, max(1, size))
    return sources.astype(np.int32), targets.astype(np.int32), totals.astype(np.float32)
