"""Triplets to a searchable index.   python eval/index.py corpus=demo extractor=sentences"""

import json
import time

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.extraction.recorded import read_extractions
from triax.extraction.verbalize import propositions
from triax.indexing.updates import build_index
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="index")
def main(cfg: DictConfig) -> None:
    started = time.monotonic()
    corpus, chunks = wiring.open_corpus(cfg)
    triplets = wiring.require(wiring.triplets_folder(cfg, corpus), "extract")
    found = propositions(read_extractions(triplets / "triplets.jsonl"))
    folder = wiring.index_folder(cfg, corpus)
    with track("embed", len(found) + len(chunks) * cfg.embeds_chunks) as progress:
        index = build_index(
            chunks,
            found,
            instantiate(cfg.encoder),
            folder,
            extractor=triplets.name,
            embeds_chunks=cfg.embeds_chunks,
            progress=progress,
        )
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"folder": str(folder), **index.manifest["counts"], "seconds": seconds}))


if __name__ == "__main__":
    main()
