"""Finished shards to what one machine would have made.

    python eval/merge_shards.py corpus=demo extractor=sentences                 the triplets
    python eval/merge_shards.py stage=embed corpus=demo extractor=sentences     the index

Ends with an error that lists the shards that are missing or altered, if there are any; it makes
none itself.
"""

import json
import sys
import time

import hydra
import shard_wiring
import wiring
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.extraction.corpus_shards import merge_extraction, planned_chunks
from triax.extraction.run import ExtractionError
from triax.indexing.updates import MissingVectorsError
from triax.runs.folder import RunFolderError
from triax.runs.shards import ShardError, ShardPlan


@hydra.main(version_base="1.3", config_path="../conf", config_name="shards")
def main(cfg: DictConfig) -> None:
    stages = {"extract": merge_triplets, "embed": merge_index}
    if cfg.stage not in stages:
        sys.exit(f"error: stage={cfg.stage}; expected one of {sorted(stages)}")
    try:
        plan, corpus, triplets = shard_wiring.open_shards(cfg)
        print(json.dumps(stages[cfg.stage](cfg, plan, corpus, triplets)))
    except (ShardError, ExtractionError, MissingVectorsError, RunFolderError) as error:
        sys.exit(f"error: {error}")


def merge_triplets(cfg: DictConfig, plan: ShardPlan, corpus: Corpus, triplets) -> dict:
    report = merge_extraction(plan, triplets, cfg.max_failed)
    return {"folder": str(triplets), **report.to_json()}


def merge_index(cfg: DictConfig, plan: ShardPlan, corpus: Corpus, triplets) -> dict:
    started = time.monotonic()
    wiring.require(triplets, "merge_shards")
    index = wiring.make_index(cfg, corpus, planned_chunks(plan), triplets, is_embedded=True)
    seconds = round(time.monotonic() - started, 1)
    return {"folder": str(index.folder), **index.manifest["counts"], "seconds": seconds}


if __name__ == "__main__":
    main()
