"""How much faster 64 questions go through T2RAG together than one by one.

    python bench/batching.py [num_questions]

The server is a stand-in on the loopback that takes 200 ms for an answer and serves any number at
the same time, so the ratio shows what the pipeline and the client add, not what a GPU can do. Each
question makes three calls in a row: decompose, resolve, synthesize.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "llm")]

from fake_server import FakeServer  # noqa: E402

from triax.corpora.chunks import chunk_documents  # noqa: E402
from triax.corpora.demo_corpus import load_demo  # noqa: E402
from triax.extraction.verbalize import propositions  # noqa: E402
from triax.indexing.hashing import HashingEncoder  # noqa: E402
from triax.indexing.updates import build_index  # noqa: E402
from triax.llm.http import HttpCompleter  # noqa: E402
from triax.pipelines.t2rag import T2RAG  # noqa: E402
from triax.reasoning.decompose import PromptedDecomposer  # noqa: E402
from triax.reasoning.resolve import FillingResolver  # noqa: E402
from triax.reasoning.synthesize import PromptedSynthesizer  # noqa: E402
from triax.records.questions import Question  # noqa: E402
from triax.retrieval.adaptive import AdaptiveRetriever  # noqa: E402

LATENCY_S = 0.2


def reply(body: Mapping[str, Any]) -> str:
    """What the stand-in says: a query triplet to a decomposition, else a name."""
    asked = body["messages"][-1]["content"]
    if asked.startswith("Question:") and "placeholder" in body["messages"][0]["content"]:
        return "The Last Picture Show | directed by | ?director"
    return "Peter Bogdanovich"


def pipeline(server: FakeServer, folder: Path, num_questions: int) -> T2RAG:
    """T2RAG over the demo corpus with hashed words, its model behind the server."""
    demo = load_demo()
    encoder = HashingEncoder()
    chunks = chunk_documents(demo.documents)
    index = build_index(chunks, propositions(demo.extractions), encoder, folder / "index")
    completer = HttpCompleter("fake", server.base_url, max_concurrent=num_questions)
    return T2RAG(
        AdaptiveRetriever(index, encoder),
        PromptedDecomposer(completer),
        FillingResolver(completer),
        PromptedSynthesizer(completer),
    )


def seconds_for(method: T2RAG, batches: list[list[Question]]) -> float:
    """Wall time of the batches one after the other."""

    async def run() -> None:
        for batch in batches:
            for trace in await method.answer(batch):
                assert trace.answer and trace.usage.calls == 3, trace

    started = time.perf_counter()
    asyncio.run(run())
    return time.perf_counter() - started


def main() -> None:
    """Prints one JSON line a way, and one with the ratio."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    questions = [Question(f"q{i}", f"Who made film number {i}?") for i in range(number)]
    with tempfile.TemporaryDirectory() as folder, FakeServer(reply, latency_s=LATENCY_S) as server:
        method = pipeline(server, Path(folder), number)
        seconds_for(method, [questions[:1]])  # imports and warms up
        together = seconds_for(method, [questions])
        single = seconds_for(method, [[question] for question in questions])
    facts = {"questions": number, "latency_s": LATENCY_S, "calls": 3 * number}
    print(json.dumps(facts | {"way": "at_once", "seconds": round(together, 3)}))
    print(json.dumps(facts | {"way": "one_by_one", "seconds": round(single, 3)}))
    print(json.dumps({"ratio": round(single / together, 2)}))


if __name__ == "__main__":
    main()
