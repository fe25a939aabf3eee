"""FAISS shards of an index: one training, each shard by itself, then one file of all (R4, R30).

All shards start from the same trained index, so their lists can be put together without touching
a vector again. Whoever renames a part into place first wins; the part of another is the same.
"""

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from triax.indexing.faiss_plan import (
    INDEX_FILE,
    MERGED,
    SCHEMA,
    TRAINED,
    FaissPlan,
    import_faiss,
    lists_of,
    make_index,
    open_vectors,
    read_part,
    shard_name,
    train_index,
    write_plan,
)
from triax.records.files import write_json
from triax.runs.shards import hash_file, put_folder

LISTS_FILE = "lists.ivfdata"
# 100 MB of 384 dimensions at a time.
_BATCH = 65536
_log = logging.getLogger(__name__)
Progress = Callable[[int], None] | None


def train(plan: FaissPlan) -> dict[str, Any]:
    """Trains the quantisers on a sample of the rows; does nothing if that is done.

    Memory: the sample, 4 bytes a component, and what faiss needs beside it. With the same threads
    and seed the bytes are the same; since it is trained once, nothing rests on that.

    Returns:
        The manifest of the part.

    Raises:
        ValueError: faiss refuses the sample, or the part that is there is not whole.
    """
    if _is_there(plan, TRAINED):
        return read_part(plan, TRAINED)
    write_plan(plan)
    vectors = open_vectors(plan.index_folder / plan.vectors)
    chosen = sample_rows(plan)
    index = make_index(plan.factory, plan.dimension)
    if not plan.is_flat:
        _log.info("training %s on %d of %d rows", plan.factory, len(chosen), plan.rows)
        train_index(index, vectors[chosen].astype(np.float32), plan.seed)
    with _part(plan, TRAINED, {"count": 0}) as folder:
        import_faiss().write_index(index, str(folder / INDEX_FILE))
    return read_part(plan, TRAINED)


def sample_rows(plan: FaissPlan) -> np.ndarray:
    """The rows to train on, ascending: all, or as many as the plan says, drawn by its seed."""
    if plan.sample >= plan.rows:
        return np.arange(plan.rows)
    random = np.random.default_rng(plan.seed)
    return np.sort(random.choice(plan.rows, plan.sample, replace=False, shuffle=False))


def build_shard(plan: FaissPlan, number: int, progress: Progress = None) -> dict[str, Any]:
    """Adds the rows of one range to the trained index; does nothing if that is done.

    Memory: the shard's codes, 8 bytes a row for its id, and 65,536 rows in float32.

    Args:
        plan: of the shards.
        number: which of them.
        progress: is called with the number of rows added.

    Returns:
        The manifest of the part, with the range and the hash of its vectors.

    Raises:
        FileNotFoundError: nothing is trained yet.
        ValueError: there is no such shard, or a part that is there is not whole.
    """
    if not 0 <= number < plan.shards:
        raise ValueError(f"shard {number} of {plan.shards}; expected 0 to {plan.shards - 1}")
    name = shard_name(number)
    trained = read_part(plan, TRAINED)
    if _is_there(plan, name):
        return read_part(plan, name)
    faiss = import_faiss()
    index = faiss.read_index(str(plan.part(TRAINED) / INDEX_FILE))
    vectors = open_vectors(plan.index_folder / plan.vectors)
    start, end = plan.range_of(number)
    digest = hashlib.sha256()
    for low in range(start, end, _BATCH):
        high = min(low + _BATCH, end)
        rows = np.ascontiguousarray(vectors[low:high])
        digest.update(rows)
        rows = rows.astype(np.float32, copy=False)
        if plan.is_flat:
            index.add(rows)  # ids are places; the search adds the start of the range
        else:
            index.add_with_ids(rows, np.arange(low, high, dtype=np.int64))
        if progress is not None:
            progress(high - start)
    more = {
        "count": end - start,
        "rows": [start, end],
        "vectors_sha256": digest.hexdigest(),
        "trained_sha256": trained["files"][INDEX_FILE]["sha256"],
    }
    with _part(plan, name, more) as folder:
        faiss.write_index(index, str(folder / INDEX_FILE))
    return read_part(plan, name)


