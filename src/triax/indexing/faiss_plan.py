"""How the vectors of an index folder are cut into FAISS shards, and which files those are.

    <index>.faiss/<factory>-<hash>/plan.json     what all of it is made from
                                  /trained/      the shared quantisers, without rows
                                  /shard-00000/  one range of rows; one folder a shard
                                  /merged/       all shards in one file, on disk

Everything here is derived from the index folder and can be made again. Each part is a folder with
`index.faiss` and a `manifest.json`, renamed into place whole, so a part is there or it is not.
"""

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from triax.indexing.embedding import refuse_mismatch
from triax.indexing.faiss_index import import_faiss as _import_faiss
from triax.indexing.store import read_manifest
from triax.records.files import write_json
from triax.runs.shards import hash_file

SCHEMA = 1
INDEX_FILE = "index.faiss"
TRAINED, MERGED = "trained", "merged"
# faiss asks for at least 39 rows a centroid and uses no more than 256; 64 lie between.
_ROWS_A_LIST = 64
_LEAST_SAMPLE = 65536
_log = logging.getLogger(__name__)
# To see which distribution it is takes half a second.
import_faiss = cache(_import_faiss)


@dataclass(frozen=True, slots=True)
class FaissPlan:
    """What the shards of one file of vectors are made from. Ids are the rows of that file.

    index_folder, vectors: the index and its file, `vectors.npy` or `chunk_vectors.npy`.
    vectors_sha256, encoder: as the index's manifest has them.
    rows, dimension, dtype: of the vectors.
    factory: of faiss, e.g. "Flat", "IVF4096,SQ8", "OPQ64,IVF65536,PQ64"; the metric is the inner
        product.
    shards: ranges of rows, equal up to one row.
    sample: rows that the quantisers are trained on.
    seed: of that sample and of the k-means.
    """

    index_folder: Path
    vectors: str
    vectors_sha256: str
    encoder: Mapping[str, Any]
    rows: int
    dimension: int
    dtype: str
    factory: str
    shards: int
    sample: int
    seed: int

    @property
    def folder(self) -> Path:
        """Where the parts are; another plan is another folder."""
        text = json.dumps(self.to_json(), sort_keys=True)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
        name = re.sub(r"[^\w.-]+", "_", self.factory)[:60]
        return self.index_folder.with_name(f"{self.index_folder.name}.faiss") / f"{name}-{digest}"

    @property
    def is_flat(self) -> bool:
        """Whether shards hold plain vectors, without lists."""
        return self.factory == "Flat"

    def range_of(self, shard: int) -> tuple[int, int]:
        """First row, and one past the last."""
        return self.rows * shard // self.shards, self.rows * (shard + 1) // self.shards

    def part(self, name: str) -> Path:
        """The folder of a part."""
        return self.folder / name

    def missing(self) -> list[str]:
        """The names of the shards that are not built."""
        names = [shard_name(number) for number in range(self.shards)]
        return [name for name in names if not (self.part(name) / "manifest.json").exists()]

    def to_json(self) -> dict[str, Any]:
        """The plan without the place, which may move."""
        values = asdict(self)
        del values["index_folder"]
        return {"schema": SCHEMA, "metric": "inner_product", **values}


def shard_name(number: int) -> str:
    """The name of a shard's folder."""
    return f"shard-{number:05d}"


def plan_shards(
    index_folder: Path | str,
    factory: str,
    shards: int = 1,
    sample: int | None = None,
    seed: int = 0,
    vectors: str = "vectors.npy",
) -> FaissPlan:
    """Reads what an index says of its vectors, and lays out their shards; nothing is written.

    Args:
        index_folder: what `build_index` wrote.
        factory, shards, seed, vectors: see `FaissPlan`.
        sample: 64 rows a list if None, at least 65,536, and never more than there are.

    Raises:
        FileNotFoundError: there is no index.
        ValueError: there are no such vectors, or more shards than rows; or faiss does not know the
            factory, or its index is neither flat nor made of inverted lists.
    """
    # Resolved, as the place is that a memory map knows, from which a search lays out the plan.
    folder = Path(index_folder).resolve()
    manifest = read_manifest(folder)
    if vectors not in manifest["files"] or not vectors.endswith("vectors.npy"):
        known = sorted(name for name in manifest["files"] if name.endswith(".npy"))
        raise ValueError(f"{folder} has no {vectors}; expected one of {known}")
    rows, dimension = open_vectors(folder / vectors).shape
    if not 1 <= shards <= rows:
        raise ValueError(f"{shards} shards of {rows} rows in {folder}; expected 1 to {rows}")
    lists = _num_lists(factory, dimension)
    wanted = sample or max(_LEAST_SAMPLE, _ROWS_A_LIST * lists)
    return FaissPlan(
        folder,
        vectors,
        manifest["files"][vectors]["sha256"],
        manifest["encoder"],
        rows,
        dimension,
        manifest["dtype"],
        factory,
        shards,
        min(wanted, rows),
        seed,
    )


