"""Embeds the shards of vectors of one worker that are not there.

    python eval/embed_shards.py worker=0 num_workers=4 corpus=demo extractor=sentences

Needs the triplets that eval/merge_shards.py wrote; `merge_shards.py stage=embed` makes the index.
"""

import json
import sys
import time

import hydra
import shard_wiring
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.runs.shards import ShardError
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="shards")
def main(cfg: DictConfig) -> None:
    started = time.monotonic()
    wiring.use_mesh(cfg)
    try:
        plan, corpus, triplets = shard_wiring.open_shards(cfg)
        wiring.require(triplets, "merge_shards")
        shards = shard_wiring.vector_shards(cfg, plan, corpus, triplets)
    except ShardError as error:
        sys.exit(f"error: {error}")
    own = shard_wiring.own_shards(cfg, len(shards))
    with track("embed", len(own)) as progress:
        made = shards.make(instantiate(cfg.encoder), own, progress)
    seconds = round(time.monotonic() - started, 1)
    row = {"folder": str(shards.folder), "shards": len(own), "made": made, "seconds": seconds}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
