"""Where the answers of scored runs go wrong: retrieval or reasoning, and which step of T2RAG.

python eval/errors.py 'names=[first,second]' corpus=2wikimultihopqa

Writes errors.jsonl (one row a question) and errors.json beside each run. A right answer is one by
`measure`: lenient as in the paper, or em.
"""

import sys
from collections import defaultdict
from pathlib import Path

import hydra
import wiring
from omegaconf import DictConfig

from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.reporting.tables import markdown_table
from triax.scoring.errors import CLASSES, coverage, error_class, is_resolved, summarise

COVERED = {
    "errors/accuracy": "accuracy",
    "errors/abstained": "abstained",
    "errors/m1": "M1",
    "errors/m1_accuracy": "accuracy, M1 covered",
    "errors/m1_reasoning": "reasoning share, M1",
    "errors/m3": "M3",
    "errors/m3_accuracy": "accuracy, M3 covered",
    "errors/m3_reasoning": "reasoning share, M3",
    "errors/resolved_accuracy": "accuracy, resolved",
    "errors/unresolved_accuracy": "accuracy, unresolved",
}


@hydra.main(version_base="1.3", config_path="../conf", config_name="errors")
def main(cfg: DictConfig) -> None:
    corpus, chunks = wiring.open_corpus(cfg)
    questions = {one.id: one for one in corpus.questions}
    of_chunk = {chunk.id: chunk for chunk in chunks}
    table, classes = {}, {}
    for name in cfg.names:
        folder = wiring.run_folder(cfg, name)
        rows = _rows(folder, questions, of_chunk, cfg.measure)
        write_jsonl(folder / "errors.jsonl", rows)
        by_kind = defaultdict(list)
        for row in rows:
            by_kind[row["kind"]].append(row)
        found = {"": summarise(rows)} | {k: summarise(by_kind[k]) for k in sorted(by_kind) if k}
        write_json(folder / "errors.json", found)
        for kind, figures in found.items():
            label = f"{name}, {kind} ({len(by_kind[kind])})" if kind else name
            table[label] = figures
            if any(f"errors/{one}" in figures for one in CLASSES):
                classes[label] = figures
    print(
        f"{corpus.name}, {len(questions)} questions; right by {cfg.measure}. M1: the answer is in "
        "the context; M3: all entities on the way to it are. In per cent with 95% intervals.\n"
    )
    print(markdown_table(table, COVERED))
    if classes:
        print("\nOf the wrong answers, by the first step that failed:\n")
        print(markdown_table(classes, {f"errors/{one}": one.replace("_", " ") for one in CLASSES}))


def _rows(folder: Path, questions: dict, of_chunk: dict, measure: str) -> list[dict]:
    for file in ("traces.jsonl", "per_question.jsonl"):
        if not (folder / file).exists():
            sys.exit(f"error: {folder / file} is not there; answer and score the run first")
    traces = {row["question_id"]: row for row in read_jsonl(folder / "traces.jsonl")}
    rows = []
    for score in read_jsonl(folder / "per_question.jsonl"):
        question = questions.get(score["question_id"])
        if question is None:
            sys.exit(
                f"error: {folder} answers {score['question_id']!r}, which the corpus has not; give "
                "the corpus that it was made with"
            )
        if measure not in score:
            continue  # a question without a gold answer
        trace = traces[question.id]
        chunks = [of_chunk[one] for one in trace["chunk_ids"]]
        documents = [one.document_id for one in chunks]
        texts = [*(one.passage for one in chunks), *trace.get("context", ())]
        right = score[measure] == 1.0
        rows.append(
            {
                "question_id": question.id,
                "kind": question.kind,
                "right": right,
                "answered": trace["answer"] is not None,
                **coverage(question, texts, documents),
                "resolved": is_resolved(trace),
                "class": None if right else error_class(question, trace, documents),
            }
        )
    return rows


if __name__ == "__main__":
    main()
