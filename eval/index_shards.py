"""The vectors of an index as FAISS shards, for index=faiss_shards.

    python eval/index_shards.py stage=train corpus=demo extractor=sentences index.shards=4
    python eval/index_shards.py stage=build worker=0 num_workers=2 ...    (or shard=3)
    python eval/index_shards.py stage=merge ...

with the same settings each time; a factory has commas, so it stands in quotes of its own:
"index.factory='IVF4096,SQ8'". `index_folder=` names an index directly. What is done already is
skipped, so a killed stage is called again. Merging is optional: shards can be searched as they are.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import hydra
import wiring
from omegaconf import DictConfig

from triax.indexing.faiss_plan import FaissPlan, plan_shards, shard_name
from triax.indexing.faiss_shards import build_shard, merge_shards, train
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="index_shards")
def main(cfg: DictConfig) -> None:
    started = time.monotonic()
    if cfg.stage not in ("train", "build", "merge"):
        sys.exit(f"error: stage={cfg.stage}; expected train, build or merge")
    try:
        plan = _plan(cfg)
        if cfg.stage == "train":
            done = {"trained on": plan.sample, "bytes": _bytes(train(plan))}
        elif cfg.stage == "build":
            done = _build(plan, _own_shards(cfg, plan.shards))
        else:
            done = {"rows": plan.rows, "bytes": _bytes(merge_shards(plan))}
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"folder": str(plan.folder), **done, "seconds": seconds}))


def _plan(cfg: DictConfig) -> FaissPlan:
    if cfg.index_folder:
        folder = Path(cfg.index_folder).expanduser()
    else:
        corpus, _ = wiring.open_corpus(cfg)
        folder = wiring.require(wiring.index_folder(cfg, corpus), "index")
    index = cfg.index
    return plan_shards(folder, index.factory, index.shards, index.sample, index.seed)


def _own_shards(cfg: DictConfig, count: int) -> Sequence[int]:
    if cfg.shard is not None:
        return [cfg.shard]
    if not 0 <= cfg.worker < cfg.num_workers:
        raise ValueError(
            f"worker={cfg.worker} of num_workers={cfg.num_workers}; expected 0 <= worker < "
            "num_workers, the tasks of an array without gaps"
        )
    return range(cfg.worker, count, cfg.num_workers)


def _build(plan: FaissPlan, numbers: Sequence[int]) -> dict:
    size = 0
    for number in numbers:
        start, end = plan.range_of(number)
        with track(shard_name(number), end - start) as progress:
            size += _bytes(build_shard(plan, number, progress))
    return {"shards": list(numbers), "of": plan.shards, "bytes": size}


def _bytes(manifest: dict) -> int:
    return sum(one["bytes"] for one in manifest["files"].values())


if __name__ == "__main__":
    main()
