"""How a tree of summaries grows, layer by layer, in a folder.

    layer-1/clusters.json     what each summary is made of: ids of the layer below, by its own id
    layer-1/summaries.jsonl   one row a summary, in the order in which they were written
    layer-1/vectors.npy       one row a summary, by id; with it the layer is finished
    layer-2/...

Chunks are clustered, each cluster becomes a summary, the summaries are clustered, and so on. A
kill costs one batch of summaries. A summary that the language model failed to write is replaced by
the extractive one, and its row says why; where too many fail, the growth ends with an error and
keeps what it has.

Source: "RAPTOR" (Sarthi et al., ICLR 2024, section 3) and the code released with it.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64

from triax.indexing.embedding import embed
from triax.indexing.mixtures import Mixing, bounded_clusters
from triax.indexing.summaries import ExtractiveSummarizer, Member, Summarizer
from triax.records.files import atomic_write, write_json
from triax.records.trace_json import usage_from_json, usage_to_json
from triax.records.usage import Usage
from triax.records.verbs import Encoder, TokenCounter
from triax.runs.items import ItemLog
from triax.tracking.progress import track

CLUSTERS, SUMMARIES, VECTORS = "clusters.json", "summaries.jsonl", "vectors.npy"
_log = logging.getLogger(__name__)


class SummaryError(RuntimeError):
    """Too many summaries could not be written."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How a tree grows; the numbers are those of RAPTOR's code.

    num_layers: of summaries, at most. A layer of `mixing.dimension` + 1 nodes is the last; so is
        one that would get no fewer summaries than it has nodes.
    max_cluster_tokens: of the texts that a summary is made of. A larger cluster is divided; a
        text that is longer by itself is cut.
    mixing: how vectors are clustered.
    """

    num_layers: int = 5
    max_cluster_tokens: int = 3500
    mixing: Mixing = field(default_factory=Mixing)


@dataclass(frozen=True, slots=True)
class Layer:
    """Nodes of one layer, by id, as the next one is made of them."""

    ids: tuple[str, ...]
    members: tuple[Member, ...]
    tokens: Int64[np.ndarray, "nodes"]
    vectors: Float32[np.ndarray, "nodes dimension"]


@dataclass(frozen=True, slots=True)
class Grower:
    """Writes layer upon layer into a folder."""

    encoder: Encoder
    summarizer: Summarizer
    counter: TokenCounter
    growth: Growth
    batch_size: int
    max_failed: float
    folder: Path

    def grow(self, layer: Layer) -> Usage:
        """Adds layers until there are enough; returns what they cost."""
        cost = Usage()
        for number in range(1, self.growth.num_layers + 1):
            if len(layer.ids) <= self.growth.mixing.dimension + 1:
                break
            place = self.folder / f"layer-{number}"
            clusters = self._clusters(place / CLUSTERS, number, layer)
            if len(clusters) >= len(layer.ids):
                break
            log = ItemLog(place / SUMMARIES)
            if not (place / VECTORS).exists():
                self._write(number, log, layer, clusters)
            rows = log.rows()
            cost = sum((usage_from_json(row["usage"]) for row in rows.values()), cost)
            texts = [rows[key]["text"] for key in clusters]
            layer = Layer(
                tuple(clusters),
                tuple(map(Member, texts)),
                np.array(self.counter.count(texts), np.int64),
                self._embedded(number, place, texts),
            )
        return cost

    def _clusters(self, path: Path, number: int, layer: Layer) -> dict[str, list[str]]:
        """The children of each summary of the next layer, by its id; written where it will grow."""
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        _log.info("layer %d: clustering %d nodes", number, len(layer.ids))
        found = bounded_clusters(
            layer.vectors, layer.tokens, self.growth.max_cluster_tokens, self.growth.mixing
        )
        clusters = [[layer.ids[row] for row in rows] for rows in found]
        named = dict(sorted((_id(number, children), children) for children in clusters))
        if len(named) < len(layer.ids):
            write_json(path, named)
        return named

    def _write(
        self, number: int, log: ItemLog, layer: Layer, clusters: Mapping[str, Sequence[str]]
    ) -> None:
        """Writes what is not written; failed calls are made again."""
        member_of, rows = dict(zip(layer.ids, layer.members, strict=True)), log.rows()
        left = [key for key in clusters if key not in rows or rows[key]["is_failed"]]
        num_done = len(clusters) - len(left)
        with track(f"summaries of layer {number}", len(clusters)) as progress:
            self._refuse(log, rows, left)
            for start in range(0, len(left), self.batch_size):
                batch = left[start : start + self.batch_size]
                members = [self._cut([member_of[one] for one in clusters[key]]) for key in batch]
                written = list(self._rows(batch, members, rows))
                log.append(written)
                rows.update((row["id"], row) for row in written)
                progress(num_done + start + len(batch))
                self._refuse(log, rows, left[start + len(batch) :])

    def _cut(self, members: Sequence[Member]) -> list[Member]:
        if len(members) > 1:  # they fit, or they would not be together
            return list(members)
        (one,) = members
        return [Member(self.counter.cut(one.text, self.growth.max_cluster_tokens), one.title)]

    def _rows(
        self,
        keys: Sequence[str],
        members: Sequence[Sequence[Member]],
        earlier: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[dict[str, Any]]:
        replies = self.summarizer.summarise(members)
        for key, texts, reply in zip(keys, members, replies, strict=True):
            text, usage = reply.value, reply.usage
            if text is None:
                text = ExtractiveSummarizer(self.counter).summarise([texts])[0].value
            if key in earlier:
                usage = usage_from_json(earlier[key]["usage"]) + usage
            yield {
                "id": key,
                "text": text,
                "error": reply.error,
                "is_failed": reply.is_failed,
                "usage": usage_to_json(usage),
            }

    def _refuse(
        self, log: ItemLog, rows: Mapping[str, Mapping[str, Any]], waiting: Collection[str]
    ) -> None:
        # What failed in an earlier call says nothing before it was tried again.
        errors = [rows[key]["error"] for key in rows.keys() - set(waiting) if rows[key]["error"]]
        num_all = len(rows.keys() | set(waiting))
        if len(errors) > self.max_failed * num_all:
            raise SummaryError(
                f"{len(errors)} of {num_all} summaries failed, more than "
                f"max_failed={self.max_failed}, one of them with: {min(errors)}. What was written "
                f"is in {log.path}; run again to ask once more where the call failed, or raise "
                "max_failed to take the extractive summary instead"
            )

    def _embedded(
        self, number: int, place: Path, texts: Sequence[str]
    ) -> Float32[np.ndarray, "nodes dimension"]:
        path = place / VECTORS
        if not path.exists():
            # By their content: a summary that was asked for once more is another text.
            digest = hashlib.sha256("\0".join(texts).encode("utf-8")).hexdigest()[:16]
            shards = place / f"shards-{digest}"
            with track(f"vectors of layer {number}", len(texts)) as progress:
                vectors = embed(texts, self.encoder, shards, "passage", progress)
            with atomic_write(path, "wb") as stream:
                np.save(stream, vectors)
        for shards in place.glob("shards-*"):
            shutil.rmtree(shards)
        return np.load(path, allow_pickle=False)


def _id(number: int, children: Sequence[str]) -> str:
    text = "\0".join([str(number), *children])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
