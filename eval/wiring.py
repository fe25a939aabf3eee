"""From a configuration to objects, and from objects to the folders that they are kept in."""

import asyncio
import sys
from functools import partial
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from triax.corpora.chunks import chunk_documents
from triax.corpora.corpus import Corpus
from triax.extraction.recorded import read_extractions
from triax.extraction.run import extract_corpus
from triax.extraction.verbalize import propositions
from triax.indexing.updates import build_index
from triax.llm.cache import CachedCompleter
from triax.llm.ledger import Ledger, LedgerCompleter, read_usage
from triax.models.mesh import MeshError
from triax.records.documents import Chunk
from triax.records.usage import Usage
from triax.records.verbs import Completer
from triax.runs.artifacts import artifact_folder
from triax.tracking.progress import track

# What may differ between two calls of one run without changing any of its results.
IGNORED = (
    "allow_unmatched",
    "batch_size",
    "cutoffs",
    "keywords",  # where it is used, it is in the part
    "llm.batch_size",
    "llm.folder",
    "llm.job",
    "llm.max_concurrent",
    "llm.poll_s",
    "llm.timeout_s",
    "llm.wait_s",
    "max_failed",
    "mesh",
    "paths",
    "reporter",  # where it is used, it is in the part
    "search",  # what decides a trial is in its settings
    "summarizer",  # where it is used, it is in the part
    "token_counter",  # where it is used, it is in the part
    "tracker",
    "triplet_filter",  # where it is used, it is in the retriever
)


def plain(cfg: DictConfig) -> dict:
    """The configuration as JSON, with every reference resolved and nothing missing."""
    return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)


def adapters(value) -> dict[str, str]:
    """The fingerprint of every adapter that a configuration names, wherever it does."""
    if isinstance(value, list):
        return {name: one for part in value for name, one in adapters(part).items()}
    if not isinstance(value, dict):
        return {}
    found = {name: one for part in value.values() for name, one in adapters(part).items()}
    if isinstance(value.get("adapter"), str):
        from triax.models.adapters import fingerprint  # loads jax, which --cfg job does without

        found[value["adapter"]] = fingerprint(value["adapter"])
    return found


def use_mesh(cfg: DictConfig) -> None:
    """Chooses the devices of all models; ends the program where they do not fit."""
    try:
        instantiate(cfg.mesh)
    except InstantiationException as error:
        if isinstance(error.__cause__, MeshError):
            sys.exit(f"error: {error.__cause__}")
        raise


def open_corpus(cfg: DictConfig) -> tuple[Corpus, list[Chunk]]:
    """The corpus and its chunks."""
    corpus = instantiate(cfg.corpus)
    return corpus, chunk_documents(
        corpus.documents, size=cfg.chunks.size, overlap=cfg.chunks.overlap
    )


def open_completer(
    cfg: DictConfig, ledger_path: Path | None = None, model: Completer | None = None
) -> Completer:
    """The language model behind the call cache, with every call in the ledger.

    A model that is loaded already can be given, so that it is not loaded again.
    """
    cached = CachedCompleter(
        model or instantiate(cfg.llm),
        Path(cfg.paths.calls).expanduser() / "calls.db",
        shared=cfg.paths.shared_calls,
    )
    return LedgerCompleter(cached, Ledger(ledger_path))


def open_extractor(
    cfg: DictConfig, ledger_path: Path | None = None, model: Completer | None = None
):
    """The extractor; one that asks a model gets the completer."""
    extractor = instantiate(cfg.extractor)
    if isinstance(extractor, partial):
        return extractor(completer=open_completer(cfg, ledger_path, model))
    return extractor


def open_retriever(cfg: DictConfig, retriever: partial, index, encoder, ledger_path: Path):
    """A retriever over an index; a triplet filter that asks a model gets the completer."""
    found = retriever.keywords.get("triplet_filter")
    if isinstance(found, partial):
        asking = found(completer=open_completer(cfg, ledger_path))
        return retriever(index=index, encoder=encoder, triplet_filter=asking)
    return retriever(index=index, encoder=encoder)


def triplets_folder(cfg: DictConfig, corpus: Corpus) -> Path:
    """Where the triplets of this corpus, these chunks and this extractor are."""
    inputs = {"corpus": corpus.fingerprint, **reading_inputs(cfg)}
    return artifact_folder(
        cfg.paths.artifacts, "triplets", corpus.name, _choice("extractor"), inputs
    )


def triplets_cost(cfg: DictConfig, folder: Path) -> Usage | None:
    """What the language model cost that read the corpus; None for triplets from elsewhere."""
    if cfg.extractor["_target_"].startswith("triax.extraction.recorded."):
        return None
    return read_usage(folder / "calls.jsonl")


def reading_inputs(cfg: DictConfig) -> dict:
    """All but the corpus that decides the triplets."""
    inputs = {"chunks": plain(cfg.chunks), "extractor": plain(cfg.extractor)}
    if cfg.extractor.get("_partial_"):
        # Where its servers are is not part of what a model is.
        places = ("folder", "job", "poll_s", "wait_s")
        inputs["llm"] = {key: one for key, one in plain(cfg.llm).items() if key not in places}
    if found := adapters(inputs):
        # A name says nothing of what was trained under it.
        inputs["adapters"] = found
    return inputs


def index_folder(cfg: DictConfig, corpus: Corpus) -> Path:
    """Where the index of those triplets and this encoder is."""
    inputs = {
        "triplets": triplets_folder(cfg, corpus).name,
        "encoder": plain(cfg.encoder),
        "embeds_chunks": cfg.embeds_chunks,
    }
    variant = f"{_choice('extractor')}-{_choice('encoder')}"
    return artifact_folder(cfg.paths.artifacts, "index", corpus.name, variant, inputs)


def require(folder: Path, program: str) -> Path:
    """The folder, if the program before has finished it.

    Raises:
        FileNotFoundError: it has not; the message names the program.
    """
    if not (folder / "manifest.json").exists():
        raise FileNotFoundError(
            f"{folder} has no manifest.json; run `python eval/{program}.py` with the same corpus, "
            "chunks, llm, extractor and encoder first"
        )
    return folder


def run_folder(cfg: DictConfig, name: str) -> Path:
    """The folder of an answered run."""
    return Path(cfg.paths.runs).expanduser() / "answer" / name


def _choice(group: str) -> str:
    return str(HydraConfig.get().runtime.choices[group])


def make_triplets(cfg: DictConfig, corpus: Corpus, chunks: list[Chunk]) -> tuple[Path, dict]:
    """Extracts what is not extracted yet; returns the folder and the report.

    Raises:
        ExtractionError: too many chunks failed or gave nothing; what was found is kept.
    """
    folder = triplets_folder(cfg, corpus)
    folder.mkdir(parents=True, exist_ok=True)
    extractor = open_extractor(cfg, folder / "calls.jsonl")
    with track("extract", len(chunks)) as progress:
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
    return folder, report.to_json()


def make_index(
    cfg: DictConfig,
    corpus: Corpus,
    chunks: list[Chunk],
    triplets: Path,
    is_embedded: bool = False,
):
    """Embeds what is not embedded yet and opens the index; with `is_embedded` all must be."""
    found = propositions(read_extractions(triplets / "triplets.jsonl"))
    with track("embed", len(found) + len(chunks) * cfg.embeds_chunks) as progress:
        return build_index(
            chunks,
            found,
            instantiate(cfg.encoder),
            index_folder(cfg, corpus),
            extractor=triplets.name,
            embeds_chunks=cfg.embeds_chunks,
            is_embedded=is_embedded,
            progress=progress,
        )
