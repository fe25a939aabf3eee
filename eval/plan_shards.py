"""A corpus to shards that many machines extract.

    python eval/plan_shards.py corpus=demo extractor=sentences shard_size=32

Then extract_shards.py, merge_shards.py, embed_shards.py and merge_shards.py stage=embed, with the
same settings, do what extract.py and index.py do on one machine; slurm/corpus.sh submits them all.
A plan that is there already is kept; a corpus that has changed since is an error.
"""

import json
import sys

import hydra
import shard_wiring
import wiring
from omegaconf import DictConfig

from triax.extraction.corpus_shards import plan_extraction
from triax.runs.shards import ShardError


@hydra.main(version_base="1.3", config_path="../conf", config_name="shards")
def main(cfg: DictConfig) -> None:
    corpus, chunks = wiring.open_corpus(cfg)
    more = {"corpus_name": corpus.name, "corpus_fingerprint": corpus.fingerprint}
    folder = shard_wiring.shards_folder(cfg)
    try:
        with shard_wiring.extractor_of(cfg) as (extractor, _):
            plan = plan_extraction(chunks, extractor, folder, cfg.shard_size, more)
    except ShardError as error:
        sys.exit(f"error: {error}")
    print(json.dumps({"folder": str(folder), "chunks": len(chunks), "shards": plan.num_shards}))


if __name__ == "__main__":
    main()
