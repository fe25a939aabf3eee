import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from triax.extraction.recorded import read_extractions
from triax.extraction.run import (
    ExtractionError,
    ExtractionReport,
    describe,
    extract_corpus,
    save_extractions,
)
from triax.llm.servers import NoServerError
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.runs.folder import RunFolderError, claim

SOURCE = Path(__file__).parents[2] / "src"


def chunks(count: int) -> list[Chunk]:
    return [Chunk(f"c{n}", f"c{n}", f"text {n}", f"T{n}") for n in range(count)]


def good(chunk: Chunk) -> Extraction:
    return Extraction(chunk.id, (Triplet(chunk.title, "is", chunk.text),))


def bad(chunk: Chunk) -> Extraction:
    return Extraction(chunk.id, (), status="failed", reason="no answer")


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


def run(
    some: Sequence[Chunk], extractor: object, folder: Path, **options: object
) -> ExtractionReport:
    return asyncio.run(extract_corpus(some, extractor, folder, **options))  # type: ignore[arg-type]


def test_what_is_written(tmp_path: Path) -> None:
    seen: list[int] = []
    report = run(chunks(5), Reader(), tmp_path, batch_size=2, progress=seen.append)
    assert (report.num_chunks, report.ok, report.failed, report.num_triplets) == (5, 5, 0, 5)
    assert list(read_extractions(tmp_path / "triplets.jsonl")) == [good(c) for c in chunks(5)]
    assert seen == [0, 2, 4, 5]
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["extractor"] == "reader"
    assert manifest["counts"] == {
        "chunks": 5, "triplets": 5, "ok": 5, "partial": 0, "empty": 0, "failed": 0,
    }  # fmt: skip
    saved = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert saved == report.to_json()


def test_r09_no_chunks(tmp_path: Path) -> None:
    report = run([], Reader(), tmp_path)
    assert (report.num_chunks, report.share_without_triplets) == (0, 0.0)
    assert (tmp_path / "triplets.jsonl").read_bytes() == b""


def test_chunks_that_share_an_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 chunk ids occur twice, such as 'c0'"):
        run([*chunks(2), *chunks(1)], Reader(), tmp_path)


def test_r04_a_finished_run_asks_for_nothing(tmp_path: Path) -> None:
    run(chunks(3), Reader(), tmp_path)
    before = (tmp_path / "triplets.jsonl").read_bytes()
    again = Reader()
    report = run(chunks(3), again, tmp_path)
    assert again.batches == []
    assert report.num_resumed == 3
    assert (tmp_path / "triplets.jsonl").read_bytes() == before


def test_r03_failed_chunks_are_tried_again_alone_at_the_end(tmp_path: Path) -> None:
    tries: dict[str, int] = {}

    def read(chunk: Chunk) -> Extraction:
        tries[chunk.id] = tries.get(chunk.id, 0) + 1
        return bad(chunk) if chunk.id in ("c1", "c2") and tries[chunk.id] == 1 else good(chunk)

    reader = Reader(read)
    report = run(chunks(4), reader, tmp_path, batch_size=3)
    assert reader.batches == [["c0", "c1", "c2"], ["c3"], ["c1"], ["c2"]]
    assert (report.ok, report.failed) == (4, 0)
    order = [one.chunk_id for one in read_extractions(tmp_path / "triplets.jsonl")]
    assert order == ["c0", "c1", "c2", "c3"]


def test_r03_what_still_fails_is_listed_and_tried_by_the_next_call(tmp_path: Path) -> None:
    reader = Reader(lambda chunk: bad(chunk) if chunk.id == "c1" else good(chunk))
    report = run(chunks(4), reader, tmp_path, max_failed=0.25)
    assert report.failed_chunk_ids == ("c1",)
    later = Reader()
    report = run(chunks(4), later, tmp_path)
    assert later.batches == [["c1"]]
    assert (report.failed, report.num_resumed) == (0, 3)


def test_r03_an_extractor_that_raises_loses_its_batch_and_no_other(tmp_path: Path) -> None:
    def read(chunk: Chunk) -> Extraction:
        if chunk.id == "c0":
            raise OSError("broken")
        return good(chunk)

    with pytest.raises(ExtractionError, match="OSError: broken"):
        run(chunks(4), Reader(read), tmp_path, batch_size=2)
    rows = list(read_extractions(tmp_path / "triplets.jsonl"))
    assert [one.status for one in rows] == ["failed", "ok", "ok", "ok"]


@pytest.mark.parametrize("status", ["failed", "empty"])
def test_r02_too_many_chunks_without_triplets(tmp_path: Path, status: str) -> None:
    def read(chunk: Chunk) -> Extraction:
        nothing = Extraction(chunk.id, (), status=status, reason="why")  # type: ignore[arg-type]
        return nothing if chunk.id == "c0" else good(chunk)

    run(chunks(4), Reader(read), tmp_path / "at", max_failed=0.25)
    assert (tmp_path / "at" / "manifest.json").exists()
    with pytest.raises(ExtractionError, match="max_failed=0.2; most often .1.: why"):
        run(chunks(4), Reader(read), tmp_path / "above", max_failed=0.2)
    # All is saved, but without a manifest no later program takes it for finished.
    assert len(list(read_extractions(tmp_path / "above" / "triplets.jsonl"))) == 4
    assert not (tmp_path / "above" / "manifest.json").exists()


def test_r02_a_model_that_is_not_there_ends_the_run_early(tmp_path: Path) -> None:
    reader = Reader(bad)
    with pytest.raises(ExtractionError, match="200 of 200 chunks failed"):
        run(chunks(200), reader, tmp_path, batch_size=8)
    assert len(reader.batches) == 8
    later = Reader()
    assert run(chunks(200), later, tmp_path, batch_size=8).ok == 200


