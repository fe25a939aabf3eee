"""Nearest propositions in FAISS shards on disk, or in the one file that they were merged to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32, Int64

from triax.indexing.faiss_plan import (
    INDEX_FILE,
    MERGED,
    FaissPlan,
    import_faiss,
    lists_of,
    plan_shards,
    read_part,
    shard_name,
)
from triax.indexing.faiss_shards import LISTS_FILE, check_training, hash_rows
from triax.indexing.search import Candidates
from triax.indexing.tables import Sources

Source = Literal["auto", "merged", "shards"]


class ShardedSearch:
    """Searches what `triax.indexing.faiss_shards` built, behind the same walk as every engine.

    Files are memory-mapped: what the probed lists need is read, and stays in the page cache. Found
    rows get exact scores from the index's vectors in `search`; codes only choose them. The result
    is that of `FlatSearch` where all lists are probed and the codes are the vectors themselves
    ("Flat", "IVF64,Flat"). With shorter codes the bound is one of approximate scores, so a row may
    be missed whose code is worse than its vector: `rescored` is the remedy.
    """

    def __init__(
        self,
        vectors: Float[np.ndarray, "rows dimension"],
        sources: Sources,
        factory: str,
        shards: int = 1,
        sample: int | None = None,
        seed: int = 0,
        probes: int = 64,
        rescored: int = 4,
        source: Source = "auto",
        is_verified: bool = False,
    ) -> None:
        """Opens the files that belong to these vectors.

        Args:
            vectors: of an opened index, memory-mapped from its folder.
            sources: not needed here; each engine is made from vectors and sources.
            factory, shards, sample, seed: as the shards were built, see `plan_shards`.
            probes: lists that are read for each query; all of them if there are no more.
            rescored: candidates that the codes give for each one that is asked for.
            source: the merged file or the shards; auto takes the merged file where it is.
            is_verified: hash the files, and the vectors of each shard, before anything is searched.

        Raises:
            FileNotFoundError: parts are missing; the message says what to run.
            ValueError: the vectors are not those of an index folder, or not those that the shards
                were built from; or a file was cut or altered; or a number is not at least 1.
        """
        if probes < 1 or rescored < 1:
            raise ValueError(f"probes={probes}, rescored={rescored}; expected at least 1 of each")
        plan = _plan_of(vectors, factory, shards, sample, seed)
        self.plan = plan
        self._depth_factor = rescored
        self._parts: list[tuple[Any, int]] = []
        has_merged = not plan.is_flat and (plan.part(MERGED) / "manifest.json").exists()
        if source == "merged" or (source == "auto" and has_merged):
            self._open(MERGED, _merged_flag(plan, read_part(plan, MERGED, is_verified)))
        else:
            self._open_shards(vectors, is_verified)
        for index, _ in self._parts:
            if (inner := lists_of(index)) is not None:
                inner.nprobe = min(probes, inner.nlist)

    def nearest(
        self, groups: Sequence[Float32[np.ndarray, "_ dimension"]], depth: int
    ) -> list[Candidates]:
        """The `rescored * depth` rows with the best codes of each query, for its group."""
        depth = min(depth * self._depth_factor, self.plan.rows)
        scores, rows = self._search(np.ascontiguousarray(np.concatenate(groups)), depth)
        results: list[Candidates] = []
        end = 0
        for group in groups:
            start, end = end, end + len(group)
            found = np.unique(rows[start:end])
            # As in `FaissSearch`: a query whose lists ran out can give no more.
            full = rows[start:end, -1] >= 0
            is_all = depth >= self.plan.rows or not full.any()
            bound = -np.inf if is_all else float(scores[start:end, -1][full].max())
            results.append((found[found >= 0], bound))
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

    def _search(
        self, queries: Float32[np.ndarray, "queries dimension"], depth: int
    ) -> tuple[Float32[np.ndarray, "queries depth"], Int64[np.ndarray, "queries depth"]]:
        """The best of each part, merged; -1 where there is none."""
        scores = np.full((len(queries), depth), -np.inf, np.float32)
        rows = np.full((len(queries), depth), -1, np.int64)
        for index, offset in self._parts:
            own_scores, own_rows = index.search(queries, min(depth, index.ntotal))
            own_scores[own_rows < 0] = -np.inf
            own_rows[own_rows >= 0] += offset
            scores = np.concatenate([scores, own_scores], axis=1)
            rows = np.concatenate([rows, own_rows], axis=1)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
            scores = np.take_along_axis(scores, best, axis=1)
            rows = np.take_along_axis(rows, best, axis=1)
        return scores, rows

    def _open_shards(self, vectors: np.ndarray, is_verified: bool) -> None:
        plan, faiss = self.plan, import_faiss()
        if missing := plan.missing():
            raise FileNotFoundError(
                f"{len(missing)} of {plan.shards} shards are missing in {plan.folder}: "
                f"{', '.join(missing)}; build them with `python eval/index_shards.py` and the same "
                "settings"
            )
        names = [shard_name(number) for number in range(plan.shards)]
        for name, manifest in zip(names, check_training(plan, names, is_verified)):
            start, end = manifest["rows"]
            if is_verified and hash_rows(vectors, start, end) != manifest["vectors_sha256"]:
                raise ValueError(
                    f"{plan.part(name)} was built from other vectors than rows {start} to {end} "
                    f"of {plan.index_folder / plan.vectors} are now; delete that folder and build "
                    "it again"
                )
            flag = faiss.IO_FLAG_MMAP_IFC if plan.is_flat else faiss.IO_FLAG_MMAP
            self._open(name, flag, start if plan.is_flat else 0)

    def _open(self, name: str, flag: int, offset: int = 0) -> None:
        path = str(self.plan.part(name) / INDEX_FILE)
        self._parts.append((import_faiss().read_index(path, flag), offset))


def _merged_flag(plan: FaissPlan, manifest: Mapping[str, Any]) -> int:
    # With IO_FLAG_MMAP a merged file of faiss 1.15 ends the process when it is searched. Its lists
    # are mapped without it.
    faiss = import_faiss()
    if manifest["lists"] == str((plan.part(MERGED) / LISTS_FILE).resolve()):
        return faiss.IO_FLAG_READ_ONLY
    # The folder has moved since; faiss says so on the standard output.
    return faiss.IO_FLAG_READ_ONLY | faiss.IO_FLAG_ONDISK_SAME_DIR


def _plan_of(
    vectors: np.ndarray, factory: str, shards: int, sample: int | None, seed: int
) -> FaissPlan:
    path = getattr(vectors, "filename", None)
    if path is None:
        raise ValueError(
            "these vectors are in memory, expected those that load_index maps from an index "
            "folder; take index=faiss_ivf for vectors in memory"
        )
    path = Path(path)
    plan = plan_shards(path.parent, factory, shards, sample, seed, path.name)
    if vectors.shape != (plan.rows, plan.dimension):
        raise ValueError(
            f"{vectors.shape[0]} x {vectors.shape[1]} vectors, expected all {plan.rows} x "
            f"{plan.dimension} of {path}; a part of them has other row numbers"
        )
    return plan
