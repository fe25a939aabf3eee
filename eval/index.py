"""Triplets to a searchable index.   python eval/index.py corpus=demo extractor=sentences"""

import json
import time

import hydra
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    started = time.monotonic()
    corpus, chunks = wiring.open_corpus(cfg)
    triplets = wiring.require(wiring.triplets_folder(cfg, corpus), "extract")
    index = wiring.make_index(cfg, corpus, chunks, triplets)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"folder": str(index.folder), **index.manifest["counts"], "seconds": seconds}))


if __name__ == "__main__":
    main()
