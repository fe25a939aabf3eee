import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from triax.extraction.corpus_shards import (
    extract_shard,
    is_extracted,
    merge_extraction,
    plan_extraction,
    planned_chunks,
)
from triax.extraction.run import ExtractionError, extract_corpus
from triax.llm.ledger import Ledger
from triax.records.completions import Completion, CompletionRequest, Message
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.runs.attempts import Worker
from triax.runs.folder import RunFolderError
from triax.runs.shards import ShardError

CHUNKS = [Chunk(f"c{n}", f"d{n}", f"text {n}\u2028\ud83d", f"T{n}", n) for n in range(10)]


def good(chunk: Chunk) -> Extraction:
    return Extraction(chunk.id, (Triplet(chunk.title, "is", chunk.text, 0.25),), ("e",))


def bad(chunk: Chunk) -> Extraction:
    return Extraction(chunk.id, (), status="failed", reason="no answer")


def bad_for(*ids: str) -> Callable[[Chunk], Extraction]:
    return lambda chunk: bad(chunk) if chunk.id in ids else good(chunk)


class Reader:
    """Reads each chunk by a function, and keeps the batches that it was given."""

    name = "reader"

    def __init__(self, read: Callable[[Chunk], Extraction] = good, **config: object) -> None:
        self.read = read
        self.config = config
        self.batches: list[list[str]] = []

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
        self.batches.append([chunk.id for chunk in chunks])
        return [self.read(chunk) for chunk in chunks]


@pytest.fixture
def plan(tmp_path):
    return plan_extraction(CHUNKS, Reader(), tmp_path / "plan", 4, {"more": 1})


def make(plan, number, reader=None, **options):
    options = {"batch_size": 2, "max_failed": 0.25} | options
    return asyncio.run(extract_shard(plan, number, reader or Reader(), Worker.this(), **options))


def test_a_plan_holds_the_chunks_as_they_are(plan):
    assert planned_chunks(plan) == CHUNKS
    assert (plan.num_shards, plan.inputs["more"], plan.inputs["extractor"]) == (3, 1, "reader")
    with pytest.raises(ValueError, match="1 chunk ids occur twice"):
        plan_extraction([*CHUNKS, CHUNKS[0]], Reader(), plan.folder, 4)
    with pytest.raises(ShardError, match="corpus: .* there, .* given"):
        plan_extraction(CHUNKS[1:], Reader(), plan.folder, 4, {"more": 1})


