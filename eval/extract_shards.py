"""Extracts the shards of one worker that are not finished.

    python eval/extract_shards.py worker=0 num_workers=4 corpus=demo extractor=sentences

Needs the plan of eval/plan_shards.py and reads no more of the corpus than its shards. Killed and
started again, on this machine or another, it goes on; two copies of it do no harm.
"""

import asyncio
import json
import sys

import hydra
import shard_wiring
import wiring
from omegaconf import DictConfig

from triax.extraction.corpus_shards import extract_shard, is_extracted
from triax.extraction.run import ExtractionError
from triax.runs.attempts import Worker
from triax.runs.shards import ShardError, ShardPlan
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="shards")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    try:
        plan, _, triplets = shard_wiring.open_shards(cfg)
    except ShardError as error:
        sys.exit(f"error: {error}")
    own = shard_wiring.own_shards(cfg, plan.num_shards)
    if is_extracted(plan, triplets):
        own = range(0)
    made, failed = asyncio.run(extract(cfg, plan, own))
    print(json.dumps({"folder": str(plan.folder), "made": made, "failed": failed}))
    sys.exit(1 if failed else 0)


async def extract(cfg: DictConfig, plan: ShardPlan, numbers: range) -> tuple[list, list]:
    """The shards that were made, and those that failed: these leave the others untouched."""
    made: list[int] = []
    failed: list[int] = []
    worker = Worker.this()
    calls = plan.folder / "calls" / f"{worker.name}.jsonl"
    with shard_wiring.extractor_of(cfg, calls) as (extractor, ledger):
        for number in numbers:
            with track(f"shard {number}", plan.num_items(number)) as progress:
                try:
                    record = await extract_shard(
                        plan,
                        number,
                        extractor,
                        worker,
                        batch_size=cfg.batch_size,
                        max_failed=cfg.max_failed,
                        retries_failed=cfg.retries_failed,
                        ledger=ledger,
                        progress=progress,
                    )
                except (ExtractionError, ShardError) as error:
                    print(f"error: {error}", file=sys.stderr, flush=True)
                    failed.append(number)
                    continue
            if record:
                made.append(number)
                print(json.dumps({"shard": number, **record}), flush=True)
    return made, failed


if __name__ == "__main__":
    main()
