"""Triplets to a searchable index.   python eval/index.py corpus=demo extractor=sentences"""

import json
import time

import hydra
import tracked
import wiring
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    started = time.monotonic()
    corpus, chunks = wiring.open_corpus(cfg)
    triplets = wiring.require(wiring.triplets_folder(cfg, corpus), "extract")
    folder = wiring.index_folder(cfg, corpus)
    config = {key: wiring.plain(cfg[key]) for key in ("corpus", "chunks", "extractor", "encoder")}
    config |= {"corpus_fingerprint": corpus.fingerprint, "embeds_chunks": cfg.embeds_chunks}
    config |= {"triplets": triplets.name, "index": folder.name}
    place = tracked.stage_folder(cfg, "index", folder)
    with tracked.tracked(cfg, "index", folder.name, place, config) as tracker:
        index = wiring.make_index(cfg, corpus, chunks, triplets)
        seconds = round(time.monotonic() - started, 1)
        tracked.tell_index(tracker, folder, triplets, index.manifest["counts"], seconds)
    print(json.dumps({"folder": str(index.folder), **index.manifest["counts"], "seconds": seconds}))


if __name__ == "__main__":
    main()