def test_r18_merged_shards_are_the_bytes_of_one_machine(plan, tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    reader = Reader(bad_for("c5"))
    asyncio.run(extract_corpus(CHUNKS, reader, one, batch_size=2, max_failed=0.1))
    readers = [Reader(bad_for("c5")) for _ in range(3)]
    for number in (2, 0, 1):
        make(plan, number, readers[number])
    report = merge_extraction(plan, many, max_failed=0.1)
    for name in ("triplets.jsonl", "manifest.json", "config.json"):
        assert (many / name).read_bytes() == (one / name).read_bytes()
    assert (report.num_chunks, report.ok, report.failed_chunk_ids) == (10, 9, ("c5",))
    # A size of shards that is a multiple of that of batches gives the extractor the same batches.
    assert readers[0].batches + readers[1].batches[:2] + readers[2].batches == reader.batches[:5]
    again = Reader()
    asyncio.run(extract_corpus(CHUNKS, again, many, batch_size=2))
    assert again.batches == [["c5"]]  # one machine takes up what was merged


def test_a_merge_refuses_by_number_and_writes_nothing(plan, tmp_path):
    make(plan, 1)
    with pytest.raises(ShardError, match="2 of 3 .*shard 0: missing; shard 2: missing"):
        merge_extraction(plan, tmp_path / "many")
    assert not (tmp_path / "many").exists()
    make(plan, 0)
    make(plan, 2)
    path = plan.finished(1) / "triplets.jsonl"
    path.write_bytes(path.read_bytes().replace(b"T4", b"T9"))
    with pytest.raises(ShardError, match="1 of 3 .*shard 1: triplets.jsonl was altered"):
        merge_extraction(plan, tmp_path / "many")
    reader = Reader()
    assert make(plan, 1, reader) and len(reader.batches) == 2  # nothing is taken from it
    merge_extraction(plan, tmp_path / "many")


def test_r02_the_whole_corpus_is_judged_as_on_one_machine(plan, tmp_path):
    def read(chunk: Chunk) -> Extraction:
        empty = Extraction(chunk.id, (), status="empty", reason="nothing")
        return empty if chunk.id in ("c0", "c1", "c2") else bad_for("c4")(chunk)

    for number in range(3):
        make(plan, number, Reader(read))
    with pytest.raises(ExtractionError, match="1 of 10 chunks failed and 3 are empty.*max_failed"):
        merge_extraction(plan, tmp_path / "many", max_failed=0.3)
    assert not (tmp_path / "many" / "manifest.json").exists()
    assert merge_extraction(plan, tmp_path / "many", max_failed=0.4).empty == 3


def test_r04_a_finished_shard_asks_for_nothing(plan):
    assert make(plan, 0)["counts"]["ok"] == 4
    before = plan.record(0)
    reader = Reader()
    assert make(plan, 0, reader) is None
    assert reader.batches == [] and plan.record(0) == before


def test_r04_a_killed_attempt_is_copied_from_and_left_alone(plan):
    class Dying(Reader):
        async def extract(self, chunks):
            if len(self.batches) == 1:
                raise KeyboardInterrupt
            return await super().extract(chunks)

    with pytest.raises(KeyboardInterrupt):
        make(plan, 0, Dying())
    (left,) = plan.attempts(0).iterdir()
    log = left / "extractions.jsonl"
    log.write_bytes(log.read_bytes() + b'{"chunk_id": "c2", "status"')  # torn as it was written
    before = log.read_bytes()
    reader = Reader()
    record = make(plan, 0, reader)
    assert reader.batches == [["c2", "c3"]] and record["copied"] == 2
    assert log.read_bytes() == before


def test_r30_an_attempt_that_comes_second_leaves_no_trace(plan):
    other = Reader()

    class Slow(Reader):
        async def extract(self, chunks):
            if chunks[0].id == "c2":  # started again elsewhere, the shard is finished there
                await extract_shard(plan, 0, other, Worker.this(), batch_size=2)
            return await super().extract(chunks)

    assert make(plan, 0, Slow()) is None
    assert other.batches == [["c2", "c3"]]  # what the first had done was copied
    assert plan.record(0)["copied"] == 2 and plan.fault(0) == ""
    assert list(plan.attempts(0).iterdir()) == []


def test_r03_a_shard_in_which_too_many_failed_is_not_finished(plan):
    with pytest.raises(ExtractionError, match="2 of 4 chunks of shard 0 .*max_failed=0.25.*no ans"):
        make(plan, 0, Reader(bad_for("c0", "c1")))
    assert plan.fault(0) == "missing"
    later = Reader()
    assert make(plan, 0, later)["copied"] == 2
    assert later.batches == [["c0", "c1"]]  # those that failed, and only those
    with pytest.raises(ExtractionError, match="2 of 2 chunks of shard 2"):
        make(plan, 2, Reader(bad), max_failed=0.5)
    assert make(plan, 2, Reader(bad_for("c9")))["counts"]["failed"] == 1  # a quarter of a full one


def test_failed_chunks_of_a_finished_shard_are_tried_again_where_asked(plan):
    make(plan, 0, Reader(bad_for("c1")))
    later = Reader()
    assert make(plan, 0, later) is None
    assert make(plan, 0, later, retries_failed=True)["counts"]["failed"] == 0
    assert later.batches == [["c1"]]
    assert make(plan, 0, later, retries_failed=True) is None


def test_r28_another_extractor_than_planned_is_refused(plan):
    with pytest.raises(ShardError, match=r"extractor_config \{\}, given is \{'model': 'large'\}"):
        make(plan, 0, Reader(model="large"))
    assert not plan.attempts(0).exists()


def test_a_folder_of_another_corpus_is_refused_and_a_finished_one_kept(plan, tmp_path):
    asyncio.run(extract_corpus(CHUNKS[1:], Reader(), tmp_path / "other"))
    for number in range(3):
        make(plan, number)
    with pytest.raises(RunFolderError, match="corpus: "):
        merge_extraction(plan, tmp_path / "other")
    assert not is_extracted(plan, tmp_path / "other")
    merge_extraction(plan, tmp_path / "many")
    assert is_extracted(plan, tmp_path / "many")
    before = (tmp_path / "many" / "triplets.jsonl").stat()
    assert merge_extraction(plan, tmp_path / "many").num_triplets == 10
    assert (tmp_path / "many" / "triplets.jsonl").stat() == before


def test_the_record_has_the_cost_of_this_shard(plan):
    ledger = Ledger()

    class Asking(Reader):
        async def extract(self, chunks):
            request = CompletionRequest((Message("user", "?"),), stage="extract")
            ledger.record(request, Completion("a", "stop", 7, 2), "model")
            return await super().extract(chunks)

    make(plan, 0, Asking(), ledger=ledger)
    record = make(plan, 2, Asking(), ledger=ledger)
    assert record["usage"]["calls"] == 1 and record["usage"]["prompt_tokens"] == 7
    stored = json.loads((plan.finished(2) / "done.json").read_text(encoding="utf-8"))
    assert stored["usage"] == record["usage"] and stored["seconds"] >= 0


def test_r09_a_corpus_without_chunks(tmp_path):
    plan = plan_extraction([], Reader(), tmp_path / "plan", 4)
    assert merge_extraction(plan, tmp_path / "many").num_chunks == 0
    assert Path(tmp_path / "many" / "triplets.jsonl").read_bytes() == b""
