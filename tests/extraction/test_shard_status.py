import asyncio

import pytest
from test_corpus_shards import CHUNKS, Reader, bad, bad_for, make

from triax.extraction.corpus_shards import plan_extraction
from triax.extraction.shard_status import cost, unfinished
from triax.llm.ledger import Ledger
from triax.records.completions import Completion, CompletionRequest, Message


def test_every_state_of_a_shard(tmp_path):
    plan = plan_extraction(CHUNKS, Reader(), tmp_path / "plan", 2)
    make(plan, 0)
    with pytest.raises(Exception, match="2 of 2"):
        make(plan, 1, Reader(bad))

    class Dying(Reader):
        async def extract(self, chunks):
            if self.batches:
                raise asyncio.CancelledError
            return await super().extract(chunks)

    with pytest.raises(asyncio.CancelledError):
        make(plan, 2, Dying(), batch_size=1)
    make(plan, 3)
    (plan.finished(3) / "triplets.jsonl").write_text("x")
    rows = list(unfinished(plan))
    assert [(row["shard"], row["state"]) for row in rows] == [
        (1, "failed"), (2, "started"), (3, "broken"), (4, "missing"),
    ]  # fmt: skip
    assert "no answer" in rows[0]["reason"] and rows[0]["attempts"] == 1
    assert (rows[1]["chunks_done"], rows[1]["chunks"]) == (1, 2) and rows[1]["idle_s"] >= 0
    assert "has 1 bytes" in rows[2]["reason"]
    total = cost(plan)
    assert (total["shards"], total["done"], total["chunks"], total["chunks_done"]) == (5, 1, 10, 2)


def test_the_cost_counts_calls_of_every_attempt(tmp_path):
    plan = plan_extraction(CHUNKS, Reader(), tmp_path / "plan", 4)
    assert cost(plan)["seconds_a_chunk"] is None
    records = [make(plan, number, Reader(bad_for("c4"))) for number in range(3)]
    request = CompletionRequest((Message("user", "?"),), stage="extract")
    for name in ("12_0.r0.n1", "12_0.r1.n2"):
        ledger = Ledger(plan.folder / "calls" / f"{name}.jsonl")
        ledger.record(request, Completion("a", "stop", 7, 2), "model")
        ledger.record(request, Completion("a", "stop", 7, 2, is_cached=True), "model")
    total = cost(plan)
    assert (total["calls"], total["cached_calls"]) == (2, 2)
    assert (total["prompt_tokens"], total["completion_tokens"]) == (14, 4)
    assert (total["chunks_done"], total["chunks_failed"], total["triplets"]) == (10, 1, 9)
    assert total["seconds"] == pytest.approx(sum(record["seconds"] for record in records), abs=1e-3)
    assert total["seconds_a_chunk"] == pytest.approx(total["seconds"] / 10, abs=1e-4)
