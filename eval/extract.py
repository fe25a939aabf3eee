"""Chunks to triplets.   python eval/extract.py corpus=demo extractor=sentences"""

import asyncio
import json
import sys

import hydra
import wiring
from omegaconf import DictConfig

from triax.extraction.run import ExtractionError, extract_corpus
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="extract")
def main(cfg: DictConfig) -> None:
    corpus, chunks = wiring.open_corpus(cfg)
    folder = wiring.triplets_folder(cfg, corpus)
    folder.mkdir(parents=True, exist_ok=True)
    extractor = wiring.open_extractor(cfg, wiring.open_completer(cfg, folder / "calls.jsonl"))
    with track("extract", len(chunks)) as progress:
        try:
            report = asyncio.run(
                extract_corpus(
                    chunks,
                    extractor,
                    folder,
                    batch_size=cfg.batch_size,
                    max_failed=cfg.max_failed,
                    progress=progress,
                )
            )
        except ExtractionError as error:
            sys.exit(f"error: {error}")
    print(json.dumps({"folder": str(folder), **report.to_json()}))


if __name__ == "__main__":
    main()
