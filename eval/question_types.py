"""How well question types are told, and how fast: rules, TF-IDF, the trained classifier, a model.

python eval/question_types.py
python eval/question_types.py 'systems=[regex,tfidf,trained,asked]' llm=http llm.model=...

Macro F1 is over the types that occur in a data set's gold ones, of the four types and of three
(bridge comparisons merged into comparisons, as in the paper). A language model is asked the first
`num_asked` questions of each data set only; its rows say how many.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.corpora.typed_questions import hold_out, load_typed
from triax.records.files import atomic_write, read_jsonl, write_json, write_jsonl
from triax.records.question_types import TypeClassifier, TypeDecision
from triax.records.questions import Question
from triax.reporting.tables import markdown_table
from triax.routing.fitted_type import TfidfTypes
from triax.runs.folder import RunFolder, RunFolderError, claim
from triax.scoring.type_scores import compare_types, merged, score_types, type_intervals
from triax.tracking.progress import track

COLUMNS = {
    "questions": "questions",
    "types/macro_f1": "macro F1",
    "types/macro_f1_merged": "macro F1 of three",
    "types/accuracy": "accuracy",
    "ms_alone": "ms alone",
    "ms_batch": "ms in 64",
}


@hydra.main(version_base="1.3", config_path="../conf", config_name="question_types")
def main(cfg: DictConfig) -> None:
    known = {*cfg.classifiers, "tfidf"}
    if unknown := [name for name in cfg.systems if name not in known]:
        sys.exit(f"error: systems has {unknown}; expected some of {sorted(known)}")
    wiring.use_mesh(cfg)
    try:
        asked = {name: load_typed(cfg.data, name, cfg.split, cfg.limit) for name in cfg.datasets}
        config = wiring.plain(cfg)
        used = {name: config["classifiers"].get(name) for name in cfg.systems}
        path = Path(cfg.paths.runs).expanduser() / "question_types" / cfg.name
        folder = claim(path, config | {"adapters": wiring.adapters(used)}, wiring.IGNORED)
    except (FileNotFoundError, RunFolderError, ValueError) as error:
        sys.exit(f"error: {error}")
    table, told = {}, {}
    for system in cfg.systems:
        classifier = _open(cfg, system, folder)
        for name, questions in asked.items():
            some = questions[: cfg.num_asked] if system == "asked" else questions
            with track(f"{system}, {name}", len(some)) as progress:
                decisions = asyncio.run(classifier.classify(some))
                progress(len(some))
            told[name, system] = decisions
            row = _scores([one.kind for one in decisions], [one.kind for one in some], cfg.seed)
            row |= _asked_speed(folder) if system == "asked" else _speed(classifier, some)
            table[f"{name}, {system}"] = row
    _tell(cfg, folder, asked, table, told)


def _open(cfg: DictConfig, system: str, folder: RunFolder) -> TypeClassifier:
    if system == "tfidf":
        return _fitted(cfg)
    made = instantiate(cfg.classifiers[system])
    if system == "asked":
        return made(completer=wiring.open_completer(cfg, folder / "calls.jsonl"))
    return made


def _fitted(cfg: DictConfig) -> TfidfTypes:
    parts = [hold_out(load_typed(cfg.data, one), cfg.held_out) for one in cfg.learnt_from]
    learnt, held = ([one for part in parts for one in part[side]] for side in (0, 1))
    fitted = TfidfTypes().fit(learnt, held, cfg.seed)
    print(f"tfidf: C={fitted.chosen:g}, of {len(learnt)} questions, chosen on {len(held)}")
    return fitted


def _scores(told: Sequence[str], gold: Sequence[str], seed: int) -> dict:
    """Figures and their intervals, with four types and with three, and what was taken for what."""
    row: dict = {"questions": len(gold)}
    for suffix, change in (("", str), ("_merged", merged)):
        scores = score_types([change(one) for one in told], [change(one) for one in gold])
        for figure, (low, high) in type_intervals(scores, seed=seed).items():
            key = f"types/{figure}{suffix}"
            row |= {key: getattr(scores, figure), f"{key}/low": low, f"{key}/high": high}
        row[f"confusion{suffix}"] = {
            gold_kind: dict(zip(scores.kinds, counts, strict=True))
            for gold_kind, counts in zip(scores.kinds, scores.confusion.tolist(), strict=True)
            if sum(counts)
        }
    return row


def _speed(classifier: TypeClassifier, questions: Sequence[Question]) -> dict[str, float]:
    """Milliseconds a question, alone and in batches of 64, after one call that compiles."""
    asyncio.run(classifier.classify(questions[:64]))
    for question in questions[:16]:
        asyncio.run(classifier.classify([question]))
    started = time.perf_counter()
    asyncio.run(classifier.classify(questions[:64]))
    together = time.perf_counter() - started
    started = time.perf_counter()
    for question in questions[:16]:
        asyncio.run(classifier.classify([question]))
    alone = time.perf_counter() - started
    counts = len(questions[:16]), len(questions[:64])
    return {"ms_alone": 1000 * alone / counts[0], "ms_batch": 1000 * together / counts[1]}


def _asked_speed(folder: RunFolder) -> dict[str, float]:
    """Milliseconds a call as the ledger has them, for a second time the cache would answer."""
    paid = [row["seconds"] for row in read_jsonl(folder / "calls.jsonl") if not row["is_cached"]]
    return {"ms_alone": 1000 * sum(paid) / len(paid)} if paid else {}


def _tell(
    cfg: DictConfig,
    folder: RunFolder,
    asked: Mapping[str, Sequence[Question]],
    table: Mapping[str, dict],
    told: Mapping[tuple[str, str], Sequence[TypeDecision]],
) -> None:
    shown = markdown_table(table, COLUMNS)
    print(f"\n{cfg.split}\n\n{shown}\n\ngold type: how many were told to be of which")
    for run, row in table.items():
        print(f"\n{run}")
        for kind, counts in row["confusion"].items():
            print(f"  {kind}: " + ", ".join(f"{one} {n}" for one, n in counts.items() if n))
    differences = _differences(cfg, asked, told)
    write_jsonl(
        folder / "per_question.jsonl",
        (
            {
                "dataset": name,
                "system": system,
                "question_id": question.id,
                "gold": question.kind,
                "told": one.kind,
                "probability": one.probability,
            }
            for (name, system), decisions in told.items()
            for question, one in zip(asked[name], decisions, strict=False)  # asked: the first ones
        ),
    )
    write_json(folder / "metrics.json", {"table": table, "differences": differences})
    with atomic_write(folder / "table.md") as stream:
        stream.write(shown + "\n")
    print(json.dumps({"folder": str(folder.path)}))


def _differences(
    cfg: DictConfig,
    asked: Mapping[str, Sequence[Question]],
    told: Mapping[tuple[str, str], Sequence[TypeDecision]],
) -> dict[str, dict]:
    """Macro F1 of `first` minus that of each other, on the questions that both were asked."""
    found: dict[str, dict] = {}
    for (name, system), decisions in told.items():
        if system == cfg.first or (name, cfg.first) not in told:
            continue
        both = [
            (one.kind, other.kind, question.kind)
            for one, other, question in zip(told[name, cfg.first], decisions, asked[name])
        ]
        one = compare_types(*map(list, zip(*both, strict=True)), seed=cfg.seed)
        key = f"{name}, {cfg.first} - {system}"
        found[key] = asdict(one)
        print(
            f"{key}: macro F1 {100 * one.difference:+.1f} [{100 * one.low:+.1f}, "
            f"{100 * one.high:+.1f}] of {one.num_questions} questions"
        )
    return found


if __name__ == "__main__":
    main()