def merge_shards(plan: FaissPlan) -> dict[str, Any]:
    """Puts the lists of all shards into one file on disk; does nothing if that is done.

    The file is memory-mapped while it is written: it may be larger than the memory. Shards are
    hashed first, and stay. What killed builds left behind is removed.

    Returns:
        The manifest of the part, with the place of its lists.

    Raises:
        FileNotFoundError: shards are missing; the message names them.
        ValueError: flat shards, which have no lists; or a shard was cut, altered, or built from
            another training.
    """
    if plan.is_flat:
        raise ValueError(
            "flat shards have nothing to merge; they are searched as they are (source=shards)"
        )
    if _is_there(plan, MERGED):
        return read_part(plan, MERGED)
    if missing := plan.missing():
        raise FileNotFoundError(
            f"{len(missing)} of {plan.shards} shards are missing in {plan.folder}: "
            f"{', '.join(missing)}; build them with `python eval/index_shards.py stage=build` and "
            "the same settings"
        )
    names = [shard_name(number) for number in range(plan.shards)]
    check_training(plan, names, is_verified=True)
    merge_ondisk = _merge_ondisk()
    faiss = import_faiss()
    place = str((plan.part(MERGED) / LISTS_FILE).resolve())
    with _part(plan, MERGED, {"count": plan.rows, "lists": place}) as folder:
        index = faiss.read_index(str(plan.part(TRAINED) / INDEX_FILE))
        files = [str(plan.part(name) / INDEX_FILE) for name in names]
        merge_ondisk(index, files, str(folder / LISTS_FILE))
        if index.ntotal != plan.rows:
            raise ValueError(
                f"the shards in {plan.folder} hold {index.ntotal} rows, expected {plan.rows}; "
                "delete them and build them again"
            )
        lists = faiss.downcast_InvertedLists(lists_of(index).invlists)
        # The file will be where the folder is renamed to.
        lists.filename = place
        faiss.write_index(index, str(folder / INDEX_FILE))
    for left in (*plan.folder.glob(".shard-*"), *plan.folder.glob(f".{TRAINED}.*")):
        shutil.rmtree(left, ignore_errors=True)
    return read_part(plan, MERGED)


def check_training(
    plan: FaissPlan, names: list[str], is_verified: bool = False
) -> list[dict[str, Any]]:
    """The manifests of shards, all built from the trained index that is there.

    Raises:
        FileNotFoundError, ValueError: as for `read_part`; or a shard is of another training.
    """
    expected = read_part(plan, TRAINED, is_verified)["files"][INDEX_FILE]["sha256"]
    manifests = [read_part(plan, name, is_verified) for name in names]
    for name, manifest in zip(names, manifests):
        if manifest["trained_sha256"] != expected:
            raise ValueError(
                f"{plan.part(name)} was built from the training {manifest['trained_sha256'][:12]}, "
                f"expected {expected[:12]}; delete that folder and build it again"
            )
    return manifests


def hash_rows(vectors: Float[np.ndarray, "rows dimension"], start: int, end: int) -> str:
    """The sha256 of a range of rows, in the dtype that they have, as a shard's manifest has it."""
    digest = hashlib.sha256()
    for low in range(start, end, _BATCH):
        digest.update(np.ascontiguousarray(vectors[low : min(low + _BATCH, end)]))
    return digest.hexdigest()


def _is_there(plan: FaissPlan, name: str) -> bool:
    return (plan.part(name) / "manifest.json").exists()


def _merge_ondisk() -> Any:
    import_faiss()
    from faiss.contrib.ondisk import merge_ondisk

    return merge_ondisk


@contextmanager
def _part(plan: FaissPlan, name: str, more: dict[str, Any]) -> Iterator[Path]:
    """A folder to write a part into, which is renamed into place with its manifest."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=plan.folder))
    try:
        yield folder
        files = {path.name: _synced(path) for path in sorted(folder.iterdir())}
        faiss_version = import_faiss().__version__
        manifest = {"schema": SCHEMA, "part": name, "faiss": faiss_version, "files": files}
        write_json(folder / "manifest.json", {**manifest, **more, "plan": plan.to_json()})
        os.chmod(folder, 0o755)
        if not put_folder(folder, plan.part(name)) and not _is_there(plan, name):
            raise FileExistsError(
                f"{plan.part(name)} holds something without manifest.json; clear it and run again"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _synced(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return {"sha256": hash_file(path), "bytes": path.stat().st_size}
