"""Where the answers of runs go wrong: retrieval or reasoning, and which step of T2RAG.

python eval/errors.py 'names=[first,second]' corpus=2wikimultihopqa

Writes errors.jsonl (one row a question) and errors.json (shares with their intervals, of all
questions and of their kinds) beside each run, and prints their tables. A right answer is one by
`measure`. Works for any method; the step is told for those that keep a state.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import hydra
import wiring
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.records.documents import Chunk
from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.reporting.error_tables import error_tables
from triax.scoring.answers import best_exact_match
from triax.scoring.errors import decompose_errors, error_rows
from triax.scoring.lenient import best_lenient

MEASURES = {"lenient": best_lenient, "em": best_exact_match}


@hydra.main(version_base="1.3", config_path="../conf", config_name="errors")
def main(cfg: DictConfig) -> None:
    if cfg.measure not in MEASURES:
        sys.exit(f"error: measure={cfg.measure}; expected one of {list(MEASURES)}")
    folders = {name: wiring.run_folder(cfg, name) for name in cfg.names}
    corpus, chunks = wiring.open_corpus(cfg)
    traces = {name: _traces(cfg, folder, corpus) for name, folder in folders.items()}
    found = {}
    for name, folder in folders.items():
        rows = _rows(cfg, traces[name], corpus, chunks)
        found[name] = decompose_errors(rows)
        write_jsonl(folder / "errors.jsonl", rows)
        write_json(folder / "errors.json", {"measure": cfg.measure, **found[name]})
    print(error_tables(found, f"{corpus.name}; an answer is right by {cfg.measure}"))


def _traces(cfg: DictConfig, folder: Path, corpus: Corpus) -> dict[str, dict]:
    """All traces of a finished run over this corpus; ends the program where it is none."""
    if not (folder / "answers.jsonl").exists():
        sys.exit(f"error: {folder} has no answers.jsonl; run `python eval/answer.py` for it first")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    given = {"corpus_fingerprint": corpus.fingerprint, "chunks": wiring.plain(cfg.chunks)}
    # The last row of a question is the one that counts: a failed one was asked again.
    traces = {row["question_id"]: row for row in read_jsonl(folder / "traces.jsonl")}
    other = [key for key, value in given.items() if config.get(key) != value]
    if traces.keys() != {question.id for question in corpus.questions}:
        other.append("questions")
    if other:
        sys.exit(
            f"error: {folder} was made with another {' and another '.join(other)}; give the corpus "
            "that it was made with, and corpus.split, corpus.limit and chunks as there"
        )
    return traces


def _rows(
    cfg: DictConfig, traces: Mapping[str, dict], corpus: Corpus, chunks: Sequence[Chunk]
) -> list[dict]:
    return error_rows(
        traces,
        corpus.questions,
        {chunk.id: chunk for chunk in chunks},
        {document.id: document for document in corpus.documents},
        MEASURES[cfg.measure],
    )


if __name__ == "__main__":
    main()
