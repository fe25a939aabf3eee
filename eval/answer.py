"""Questions to answers.   python eval/answer.py name=first corpus=demo extractor=sentences"""

import asyncio
import json
import sys

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.extraction.recorded import read_extractions
from triax.indexing.store import load_index
from triax.pipelines.assembly import Parts
from triax.pipelines.batch import answer_all
from triax.runs.folder import RunFolderError, claim
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    corpus, chunks = wiring.open_corpus(cfg)
    config = wiring.plain(cfg) | {"corpus_fingerprint": corpus.fingerprint}
    config["adapters"] = wiring.adapters(wiring.plain(cfg.pipeline))
    try:
        folder = claim(wiring.run_folder(cfg, cfg.name), config, wiring.IGNORED)
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    triplets, index = wiring.triplets_folder(cfg, corpus), wiring.index_folder(cfg, corpus)
    encoder = instantiate(cfg.encoder)
    parts = Parts(
        wiring.open_completer(cfg, folder / "calls.jsonl"),
        encoder,
        chunks,
        lambda: load_index(wiring.require(index, "index"), encoder),
        lambda: read_extractions(wiring.require(triplets, "extract") / "triplets.jsonl"),
    )
    pipeline = instantiate(cfg.pipeline)(parts)
    with track("answer", len(corpus.questions)) as progress:
        answers = asyncio.run(
            answer_all(
                corpus.questions,
                pipeline,
                folder.path,
                batch_size=cfg.batch_size,
                progress=progress,
            )
        )
    failed = sum(row["error"] is not None for row in answers)
    print(json.dumps({"folder": str(folder.path), "questions": len(answers), "failed": failed}))


if __name__ == "__main__":
    main()
