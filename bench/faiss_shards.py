"""FAISS shards against exact search: bytes, seconds, recall; and what tables of an index take.

    python bench/faiss_shards.py [rows, default 200000, or an index folder]

Drawn vectors have 384 dimensions and lie in 2,000 clusters of unequal size (cosine to the middle
about 0.7). 200 queries are rows with as much noise again (cosine about 0.8). Recall is that of the
10 best rows with exact scores, after `rescored` candidates for each, against a search of all rows.
Each factory is trained, built in 4 shards and merged by the programs' own functions, then searched
merged, one query at a time, on one thread. Figures to compare are recalls, bytes, and the ratio to
the flat shards in the same run; seconds are of this machine. Needs no weights.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from triax.indexing.faiss_plan import plan_shards  # noqa: E402
from triax.indexing.faiss_shards import build_shard, merge_shards, train  # noqa: E402
from triax.indexing.sharded_search import ShardedSearch  # noqa: E402
from triax.indexing.store import TripletIndex, identity_of, load_index, save_index  # noqa: E402
from triax.indexing.tables import TripletTables  # noqa: E402
from triax.indexing.walk import exact_scores  # noqa: E402
from triax.records.documents import Chunk  # noqa: E402
from triax.records.triplets import Proposition, Triplet  # noqa: E402

DIMENSION, CLUSTERS, QUERIES, TOP, SHARDS, SEED = 384, 2000, 200, 10, 4, 0
SAMPLE = 40960  # rows to train on, 40 a list of 1,024
A_CHUNK = 28  # propositions, as the trained extractor gives


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, in float32."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def noisy(rows: np.ndarray, length: float, random: np.random.Generator) -> np.ndarray:
    """Unit rows with noise of a length added."""
    noise = random.standard_normal(rows.shape, np.float32)
    return unit(rows + length / np.sqrt(rows.shape[1]) * noise)


def draw(rows: int, folder: Path, report: dict) -> TripletIndex:
    """An index of drawn vectors; measures first what building its tables takes."""
    before, started = _peak(), time.monotonic()
    chunks = [Chunk(f"c{i:09d}", f"d{i}", "") for i in range(-(-rows // A_CHUNK))]
    propositions = (
        Proposition(
            f"{i:064x}",
            Triplet(f"subject {i}", "predicate", f"object {i % 1000}"),
            f"subject {i} predicate object {i % 1000}",
            (f"c{i // A_CHUNK:09d}",),
        )
        for i in range(rows)
    )
    tables = TripletTables.of(chunks, propositions)
    report["tables_memory_bytes_a_proposition"] = round((_peak() - before) / rows)
    report["tables_s"] = round(time.monotonic() - started, 1)
    random = np.random.default_rng(SEED)
    middles = unit(random.standard_normal((CLUSTERS, DIMENSION)))
    shares = random.dirichlet(np.full(CLUSTERS, 0.5))
    vectors = noisy(middles[random.choice(CLUSTERS, rows, p=shares)], 1.0, random)
    encoder = {"name": "drawn", "dimension": DIMENSION}
    identity = identity_of(tables, encoder, "float32", "passage", "drawn", False)
    save_index(folder, tables, vectors, None, identity)
    return load_index(folder, is_verified=False)


def stored(index: TripletIndex) -> dict:
    """Bytes a proposition of the files of an index, and of its texts."""
    rows = len(index.vectors)
    files = index.manifest["files"]
    texts = sum(
        index.tables.propositions[name].nbytes for name in ("subject", "predicate", "object")
    )
    return {
        "propositions": rows,
        "chunks": index.tables.chunks.num_rows,
        "sources": len(index.tables.sources.rows),
        "triplet_text_bytes": round(texts / rows, 1),
        "bytes_a_proposition": {name: round(one["bytes"] / rows, 1) for name, one in files.items()},
    }


def measure(index: TripletIndex, factory: str, searches: list[tuple[int, int]]) -> list[dict]:
    """Builds and searches; one row for each (probes, rescored)."""
    settings = {"shards": SHARDS, "sample": SAMPLE, "seed": SEED}
    plan = plan_shards(index.folder, factory, **settings)
    started = time.monotonic()
    train(plan)
    train_s, started = time.monotonic() - started, time.monotonic()
    manifests = [build_shard(plan, number) for number in range(SHARDS)]
    build_s, started = time.monotonic() - started, time.monotonic()
    if not plan.is_flat:
        manifests = [merge_shards(plan)]
    merge_s = time.monotonic() - started
    size = sum(file["bytes"] for one in manifests for file in one["files"].values())
    random = np.random.default_rng(SEED + 1)
    rows = np.sort(random.choice(plan.rows, QUERIES, replace=False))
    queries = noisy(np.asarray(index.vectors[rows], np.float32), 0.75, random)
    exact = _best(index.vectors, queries)
    found = []
    for probes, rescored in searches:
        how = {**settings, "probes": probes, "rescored": rescored}
        engine = ShardedSearch(index.vectors, index.tables.sources, factory, **how)
        engine.nearest([queries[:1]], TOP)
        started, hits = time.monotonic(), 0
        for query, best in zip(queries, exact):
            candidates, _ = engine.nearest([query[None]], TOP)[0]
            scores = exact_scores(index.vectors[candidates], query[None])
            hits += len({*candidates[np.argsort(-scores)[:TOP]].tolist()} & best)
        seconds = time.monotonic() - started
        found.append(
            {
                "factory": factory,
                "probes": probes,
                "rescored": rescored,
                "bytes_a_row": round(size / plan.rows, 1),
                "sample": plan.sample,
                "train_s": round(train_s, 1),
                "build_s": round(build_s, 1),
                "merge_s": round(merge_s, 1),
                "queries_a_s": round(QUERIES / seconds, 1),
                f"recall@{TOP}": round(hits / (TOP * QUERIES), 4),
            }
        )
    return found


def _best(vectors: np.ndarray, queries: np.ndarray) -> list[set[int]]:
    scores = np.concatenate(
        [
            queries @ np.asarray(vectors[low : low + 65536], np.float32).T
            for low in range(0, len(vectors), 65536)
        ],
        axis=1,
    )
    return [set(row) for row in np.argpartition(-scores, TOP, axis=1)[:, :TOP].tolist()]


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "200000"
    with tempfile.TemporaryDirectory() as folder:
        report = {"seed": SEED, "cores": len(os.sched_getaffinity(0))}
        if given.isdigit():
            index = draw(int(given), Path(folder) / "index", report)
        else:
            # A copy: the shards go beside it.
            shutil.copytree(given, Path(folder) / "index")
            index = load_index(Path(folder) / "index", is_verified=False)
        print(json.dumps(report | stored(index)))
        lists = 1 << max(0, int(np.log2(2.5 * np.sqrt(len(index.vectors)))))
        ways = {
            "Flat": [(1, 1)],
            f"IVF{lists},SQ8": [(1, 2), (8, 2), (32, 2), (128, 2), (lists, 2)],
            f"IVF{lists},PQ64": [(32, 1), (32, 4), (32, 16), (lists, 16)],
        }
        flat = None
        for factory, searches in ways.items():
            for row in measure(index, factory, searches):
                flat = flat or row["queries_a_s"]
                row["times_flat"] = round(row["queries_a_s"] / flat, 2)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
