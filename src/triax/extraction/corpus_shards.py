"""A corpus through an extractor on many machines: planned, extracted shard by shard, merged.

What is merged is what `extract_corpus` on one machine would have written, byte for byte, if the
extractor's results do not depend on what else is in a batch, or if the size of a shard is a
multiple of that of a batch.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triax.extraction.recorded import extraction_from_json, extraction_to_json
from triax.extraction.run import (
    ExtractionError,
    ExtractionReport,
    describe,
    extract_corpus,
    save_extractions,
)
from triax.llm.ledger import Ledger
from triax.records.documents import Chunk
from triax.records.files import read_jsonl
from triax.records.triplets import Extraction
from triax.records.usage import Usage
from triax.records.verbs import Extractor
from triax.runs.attempts import Attempt, Worker
from triax.runs.items import ItemLog
from triax.runs.shards import ShardError, ShardPlan, write_plan

_DESCRIBED = ("schema", "extractor", "extractor_config", "corpus")
_RESULT, _LOG = "triplets.jsonl", "extractions.jsonl"
_COUNTS = ("num_chunks", "ok", "partial", "empty", "failed", "num_triplets")
_log = logging.getLogger(__name__)


def plan_extraction(
    chunks: Sequence[Chunk],
    extractor: Extractor,
    folder: Path | str,
    shard_size: int,
    more: Mapping[str, Any] | None = None,
) -> ShardPlan:
    """Cuts a corpus into shards of `shard_size` chunks and writes them down, once.

    `more` (JSON) is kept among the inputs of the plan.

    Raises:
        ValueError: two chunks share an id, or `shard_size` is not positive.
        ShardError: the folder holds the plan of another corpus, extractor or size.
    """
    inputs = describe(chunks, extractor) | dict(more or {})
    return write_plan(folder, map(asdict, chunks), inputs, shard_size)


def planned_chunks(plan: ShardPlan) -> list[Chunk]:
    """All chunks of a plan, in the order of the corpus.

    Raises:
        ShardError: a file of the plan was altered.
    """
    return [chunk for number in range(plan.num_shards) for chunk in shard_chunks(plan, number)]


def shard_chunks(plan: ShardPlan, number: int) -> list[Chunk]:
    """The chunks of one shard."""
    return [Chunk(**row) for row in plan.items(number)]


async def extract_shard(
    plan: ShardPlan,
    number: int,
    extractor: Extractor,
    worker: Worker,
    *,
    batch_size: int = 64,
    max_failed: float = 0.05,
    retries_failed: bool = False,
    ledger: Ledger | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any] | None:
    """Extracts a shard that is not finished yet and publishes the result.

    Chunks that another attempt has extracted are copied, not extracted again. Several attempts at
    a shard may run at once, on machines that do not see each other: one result stands.

    Args:
        plan: what `plan_extraction` wrote.
        number: of the shard.
        extractor: must be the one of the plan.
        worker: who works.
        batch_size: how many chunks the extractor gets at once, and the most that a kill loses.
        max_failed: largest share of a full shard's chunks that may have failed for the shard to be
            finished, unless all of them have; the merge judges the whole corpus, with the empty.
        retries_failed: also takes up a finished shard in which chunks failed.
        ledger: where the extractor's calls are recorded, for the cost in the result.
        progress: is called with the number of chunks done.

    Returns:
        The record of the result, or None if the shard was finished by another.

    Raises:
        ShardError: the extractor is another than planned, or the plan was altered.
        ExtractionError: too many chunks failed; what was found is kept for the next attempt.
    """
    _refuse_other_extractor(plan, extractor)
    attempt = Attempt(plan, number, worker)
    if not plan.fault(number):
        if not (retries_failed and plan.record(number)["counts"]["failed"]):
            return None
        attempt.withdraw(is_sound=True)
    attempt.withdraw()
    started, before = time.monotonic(), _usage(ledger)
    chunks = shard_chunks(plan, number)
    copied = _copy_from_others(attempt, chunks)
    try:
        report = await extract_corpus(
            chunks,
            extractor,
            attempt.folder,
            batch_size=batch_size,
            max_failed=1.0,
            progress=progress,
        )
        if report.failed and _is_refused(plan, report, max_failed):
            raise ExtractionError(_complaint(plan, number, report, max_failed, attempt.folder))
        record = {
            "counts": {key: value for key, value in report.to_json().items() if key in _COUNTS},
            "copied": copied,
            "seconds": round(time.monotonic() - started, 3),
            "usage": _spent(before, _usage(ledger)),
        }
        return record if attempt.publish([_RESULT], record) else None
    except Exception as error:
        attempt.fail(f"{type(error).__name__}: {error}")
        raise


def merge_extraction(
    plan: ShardPlan, folder: Path | str, max_failed: float = 0.05
) -> ExtractionReport:
    """Writes the results of all shards as those of one `extract_corpus`.

    A folder in which that extraction is finished already is left as it is. The report's `seconds`
    are the sum over the shards.

    Raises:
        ShardError: shards are missing or altered; the message lists them.
        ExtractionError: more than `max_failed` of the chunks gave no triplet.
        RunFolderError: the folder holds results of another corpus or extractor, or is in use.
    """
    folder = Path(folder)
    config = {key: plan.inputs[key] for key in _DESCRIBED}
    if is_extracted(plan, folder):
        return _report(folder)
    plan.require_complete()
    chunks: list[Chunk] = []
    extractions: list[Extraction] = []
    seconds = 0.0
    for number in range(plan.num_shards):
        chunks += shard_chunks(plan, number)
        rows = read_jsonl(plan.finished(number) / _RESULT)
        extractions += map(extraction_from_json, rows)
        seconds += plan.record(number)["seconds"]
    return save_extractions(
        chunks, extractions, folder, config, max_failed=max_failed, seconds=round(seconds, 3)
    )


def is_extracted(plan: ShardPlan, folder: Path | str) -> bool:
    """Whether the extraction that was planned is finished in a folder."""
    path = Path(folder) / "manifest.json"
    if not path.exists():
        return False
    there = json.loads(path.read_text(encoding="utf-8"))
    return all(there.get(key) == plan.inputs[key] for key in _DESCRIBED)


def _copy_from_others(attempt: Attempt, chunks: Sequence[Chunk]) -> int:
    """Puts what other attempts have extracted into the log of this one."""
    wanted = {chunk.id for chunk in chunks}
    found: dict[str, Extraction] = {}
    for row in attempt.left_by_others([_LOG, _RESULT]):
        try:
            extraction = extraction_from_json(row)
        except ValueError:
            continue
        if extraction.chunk_id in wanted and extraction.status != "failed":
            found.setdefault(extraction.chunk_id, extraction)
    log = ItemLog(attempt.folder / _LOG, key="chunk_id")
    log.append(extraction_to_json(found[c.id]) for c in chunks if c.id in found)
    if found:
        _log.info("shard %d: %d chunks copied from other attempts", attempt.number, len(found))
    return len(found)


def _refuse_other_extractor(plan: ShardPlan, extractor: Extractor) -> None:
    given = json.loads(json.dumps(describe([], extractor)))
    for key in ("schema", "extractor", "extractor_config"):
        if given[key] != plan.inputs[key]:
            raise ShardError(
                f"{plan.folder} was planned for {key} {plan.inputs[key]!r}, given is "
                f"{given[key]!r}; take the planned one, or delete the folder and plan again"
            )


def _is_refused(plan: ShardPlan, report: ExtractionReport, max_failed: float) -> bool:
    # Of a full shard: one bad chunk is no large share of the corpus if the last shard is short.
    allowed = max_failed * plan.manifest["shard_size"]
    return report.failed > allowed or (report.failed == report.num_chunks and max_failed < 1)


def _complaint(
    plan: ShardPlan, number: int, report: ExtractionReport, max_failed: float, folder: Path
) -> str:
    rows = map(extraction_from_json, read_jsonl(folder / _RESULT))
    reason = next(row.reason for row in rows if row.status == "failed")
    return (
        f"{report.failed} of {report.num_chunks} chunks of shard {number} of {plan.folder} failed, "
        f"more than max_failed={max_failed}; the first: {reason}. Submit the same again to try "
        "these again, or raise max_failed to accept them"
    )


def _usage(ledger: Ledger | None) -> Usage:
    return ledger.usage() if ledger else Usage()


def _spent(before: Usage, after: Usage) -> dict[str, Any]:
    old, new = asdict(before), asdict(after)
    return {key: round(new[key] - old[key], 6) for key in new}


def _report(folder: Path) -> ExtractionReport:
    saved = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    saved["failed_chunk_ids"] = tuple(saved["failed_chunk_ids"])
    return ExtractionReport(**saved)
