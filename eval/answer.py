"""Questions to answers.   python eval/answer.py name=first corpus=demo extractor=sentences"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import hydra
import tracked
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.extraction.recorded import read_extractions
from triax.indexing.store import TripletIndex, load_index
from triax.pipelines.assembly import Parts, assemble
from triax.pipelines.batch import answer_all
from triax.records.documents import Chunk
from triax.records.triplets import Extraction
from triax.runs.folder import RunFolderError, claim
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    corpus, chunks = wiring.open_corpus(cfg)
    config = wiring.plain(cfg) | {"corpus_fingerprint": corpus.fingerprint}
    config["adapters"] = wiring.adapters(wiring.plain(cfg.pipeline))
    try:
        folder = claim(wiring.run_folder(cfg, cfg.name), config, wiring.IGNORED)
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    # The data that these settings name; what the pipeline opens of it is told at the end.
    stages = {
        "triplets": wiring.triplets_folder(cfg, corpus).name,
        "index": wiring.index_folder(cfg, corpus).name,
    }
    shown = config | {"stages": stages}
    with tracked.tracked(cfg, "answer", str(cfg.name), folder.path, shown) as tracker:
        opened: dict[str, Path] = {}
        parts = _parts(cfg, corpus, chunks, folder.path, opened)
        pipeline = assemble(instantiate(cfg.pipeline), parts)
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
        tracked.tell_answers(
            tracker,
            str(cfg.name),
            folder.path,
            answers,
            corpus,
            opened,
            config["adapters"],
        )
    failed = sum(row["error"] is not None for row in answers)
    print(json.dumps({"folder": str(folder.path), "questions": len(answers), "failed": failed}))


def _parts(
    cfg: DictConfig, corpus: Corpus, chunks: list[Chunk], folder: Path, opened: dict[str, Path]
) -> Parts:
    """What a pipeline may take; `opened` gets the folders that it did take, by their kind."""
    encoder = instantiate(cfg.encoder)

    def open_index() -> TripletIndex:
        opened["index"] = wiring.require(wiring.index_folder(cfg, corpus), "index")
        return load_index(opened["index"], encoder)

    def open_extractions() -> Iterator[Extraction]:
        opened["triplets"] = wiring.require(wiring.triplets_folder(cfg, corpus), "extract")
        return read_extractions(opened["triplets"] / "triplets.jsonl")

    completer = wiring.open_completer(cfg, folder / "calls.jsonl")
    return Parts(completer, encoder, chunks, open_index, open_extractions)


if __name__ == "__main__":
    main()
