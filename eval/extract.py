"""Chunks to triplets.   python eval/extract.py corpus=demo extractor=sentences"""

import json
import sys

import hydra
import wiring
from omegaconf import DictConfig

from triax.extraction.run import ExtractionError


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    corpus, chunks = wiring.open_corpus(cfg)
    try:
        folder, report = wiring.make_triplets(cfg, corpus, chunks)
    except ExtractionError as error:
        sys.exit(f"error: {error}")
    print(json.dumps({"folder": str(folder), **report}))


if __name__ == "__main__":
    main()
