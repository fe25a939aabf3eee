"""An index folder of drawn vectors, for engines that read files."""

import numpy as np

from triax.indexing.store import identity_of, load_index, save_index
from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet

ENCODER = {"name": "drawn", "dimension": 16}


def draw_index(folder, rows=600, chunks=80, seed=0, dtype="float32"):
    """`rows` unit vectors of 16 dimensions, each of them twice, and which chunk states which."""
    random = np.random.default_rng(seed)
    vectors = np.tile(random.normal(size=(rows // 2, 16)), (2, 1))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sources = random.integers(0, chunks, rows)
    tables = TripletTables.of(
        [Chunk(f"c{number:03d}", f"d{number}", "text") for number in range(chunks)],
        [
            Proposition(f"p{row:06d}", Triplet("a", "is", str(row)), f"a is {row}", (f"c{s:03d}",))
            for row, s in enumerate(sources)
        ],
    )
    identity = identity_of(tables, ENCODER, dtype, "passage", "drawn", False)
    save_index(folder, tables, vectors.astype(dtype), None, identity)
    return load_index(folder)


def draw_groups(seed=1):
    """Ten groups of one to four queries."""
    queries = np.random.default_rng(seed).normal(size=(20, 16)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return [queries[i : i + 1 + i % 4] for i in range(0, 20, 2)]
