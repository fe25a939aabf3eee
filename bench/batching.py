"""How much faster 64 questions are answered when all are asked at once.

    python bench/batching.py [num_questions]

The server is a stand-in on the loopback that takes 200 ms for an answer and serves any number at
the same time, so the ratio shows what the client adds, not what a GPU can do.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "llm")]

from fake_server import FakeServer  # noqa: E402

from triax.llm.http import HttpCompleter  # noqa: E402
from triax.records.completions import CompletionRequest, Message  # noqa: E402

LATENCY_S = 0.2


def ask(num_questions: int) -> list[CompletionRequest]:
    """One short request a question."""
    return [
        CompletionRequest((Message("user", f"question {number}"),), stage="bench")
        for number in range(num_questions)
    ]


async def at_once(completer: HttpCompleter, requests: list[CompletionRequest]) -> float:
    """Seconds for all requests in one call."""
    started = time.perf_counter()
    completions = await completer.complete(requests)
    seconds = time.perf_counter() - started
    assert all(completion.text for completion in completions)
    return seconds


async def one_by_one(completer: HttpCompleter, requests: list[CompletionRequest]) -> float:
    """Seconds for the same requests, each waiting for the one before."""
    return sum([await at_once(completer, [request]) for request in requests])


def main() -> None:
    """Prints one JSON line a way, and one with the ratio."""
    requests = ask(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
    with FakeServer(latency_s=LATENCY_S) as server:
        completer = HttpCompleter("fake", server.base_url, max_concurrent=len(requests))
        asyncio.run(at_once(completer, requests[:1]))  # imports and warms up
        together = asyncio.run(at_once(completer, requests))
        single = asyncio.run(one_by_one(completer, requests))
    facts = {"questions": len(requests), "latency_s": LATENCY_S}
    print(json.dumps(facts | {"way": "at_once", "seconds": round(together, 3)}))
    print(json.dumps(facts | {"way": "one_by_one", "seconds": round(single, 3)}))
    print(json.dumps({"ratio": round(single / together, 2)}))


if __name__ == "__main__":
    main()
