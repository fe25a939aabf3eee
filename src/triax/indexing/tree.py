"""The tree of summaries over the chunks of an index, kept beside it, as in RAPTOR.

Source: "RAPTOR" (Sarthi et al., ICLR 2024, section 3) and the code released with it.
"""

import json
import logging
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from triax.indexing.derived import open_derived
from triax.indexing.embedding import fingerprint
from triax.indexing.store import TripletIndex, check_encoder
from triax.indexing.summaries import Member, Summarizer
from triax.indexing.tree_layers import CLUSTERS, SUMMARIES, VECTORS, Grower, Growth, Layer
from triax.records.usage import Usage
from triax.records.verbs import Encoder, TokenCounter
from triax.runs.items import ItemLog

KIND = "tree"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Summary:
    """A node above the chunks.

    id: follows from its layer and its children.
    layer: 1 right above the chunks.
    children: ids of chunks at layer 1, above it of summaries of the layer below; ascending.
    chunk_ids: all chunks below it, ascending.
    error: why the language model's text was replaced by the extractive one; "" where it was not.
    """

    id: str
    layer: int
    text: str
    children: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class SummaryTree:
    """All summaries of an index by layer, then by id; their vectors; what they cost."""

    summaries: tuple[Summary, ...]
    vectors: Float[np.ndarray, "summaries dimension"]
    index_cost: Usage = Usage()
    reads_triplets: ClassVar[bool] = False


def open_tree(
    index: TripletIndex,
    encoder: Encoder,
    summarizer: Summarizer,
    counter: TokenCounter,
    growth: Growth,
    batch_size: int = 64,
    max_failed: float = 0.05,
) -> SummaryTree:
    """The tree of an index; grown the first time, taken up again after a kill (R4).

    Args:
        index: with chunk vectors.
        encoder: the one of the index; embeds summaries.
        summarizer: writes them.
        counter: counts the tokens of a cluster.
        growth: the numbers of the method.
        batch_size: summaries that are asked for together; the most that a kill loses.
        max_failed: the largest share of a layer's summaries that may have failed.

    Raises:
        ValueError: the index has no chunk vectors, or was built with another encoder.
        SummaryError: more failed. The next call asks again for those whose calls failed.
        ImportError: scikit-learn, or umap-learn for reduction "umap", is not installed.
    """
    if index.chunk_vectors is None:
        raise ValueError(
            f"{index.folder} has no chunk vectors, which a tree is grown from; build it with "
            "embeds_chunks=True"
        )
    check_encoder(index, encoder, probes=False)
    settings = {
        "summarizer": dict(summarizer.config),
        "counter": getattr(counter, "model", None) or repr(counter),
        "encoder": fingerprint(encoder),
        "growth": asdict(growth),
    }

    def build(folder: Path) -> Usage:
        grower = Grower(encoder, summarizer, counter, growth, batch_size, max_failed, folder)
        return grower.grow(_leaves(index, counter))

    found = open_derived(index, KIND, settings, build)
    tree = _read(found.folder, index, found.cost)
    if num_failed := sum(bool(one.error) for one in tree.summaries):
        _log.warning("%d of %d summaries failed", num_failed, len(tree.summaries))
    return tree


def _leaves(index: TripletIndex, counter: TokenCounter) -> Layer:
    chunks = index.tables.all_chunks()
    return Layer(
        tuple(chunk.id for chunk in chunks),
        tuple(Member(chunk.text, chunk.title) for chunk in chunks),
        np.array(counter.count([chunk.passage for chunk in chunks]), np.int64),
        np.asarray(index.chunk_vectors, np.float32),
    )


def _read(folder: Path, index: TripletIndex, cost: Usage) -> SummaryTree:
    """The layers of a finished tree."""
    summaries: list[Summary] = []
    vectors = [np.zeros((0, index.chunk_vectors.shape[1]), np.float32)]
    below = {one: (one,) for one in index.tables.chunks["id"].to_pylist()}
    for number in count(1):
        place = folder / f"layer-{number}"
        if not (place / VECTORS).exists():
            return SummaryTree(tuple(summaries), np.concatenate(vectors), cost)
        clusters = json.loads((place / CLUSTERS).read_text(encoding="utf-8"))
        rows = ItemLog(place / SUMMARIES).rows()
        above = {
            key: tuple(sorted({chunk for one in children for chunk in below[one]}))
            for key, children in clusters.items()
        }
        summaries += [
            Summary(key, number, rows[key]["text"], tuple(children), above[key], rows[key]["error"])
            for key, children in clusters.items()
        ]
        vectors.append(np.load(place / VECTORS, allow_pickle=False))
        below = above
