"""Answers to numbers.   python eval/score.py name=first corpus=demo"""

import json

import hydra
import tracked
import wiring
from omegaconf import DictConfig

from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.scoring.runs import score_run


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> float:
    corpus, chunks = wiring.open_corpus(cfg)
    folder = wiring.run_folder(cfg, cfg.name)
    answers = list(read_jsonl(folder / "answers.jsonl"))
    metrics, rows = score_run(
        answers,
        corpus.questions,
        {chunk.id: chunk.document_id for chunk in chunks},
        allow_unmatched=cfg.allow_unmatched,
        cutoffs=cfg.cutoffs,
    )
    write_jsonl(folder / "per_question.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    # What the answers were made with, whatever this call was given.
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"cutoffs": list(cfg.cutoffs), "allow_unmatched": cfg.allow_unmatched}
    with tracked.tracked(cfg, "score", str(cfg.name), folder, config) as tracker:
        table = tracked.question_table(rows, corpus.questions, answers)
        tracked.tell_scores(tracker, str(cfg.name), folder, metrics, table)
    print(json.dumps(metrics, indent=2, sort_keys=True))
    return metrics.get("answer/f1", 0.0)


if __name__ == "__main__":
    main()
