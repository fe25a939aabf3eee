"""Nearest propositions by FAISS: flat (exact) or inverted lists (approximate)."""

import importlib
import importlib.metadata
import logging
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32

from triax.indexing.search import Candidates
from triax.indexing.tables import Sources

# faiss's k-selection on a GPU goes no further.
_GPU_DEPTH = 2048
_log = logging.getLogger(__name__)


class FaissSearch:
    """An inner-product index of faiss behind the same walk.

    faiss cannot stop at a number of chunks: it is asked for more rows, twice as many each time,
    until the walk is settled. With `lists` None the result is that of `FlatSearch`.
    """

    def __init__(
        self,
        vectors: Float[np.ndarray, "rows dimension"],
        sources: Sources,
        lists: int | None = None,
        probes: int = 16,
        device: Literal["auto", "cpu", "gpu"] = "auto",
        seed: int = 0,
    ) -> None:
        """Builds the index in memory, 4 bytes a component.

        Args:
            vectors: one row a proposition.
            sources: not needed here; each engine is made from vectors and sources.
            lists: number of inverted lists; None means flat. About 4 sqrt(rows) is usual.
            probes: lists that are read for each query.
            device: auto takes a GPU if faiss sees one.
            seed: of the k-means that makes the lists.

        Raises:
            ImportError: faiss is not installed, or two of its distributions are.
            ValueError: a GPU is asked for and faiss sees none, or there are more lists than rows.
        """
        faiss = import_faiss()
        dimension = vectors.shape[1]
        rows = np.ascontiguousarray(vectors, np.float32)
        self._num_rows = len(rows)
        self._index: Any = faiss.IndexFlatIP(dimension)
        if lists is not None:
            if not 1 <= lists <= max(1, len(rows)):
                raise ValueError(
                    f"{lists} lists for {len(rows)} rows, expected 1 to {max(1, len(rows))}; "
                    "take about 4 sqrt(rows), or None for the flat index"
                )
            self._quantizer = self._index  # faiss keeps a pointer to it, not a reference
            self._index = faiss.IndexIVFFlat(
                self._quantizer, dimension, lists, faiss.METRIC_INNER_PRODUCT
            )
            self._index.cp.seed = seed
            self._index.cp.min_points_per_centroid = 1
            self._index.nprobe = min(probes, lists)
            if len(rows):
                self._index.train(rows)
        self._index.add(rows)
        self._on_gpu = self._copy_to_gpu(faiss, device)

    def nearest(
        self, groups: Sequence[Float32[np.ndarray, "_ dimension"]], depth: int
    ) -> list[Candidates]:
        """The `depth` best rows of each query; a group gets those of all its queries."""
        depth = min(depth, self._num_rows)
        on_gpu = self._on_gpu is not None and depth <= _GPU_DEPTH
        index = self._on_gpu if on_gpu else self._index
        scores, rows = index.search(np.ascontiguousarray(np.concatenate(groups)), depth)
        results: list[Candidates] = []
        end = 0
        for group in groups:
            start, end = end, end + len(group)
            found = np.unique(rows[start:end])
            # A row that is missing is below the last of every query; a query whose lists ran out
            # (-1) can give no more, so it bounds nothing.
            full = rows[start:end, -1] >= 0
            is_all = depth >= self._num_rows or not full.any()
            bound = -np.inf if is_all else float(scores[start:end, -1][full].max())
            results.append((found[found >= 0].astype(np.int64), bound))
        return results

    def deepen(
        self,
        groups: Sequence[Float32[np.ndarray, "_ dimension"]],
        num_chunks: int,
        depth: int,
        floor: float,
    ) -> int:
        """Twice the depth."""
        return 2 * depth

    def _copy_to_gpu(self, faiss: Any, device: str) -> Any:
        gpus = faiss.get_num_gpus() if hasattr(faiss, "get_num_gpus") else 0
        if device == "cpu" or (device == "auto" and not gpus):
            return None
        if not gpus:
            raise ValueError(
                'device is "gpu" but faiss sees none; install triax[gpu] instead of triax[cpu], '
                'or take device="cpu"'
            )
        self._resources = faiss.StandardGpuResources()
        _log.info("copying %d vectors to GPU 0 for faiss", self._num_rows)
        return faiss.index_cpu_to_gpu(self._resources, 0, self._index)


def import_faiss() -> Any:
    """Imports faiss, once it is clear which one that is.

    Raises:
        ImportError: no distribution gives it, or more than one does: they overwrite each other's
            files, and which one runs is left to chance.
    """
    installed = importlib.metadata.packages_distributions().get("faiss", [])
    found = sorted(set(installed))
    if len(found) > 1:
        raise ImportError(
            f"{len(found)} distributions of faiss are installed ({', '.join(found)}), expected "
            "one; uninstall all and install triax[cpu] or triax[gpu]"
        )
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise ImportError(
            f"faiss cannot be imported ({error}); install triax[cpu] or triax[gpu], or use "
            "triax.indexing.flat"
        ) from None
