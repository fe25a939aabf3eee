"""Answers of one run: what `answer` makes of a configuration, and what runs share.

Apart from the program, since a launcher that hands the program on (submitit) pickles what stands in
it, and a cached property holds a lock.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

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
from triax.records.files import write_json
from triax.records.trace_json import usage_to_json
from triax.records.triplets import Extraction
from triax.records.usage import Usage
from triax.records.verbs import Completer, Encoder
from triax.runs.folder import claim
from triax.tracking.progress import track


@dataclass
class Opened:
    """What runs over one corpus share; each thing is opened when a pipeline first asks for it.

    `folders` gets what was opened of derived data, by kind.
    """

    cfg: DictConfig
    corpus: Corpus
    chunks: list[Chunk]
    folders: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def encoder(self) -> Encoder:
        return instantiate(self.cfg.encoder)

    @cached_property
    def model(self) -> Completer:
        return instantiate(self.cfg.llm)

    def index(self) -> TripletIndex:
        self.folders["index"] = wiring.index_folder(self.cfg, self.corpus)
        return self._index

    @cached_property
    def _index(self) -> TripletIndex:
        return load_index(wiring.require(self.folders["index"], "index"), self.encoder)

    def extractions(self) -> Iterator[Extraction]:
        folder = wiring.require(wiring.triplets_folder(self.cfg, self.corpus), "extract")
        self.folders["triplets"] = folder
        return read_extractions(folder / "triplets.jsonl")


def answer(cfg: DictConfig, opened: Opened) -> tuple[Path, list[dict]]:
    """Answers the questions that are not answered yet; returns the run folder and all answers.

    Beside them it leaves `index_cost.json`: what a language model cost that read the corpus for
    this pipeline, null where that is not known.

    Raises:
        RunFolderError: the folder is in use, or holds a run with other settings.
    """
    corpus = opened.corpus
    config = wiring.plain(cfg) | {"corpus_fingerprint": corpus.fingerprint}
    config["adapters"] = wiring.adapters(wiring.plain(cfg.pipeline))
    folder = claim(wiring.run_folder(cfg, cfg.name), config, wiring.IGNORED)
    # The data that these settings name; what the pipeline opens of it is told at the end.
    triplets = wiring.triplets_folder(cfg, corpus)
    stages = {"triplets": triplets.name, "index": wiring.index_folder(cfg, corpus).name}
    shown = config | {"stages": stages}
    with tracked.tracked(cfg, "answer", str(cfg.name), folder.path, shown) as tracker:
        opened.folders = {}
        completer = wiring.open_completer(cfg, folder.path / "calls.jsonl", opened.model)
        parts = Parts(completer, opened.encoder, opened.chunks, opened.index, opened.extractions)
        pipeline = assemble(instantiate(cfg.pipeline), parts)
        costs: dict[str, Usage | None] = dict(parts.index_costs)
        if parts.reads_triplets:
            costs["triplets"] = wiring.triplets_cost(cfg, triplets)
        told = {name: one and usage_to_json(one) for name, one in costs.items()}
        write_json(folder.path / "index_cost.json", told)
        with track(f"answer, {cfg.name}", len(corpus.questions)) as progress:
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
            opened.folders,
            config["adapters"],
        )
    return folder.path, answers
