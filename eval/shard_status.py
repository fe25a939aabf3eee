"""Which shards of a corpus are not finished, and what they all have cost so far.

    python eval/shard_status.py corpus=demo extractor=sentences

One line of JSON a shard that is missing, started, failed or broken, then the sums; once the
triplets are merged, also how many shards of vectors there are.
"""

import json
import sys

import hydra
import shard_wiring
from omegaconf import DictConfig

from triax.extraction.corpus_shards import is_extracted
from triax.extraction.shard_status import cost, unfinished
from triax.runs.shards import ShardError


@hydra.main(version_base="1.3", config_path="../conf", config_name="shards")
def main(cfg: DictConfig) -> None:
    try:
        plan, corpus, triplets = shard_wiring.open_shards(cfg)
    except ShardError as error:
        sys.exit(f"error: {error}")
    is_merged = is_extracted(plan, triplets)
    for row in unfinished(plan):
        print(json.dumps({"stage": "extract", **row}))
    print(json.dumps({"stage": "extract", **cost(plan), "is_merged": is_merged}))
    if is_merged:
        shards = shard_wiring.vector_shards(cfg, plan, corpus, triplets)
        row = {"shards": len(shards), "done": len(shards) - len(shards.missing())}
        row["is_merged"] = shards.is_built
        print(json.dumps({"stage": "embed", **row}))


if __name__ == "__main__":
    main()