def write_plan(plan: FaissPlan) -> None:
    """Keeps the plan beside its parts, for readers; the programs lay it out again each time."""
    path = plan.folder / "plan.json"
    if not path.exists():
        write_json(path, plan.to_json())


def open_vectors(path: Path) -> Float[np.ndarray, "rows dimension"]:
    """The vectors, memory-mapped."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def read_part(plan: FaissPlan, name: str, is_verified: bool = False) -> dict[str, Any]:
    """The manifest of a part that is whole and belongs to the plan.

    With `is_verified` its files are hashed; their sizes are compared in any case.

    Raises:
        FileNotFoundError: the part is not built.
        ValueError: it was made from something else, or a file was cut or altered.
    """
    folder = plan.part(name)
    path = folder / "manifest.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} is not built; run `python eval/index_shards.py` with the same settings"
        )
    manifest = json.loads(path.read_text(encoding="utf-8"))
    fix = "delete that folder and build it again"
    refuse_mismatch(folder, manifest["plan"], plan.to_json(), fix)
    for file, expected in manifest["files"].items():
        one = folder / file
        size = one.stat().st_size if one.exists() else None
        if size != expected["bytes"]:
            raise ValueError(f"{one} has {size} bytes, expected {expected['bytes']}; {fix}")
        if is_verified and (found := hash_file(one)) != expected["sha256"]:
            raise ValueError(
                f"{one} was altered: sha256 {found}, expected {expected['sha256']}; {fix}"
            )
    return manifest


def make_index(factory: str, dimension: int) -> Any:
    """An empty index of faiss.

    Raises:
        ValueError: faiss does not know the factory, or it has neither lists nor is flat: rows of
            such an index cannot be merged.
    """
    faiss = import_faiss()
    try:
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ValueError(
            f"faiss makes no index of {dimension} dimensions by factory {factory!r} "
            f"({_reason(error)}); expected such as Flat, IVF4096,SQ8 or OPQ64,IVF65536,PQ64"
        ) from None
    if factory != "Flat" and lists_of(index) is None:
        raise ValueError(
            f"factory {factory!r} has no inverted lists; expected Flat, or lists such as "
            "IVF4096,SQ8, whose shards can be merged"
        )
    return index


def lists_of(index: Any) -> Any:
    """The part of an index that has inverted lists, behind its transforms; None if none has."""
    faiss = import_faiss()
    inner = faiss.try_extract_index_ivf(index)
    return None if inner is None else faiss.downcast_index(inner)


def train_index(index: Any, sample: Float[np.ndarray, "sample dimension"], seed: int) -> None:
    """Trains quantisers with a seed, of the k-means of lists and of codes.

    Raises:
        ValueError: faiss refuses the sample, mostly for being too small.
    """
    inner = lists_of(index)
    if inner is not None:
        few = 39 * inner.nlist
        if len(sample) < few:
            _log.warning(
                "%d rows for %d lists; faiss recommends %d or more", len(sample), inner.nlist, few
            )
        if hasattr(inner, "do_polysemous_training"):
            # Minutes of ordering codes for a filter that no search here uses.
            inner.do_polysemous_training = False
        clusterings = [inner.cp] + ([inner.pq.cp] if hasattr(inner, "pq") else [])
        for clustering in clusterings:
            clustering.seed = seed
            clustering.min_points_per_centroid = 1  # what faiss would say is said above
    faiss = import_faiss()
    # By its default faiss 1.15 leaves matrix products alone: codes then train 13 times as long.
    threshold = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 20
    try:
        index.train(np.ascontiguousarray(sample, np.float32))
    except RuntimeError as error:
        raise ValueError(
            f"faiss cannot be trained on {len(sample)} rows ({_reason(error)}); take a larger "
            "sample, or a factory with fewer lists or shorter codes"
        ) from None
    finally:
        faiss.cvar.distance_compute_blas_threshold = threshold


def _num_lists(factory: str, dimension: int) -> int:
    inner = lists_of(make_index(factory, dimension))
    return 0 if inner is None else int(inner.nlist)


def _reason(error: RuntimeError) -> str:
    """What faiss says, without where in its source it says so."""
    return str(error).strip().rpartition("\n")[2].rpartition("Error: ")[2][:200]