def test_r02_a_run_without_servers_ends_at_once_and_blames_no_chunk(tmp_path: Path) -> None:
    def read(chunk: Chunk) -> Extraction:
        if chunk.id == "c2":
            raise NoServerError("no server of m")
        return good(chunk)

    with pytest.raises(NoServerError, match="no server of m"):
        run(chunks(6), Reader(read), tmp_path, batch_size=2)
    later = Reader()
    report = run(chunks(6), later, tmp_path, batch_size=2)
    assert (report.ok, report.num_resumed) == (6, 2)


def test_r28_another_extractor_or_corpus_is_refused_with_both_values(tmp_path: Path) -> None:
    run(chunks(2), Reader(good, model="small"), tmp_path)
    before = (tmp_path / "triplets.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match="'small' -> 'large'"):
        run(chunks(2), Reader(good, model="large"), tmp_path)
    with pytest.raises(RunFolderError, match="corpus: '[0-9a-f]{64}' -> '[0-9a-f]{64}'"):
        run(chunks(3), Reader(good, model="small"), tmp_path)
    changed = [Chunk("c0", "c0", "text 0", "T0"), Chunk("c1", "c1", "other", "T1")]
    with pytest.raises(RunFolderError, match="corpus"):
        run(changed, Reader(good, model="small"), tmp_path)
    assert (tmp_path / "triplets.jsonl").read_bytes() == before


def test_r30_a_folder_in_use_is_refused_and_released_after(tmp_path: Path) -> None:
    def read(chunk: Chunk) -> Extraction:
        with pytest.raises(RunFolderError, match="in use"):
            claim(tmp_path, {})
        return good(chunk)

    run(chunks(1), Reader(read), tmp_path)
    run(chunks(1), Reader(), tmp_path)


def test_an_extractor_must_give_one_extraction_for_each_chunk(tmp_path: Path) -> None:
    class Short(Reader):
        async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
            return [good(chunk) for chunk in chunks[:1]]

    with pytest.raises(ValueError, match="gave 1 extractions for 2 chunks"):
        run(chunks(2), Short(), tmp_path)


def test_what_was_extracted_elsewhere_is_written_alike(tmp_path: Path) -> None:
    run(chunks(5), Reader(model="m"), tmp_path / "here", batch_size=2)
    config = describe(chunks(5), Reader(model="m"))
    rows = [good(chunk) for chunk in chunks(5)]
    report = save_extractions(chunks(5), rows, tmp_path / "there", config, seconds=3.5)
    assert (report.seconds, report.num_triplets) == (3.5, 5)
    for name in ("triplets.jsonl", "extractions.jsonl", "manifest.json", "config.json"):
        there = (tmp_path / "there" / name).read_bytes()
        assert there == (tmp_path / "here" / name).read_bytes()
    with pytest.raises(ValueError, match="4 extractions are not those of 5 chunks"):
        save_extractions(chunks(5), rows[1:], tmp_path / "there", config)
    with pytest.raises(RunFolderError, match="corpus"):
        other = describe(chunks(4), Reader(model="m"))
        save_extractions(chunks(4), rows[:4], tmp_path / "there", other)


def test_r04_a_torn_line_is_done_again(tmp_path: Path) -> None:
    run(chunks(4), Reader(), tmp_path)
    whole = (tmp_path / "triplets.jsonl").read_bytes()
    log = tmp_path / "extractions.jsonl"
    text = log.read_bytes()
    for size in (0, 1, len(text) // 2, len(text) - 1):
        log.write_bytes(text[:size])
        reader = Reader()
        run(chunks(4), reader, tmp_path)
        assert sum(reader.batches, []) == [f"c{n}" for n in range(text[:size].count(b"\n"), 4)]
        assert (tmp_path / "triplets.jsonl").read_bytes() == whole


def test_r04_kill_and_resume_gives_the_same_bytes_and_repeats_nothing(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import asyncio, sys, time
        from pathlib import Path
        from triax.extraction.run import extract_corpus
        from triax.records.documents import Chunk
        from triax.records.triplets import Extraction, Triplet

        class Slow:
            name = "slow"
            async def extract(self, chunks):
                with open(sys.argv[2], "a") as asked:
                    asked.write("".join(chunk.id + "\\n" for chunk in chunks))
                time.sleep(float(sys.argv[3]))
                return [Extraction(c.id, (Triplet(c.title, "is", c.text),)) for c in chunks]

        chunks = [Chunk(f"c{n}", f"c{n}", f"text {n}", "\\u0141") for n in range(12)]
        asyncio.run(extract_corpus(chunks, Slow(), Path(sys.argv[1]), batch_size=2))
        """),
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}

    def start(folder: str, asked: str, pause: str) -> subprocess.Popen[bytes]:
        arguments = [str(tmp_path / folder), str(tmp_path / asked), pause]
        return subprocess.Popen([sys.executable, str(program), *arguments], env=environment)

    assert start("straight", "asked-straight", "0").wait(60) == 0
    killed = start("killed", "asked-before", "0.2")
    log = tmp_path / "killed" / "extractions.jsonl"
    give_up = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") >= 4):
        assert killed.poll() is None and time.monotonic() < give_up
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    finished = log.read_bytes().count(b"\n")
    assert 4 <= finished < 12
    assert not (tmp_path / "killed" / "triplets.jsonl").exists()
    assert start("killed", "asked-after", "0").wait(60) == 0
    asked = (tmp_path / "asked-after").read_text(encoding="utf-8").split()
    assert asked == [f"c{n}" for n in range(finished, 12)]
    for name in ("triplets.jsonl", "manifest.json"):
        straight = (tmp_path / "straight" / name).read_bytes()
        assert (tmp_path / "killed" / name).read_bytes() == straight
