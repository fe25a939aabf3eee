"""How far the shards of a corpus are, and what they have cost."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triax.records.files import read_jsonl
from triax.runs.attempts import FAILED
from triax.runs.shards import ShardPlan


def unfinished(plan: ShardPlan, is_verified: bool = False) -> Iterator[dict[str, Any]]:
    """One row for each shard that is not finished.

    `state` is `missing` (nobody has begun), `started` (under way, or killed: `idle_s` says for how
    long nothing was written), `failed` (the last attempt gave up: `reason`) or `broken` (finished,
    but altered: `reason`). `chunks_done` is the most that an attempt has.
    """
    for number, reason in plan.faults(is_verified).items():
        row: dict[str, Any] = {
            "shard": number,
            "state": "missing",
            "chunks": plan.num_items(number),
        }
        found = sorted(plan.attempts(number).glob("*"), key=_written)
        if plan.finished(number).exists():
            row |= {"state": "broken", "reason": reason}
        elif found:
            last = found[-1]
            row |= {"state": "started", "attempts": len(found), "last": last.name}
            row["chunks_done"] = max(map(_num_done, found))
            row["idle_s"] = round(time.time() - _written(last))
            if (last / FAILED).exists():
                said = json.loads((last / FAILED).read_text(encoding="utf-8"))
                row |= {"state": "failed", "reason": said["reason"]}
        yield row


def cost(plan: ShardPlan) -> dict[str, Any]:
    """Chunks and seconds of the finished shards, and the calls of every attempt.

    `seconds` are summed over shards, however many ran at once. Calls of attempts that were killed
    or gave way count too: they were paid. `cached_calls` cost nothing.
    """
    records = [
        plan.record(number)
        for number in range(plan.num_shards)
        if not plan.fault(number, is_verified=False)
    ]
    seconds = sum(record["seconds"] for record in records)
    chunks = sum(record["counts"]["num_chunks"] for record in records)
    new = sum(record["counts"]["num_chunks"] - record["copied"] for record in records)
    total: dict[str, Any] = {
        "shards": plan.num_shards,
        "done": len(records),
        "chunks": plan.manifest["num_items"],
        "chunks_done": chunks,
        "chunks_failed": sum(record["counts"]["failed"] for record in records),
        "triplets": sum(record["counts"]["num_triplets"] for record in records),
        "seconds": round(seconds, 3),
        "seconds_a_chunk": round(seconds / new, 4) if new else None,
    }
    return total | _calls(plan.folder / "calls")


def _calls(folder: Path) -> dict[str, int]:
    total = dict.fromkeys(("calls", "cached_calls", "prompt_tokens", "completion_tokens"), 0)
    for path in sorted(folder.glob("*.jsonl")):
        for row in read_jsonl(path):
            if row["is_cached"]:
                total["cached_calls"] += 1
                continue
            total["calls"] += 1
            total["prompt_tokens"] += row["prompt_tokens"]
            total["completion_tokens"] += row["completion_tokens"]
    return total


def _written(folder: Path) -> float:
    """When the folder, or a file in it, was last written."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except FileNotFoundError:  # it was finished or gave way just now
        return 0.0


def _num_done(folder: Path) -> int:
    try:
        return (folder / "extractions.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
