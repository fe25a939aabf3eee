"""Where the shards of a configuration are, and what works on them."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import wiring
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.extraction.corpus_shards import planned_chunks
from triax.extraction.recorded import read_extractions
from triax.extraction.verbalize import propositions
from triax.indexing.vector_shards import VectorShards
from triax.llm.ledger import Ledger
from triax.records.verbs import Extractor
from triax.runs.artifacts import artifact_folder
from triax.runs.shards import ShardPlan, open_plan


def shards_folder(cfg: DictConfig) -> Path:
    """The folder of the plan; found without reading the corpus."""
    inputs = {"corpus": wiring.plain(cfg.corpus), **wiring.reading_inputs(cfg)}
    choices = HydraConfig.get().runtime.choices
    return artifact_folder(
        cfg.paths.artifacts, "shards", str(choices["corpus"]), str(choices["extractor"]), inputs
    )


def open_shards(cfg: DictConfig) -> tuple[ShardPlan, Corpus, Path]:
    """The plan, the corpus without its texts, and the folder that the triplets go to."""
    plan = open_plan(shards_folder(cfg))
    corpus = Corpus(plan.inputs["corpus_name"], (), (), plan.inputs["corpus_fingerprint"])
    return plan, corpus, wiring.triplets_folder(cfg, corpus)


def own_shards(cfg: DictConfig, count: int) -> range:
    """The shards of this worker, of `count`.

    Raises:
        ValueError: not 0 <= worker < num_workers.
    """
    if not 0 <= cfg.worker < cfg.num_workers:
        raise ValueError(
            f"worker={cfg.worker} of num_workers={cfg.num_workers}; expected at least 0 and fewer "
            "than num_workers"
        )
    return range(cfg.worker, count, cfg.num_workers)


@contextmanager
def extractor_of(
    cfg: DictConfig, ledger_path: Path | None = None
) -> Iterator[tuple[Extractor, Ledger | None]]:
    """The extractor, and the ledger of its calls if it asks a model."""
    # The call cache is an sqlite file, which the nodes of a cluster cannot share.
    with tempfile.TemporaryDirectory(prefix="triax-calls-") as cache:
        cfg.paths.calls = cache
        extractor = wiring.open_extractor(cfg, ledger_path)
        completer = getattr(extractor, "completer", None)
        yield extractor, getattr(completer, "ledger", None)


def vector_shards(cfg: DictConfig, plan: ShardPlan, corpus: Corpus, triplets: Path) -> VectorShards:
    """The shards of vectors of the index, once the triplets are merged."""
    found = propositions(read_extractions(triplets / "triplets.jsonl"))
    folder = wiring.index_folder(cfg, corpus)
    return VectorShards.of(planned_chunks(plan), found, folder, cfg.embeds_chunks)
