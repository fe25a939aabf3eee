"""Chunks to triplets.   python eval/extract.py corpus=demo extractor=sentences"""

import json
import sys

import hydra
import tracked
import wiring
from omegaconf import DictConfig

from triax.extraction.run import ExtractionError


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    corpus, chunks = wiring.open_corpus(cfg)
    folder = wiring.triplets_folder(cfg, corpus)
    groups = ("corpus", "chunks", "extractor", *["llm"] * ("_partial_" in cfg.extractor))
    config = {group: wiring.plain(cfg[group]) for group in groups}
    config |= {"corpus_fingerprint": corpus.fingerprint, "triplets": folder.name}
    config["adapters"] = wiring.adapters(config)
    place = tracked.stage_folder(cfg, "extract", folder)
    with tracked.tracked(cfg, "extract", folder.name, place, config) as tracker:
        try:
            folder, report = wiring.make_triplets(cfg, corpus, chunks)
        except ExtractionError as error:
            sys.exit(f"error: {error}")
        tracked.tell_triplets(tracker, corpus, folder, report, config["adapters"])
    print(json.dumps({"folder": str(folder), **report}))


if __name__ == "__main__":
    main()
