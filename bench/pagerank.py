"""Personalised PageRank of many questions: ours against igraph's prpack, in one run.

    python bench/pagerank.py [number of questions, default 1000] [index folder]

The graph is that of the recorded triplets of 1,890 MuSiQue passages, with synonyms where they are
stored beside the index (`python eval/retrieval.py corpus=musique_openie systems=[graph]` makes
both). The reset vectors that are timed are drawn: five phrases and small weights on all passages,
as HippoRAG 2 has them. igraph (extra `oracle`) takes one question at a time; it is timed on at most
100 of them. Where the shared data is (TRIAX_DATA), the best five passages of the 84 questions with
TF-IDF in place of an encoder are compared too. Needs no weights. The figure to compare is the
ratio; absolute figures are of this machine.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from triax.corpora.jsonl import load_jsonl  # noqa: E402
from triax.indexing.graph import PassageGraph, build_graph, phrases_of  # noqa: E402
from triax.indexing.graph_store import graph_folder  # noqa: E402
from triax.indexing.store import TripletIndex, load_index  # noqa: E402
from triax.indexing.synonyms import SynonymRule, Synonyms  # noqa: E402
from triax.retrieval.graph import GraphRetriever, table_scores  # noqa: E402
from triax.retrieval.pagerank import PageRank, iterations_for  # noqa: E402

DAMPING, TOP = 0.5, 5


def open_stored(index: TripletIndex) -> PassageGraph:
    """The graph with the synonyms that are stored, whatever encoder they are of."""
    found = sorted(graph_folder(index).glob("graph-*.npz"))
    if not found:
        return build_graph(index.tables)
    with np.load(found[0], allow_pickle=False) as pairs:
        columns = [pairs[name] for name in ("sources", "targets", "cosines")]
    vectors = np.load(graph_folder(index) / "vectors.npy", mmap_mode="r", allow_pickle=False)
    return build_graph(
        index.tables, Synonyms(phrases_of(index.tables), vectors, *columns, SynonymRule())
    )


def draw_resets(graph: PassageGraph, count: int) -> np.ndarray:
    """Five seeds a question, and all passages at up to 0.05."""
    random = np.random.default_rng(0)
    resets = np.zeros((count, graph.num_nodes), np.float32)
    phrases = len(graph.phrases)
    for row in resets:
        row[random.integers(0, phrases, 5)] = random.random(5)
        row[phrases:] = 0.05 * random.random(graph.num_chunks)
    return resets


def real_resets(index: TripletIndex, graph: PassageGraph) -> np.ndarray:
    """Those of the MuSiQue questions over these passages; none where the data is absent."""
    folder = Path(os.environ.get("TRIAX_DATA", ROOT.parent / "shared" / "data")) / "musique"
    if not folder.exists():
        return np.zeros((0, graph.num_nodes), np.float32)
    corpus = load_jsonl(
        folder,
        ["train", "dev"],
        documents_in="openie_gpt35.jsonl.gz",
        only={"source": "hipporag_musique100"},
    )
    retriever = GraphRetriever(index.tables, graph, *table_scores(index, None, "tfidf"))
    return retriever.resets([[question.text] for question in corpus.questions])[2]


def best(scores: np.ndarray) -> np.ndarray:
    """The best passages in order."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]


def timed(run):
    """The result of a call, and its seconds of wall and of processor time."""
    wall, cpu = time.monotonic(), time.process_time()
    value = run()
    return value, time.monotonic() - wall, time.process_time() - cpu


def by_igraph(graph: PassageGraph, resets: np.ndarray):
    """igraph's prpack, one question after another; the graph is built before the clock starts."""
    import igraph

    once = graph.sources < graph.targets
    edges = np.stack([graph.sources[once], graph.targets[once]], axis=1).tolist()
    theirs = igraph.Graph(n=graph.num_nodes, edges=edges)
    weights = graph.weights[once].tolist()
    rows = [row.tolist() for row in resets.astype(float)]

    def run():
        return np.array(
            [
                theirs.personalized_pagerank(
                    damping=DAMPING,
                    directed=False,
                    weights=weights,
                    reset=row,
                    implementation="prpack",
                )
                for row in rows
            ]
        )

    return timed(run)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    folders = sys.argv[2:] or sorted(
        map(str, (ROOT / "artifacts/index/musique_openie").glob("*-minilm-*[0-9a-f]"))
    )
    index = load_index(folders[0], is_verified=False)
    graph = open_stored(index)
    resets = draw_resets(graph, count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solver, build_s, _ = timed(
        lambda: PageRank(graph.sources, graph.targets, graph.weights, graph.num_nodes)
    )
    phrases = len(graph.phrases)
    run = lambda: solver(resets, DAMPING, first=phrases)  # noqa: E731
    _, compile_s, _ = timed(lambda: solver(resets[: min(count, 256)], DAMPING, first=phrases))
    ours, ours_s, ours_cpu_s = timed(run)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    some = min(count, 100)
    theirs, theirs_s, theirs_cpu_s = by_igraph(graph, resets[:some])
    theirs = theirs[:, phrases:]
    asked = real_resets(index, graph)
    real, real_theirs = solver(asked, DAMPING, first=phrases), by_igraph(graph, asked)[0]
    report = {
        "cores": len(os.sched_getaffinity(0)),
        "nodes": graph.num_nodes,
        "edges": len(graph.sources),
        "questions": count,
        "iterations": iterations_for(DAMPING),
        "build_s": build_s,
        "compile_s": compile_s,
        "ms_a_question": 1e3 * ours_s / count,
        "cpu_ms_a_question": 1e3 * ours_cpu_s / count,
        "igraph_ms_a_question": 1e3 * theirs_s / some,
        "igraph_cpu_ms_a_question": 1e3 * theirs_cpu_s / some,
        "ratio": (theirs_s / some) / (ours_s / count),
        "cpu_ratio": (theirs_cpu_s / some) / (ours_cpu_s / count),
        "largest_difference": float(np.abs(ours[:some] - theirs).max()),
        "same_top_5": int((best(ours[:some]) == best(theirs)).all(axis=1).sum()),
        "compared": some,
        "same_top_5_of_questions": int(
            (best(real) == best(real_theirs.reshape(len(asked), -1)[:, phrases:])).all(axis=1).sum()
        ),
        "compared_questions": len(asked),
        "edges_mb": solver.edge_bytes / 2**20,
        "extra_memory_mb": memory / 1024,
        "result_mb": ours.nbytes / 2**20,
    }
    print(json.dumps({key: round(value, 9) for key, value in report.items()}))


if __name__ == "__main__":
    main()
