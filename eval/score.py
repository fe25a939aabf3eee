"""Answers to numbers.   python eval/score.py name=first corpus=demo"""

import json
from collections.abc import Sequence

import hydra
import tracked
import wiring
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.records.documents import Chunk
from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.records.trace_json import usage_from_json
from triax.records.usage import Usage
from triax.scoring.runs import score_run


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> float:
    metrics = score(cfg, *wiring.open_corpus(cfg))
    print(json.dumps(metrics, indent=2, sort_keys=True))
    return metrics.get("answer/f1", 0.0)


def score(cfg: DictConfig, corpus: Corpus, chunks: Sequence[Chunk]) -> dict[str, float]:
    """Scores an answered run, and leaves `metrics.json` and `per_question.jsonl` beside it."""
    folder = wiring.run_folder(cfg, cfg.name)
    answers = list(read_jsonl(folder / "answers.jsonl"))
    costs = folder / "index_cost.json"
    metrics, rows = score_run(
        answers,
        corpus.questions,
        {chunk.id: chunk.document_id for chunk in chunks},
        allow_unmatched=cfg.allow_unmatched,
        cutoffs=cfg.cutoffs,
        index_cost=_sum(json.loads(costs.read_text("utf-8"))) if costs.exists() else None,
    )
    write_jsonl(folder / "per_question.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    # What the answers were made with, whatever this call was given.
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"cutoffs": list(cfg.cutoffs), "allow_unmatched": cfg.allow_unmatched}
    with tracked.tracked(cfg, "score", str(cfg.name), folder, config) as tracker:
        table = tracked.question_table(rows, corpus.questions, answers)
        tracked.tell_scores(tracker, str(cfg.name), folder, metrics, table)
    return metrics


def _sum(costs: dict[str, dict | None]) -> Usage | None:
    """All of them together, unless one is not known (R29)."""
    if None in costs.values():
        return None
    return sum((usage_from_json(one) for one in costs.values() if one), Usage())


if __name__ == "__main__":
    main()
