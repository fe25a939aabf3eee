r"""Every system over one corpus, on one substrate, as one table.

python eval/systems.py corpus=demo name=demo

Reads and indexes the corpus where that is not done yet, then answers and scores with each system
of `comparison=`: `small`, which ask no language model, or `asked`, all of them (with llm=...). All
stand on the same chunks, triplets, encoder and reader. Each is a run of its own,
runs/answer/<name>-<system>, as eval/answer.py makes it: what is answered is not answered again, and
one that fails leaves the rest.
Writes runs/systems/<name>/{table.md,table.jsonl} with paired differences to the baseline.
"""

import json
import sys
import traceback
from pathlib import Path

import hydra
import wiring
from answering import Opened, answer
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from score import score

from triax.records.files import atomic_write, read_jsonl, write_jsonl
from triax.reporting.systems import systems_table
from triax.scoring.significance import paired_bootstrap


@hydra.main(version_base="1.3", config_path="../conf", config_name="systems")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    if unknown := [one for one in cfg.only or () if one not in cfg.systems]:
        sys.exit(f"error: only has {unknown}; the comparison has {list(cfg.systems)}")
    corpus, chunks = wiring.open_corpus(cfg)
    triplets, _ = wiring.make_triplets(cfg, corpus, chunks)
    wiring.make_index(cfg, corpus, chunks, triplets)
    opened = Opened(cfg, corpus, chunks)
    given = list(HydraConfig.get().overrides.task)
    faults, metrics = {}, {}
    for system in cfg.only or cfg.systems:
        try:
            metrics[system] = _run(cfg, system, opened, given)
        except Exception as error:
            traceback.print_exc()
            faults[system] = f"{type(error).__name__}: {error}"
    folder = Path(cfg.paths.runs).expanduser() / "systems" / str(cfg.name)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"system": name, **found, **_difference(cfg, name, metrics)}
        for name, found in metrics.items()
    ]
    write_jsonl(folder / "table.jsonl", rows)
    about = (
        f"{corpus.name}, {len(corpus.questions)} questions, {len(corpus.documents)} documents, "
        f"{len(chunks)} chunks; extractor {_choice('extractor')}, encoder {_choice('encoder')}, "
        f"reader {_choice('reader')}, llm {_choice('llm')}"
    )
    text = systems_table(rows, about, str(cfg.baseline))
    text += "".join(f"\n- {name} failed: {fault}" for name, fault in faults.items())
    with atomic_write(folder / "table.md") as stream:
        stream.write(text + "\n")
    print(text)
    print(json.dumps({"folder": str(folder), "systems": len(rows), "failed": len(faults)}))
    if faults:
        sys.exit(1)


def _run(cfg: DictConfig, system: str, opened: Opened, given: list[str]) -> dict[str, float]:
    """Answers and scores with one system: the same settings, and those that make it what it is."""
    name = f"{cfg.name}-{system}"
    # Its own settings first, so that what the command line says goes before them.
    run = compose("run", [*cfg.systems[system], *_passed_on(given), f"name={name}"])
    answer(run, opened)
    return score(run, opened.corpus, opened.chunks)


def _passed_on(given: list[str]) -> list[str]:
    """What a run takes of what was given here."""
    own = ("name=", "comparison=", "only=", "baseline=", "systems")
    return [one for one in given if not one.lstrip("+~").startswith(own)]


def _difference(cfg: DictConfig, name: str, metrics: dict) -> dict[str, list[float]]:
    """The F1 of a system less that of the baseline, paired by question, with its interval."""
    if name == cfg.baseline or cfg.baseline not in metrics:
        return {}
    ours, theirs = _f1s(cfg, name), _f1s(cfg, cfg.baseline)
    ids = [one for one in theirs if one in ours]
    if not ids:
        return {}
    found = paired_bootstrap([ours[one] for one in ids], [theirs[one] for one in ids])
    return {"difference": [found.difference, found.low, found.high]}


def _f1s(cfg: DictConfig, system: str) -> dict[str, float]:
    path = wiring.run_folder(cfg, f"{cfg.name}-{system}") / "per_question.jsonl"
    return {row["question_id"]: row["f1"] for row in read_jsonl(path) if "f1" in row}


def _choice(group: str) -> str:
    return str(HydraConfig.get().runtime.choices[group])


if __name__ == "__main__":
    main()
