"""What compressors leave of a rich context: tokens, gold answers, gold documents.

python eval/compression.py corpus=musique_openie
python eval/compression.py corpus=demo extractor=sentences retriever=graph max_tokens=2000

No reader is asked, and a language model only where the retriever asks one. Extracts and indexes
what is not there yet. Whether an answer stands in a context is asked for answers that can: not
for yes and no.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.pipelines.assembly import Parts, assemble
from triax.records.evidence import Evidence
from triax.records.files import atomic_write, write_json, write_jsonl
from triax.records.questions import Question
from triax.reporting.tables import markdown_table
from triax.retrieval.shown import ShownTokens, pieces
from triax.runs.folder import RunFolderError, claim
from triax.scoring.answers import normalize_answer
from triax.scoring.extraction import holds_answer
from triax.scoring.significance import mean_interval, paired_bootstrap

WHOLE = "whole"
COLUMNS = {
    "tokens": "tokens",
    "max_tokens": "most",
    "chunks": "chunks",
    "facts": "facts",
    "coverage/answer": "answer in it",
    "coverage/answer_kept": "kept of the whole's",
    "coverage/gold": "all gold documents",
    "coverage/gold_kept": "kept of the whole's",
    "seconds": "seconds",
}


@hydra.main(version_base="1.3", config_path="../conf", config_name="compression")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    if cfg.first not in cfg.compressors:
        known = sorted(cfg.compressors)
        sys.exit(f"error: first={cfg.first} is no compressor here; expected one of {known}")
    corpus, chunks = wiring.open_corpus(cfg)
    config = wiring.plain(cfg) | {"corpus_fingerprint": corpus.fingerprint}
    path = Path(cfg.paths.runs).expanduser() / "compression" / cfg.name
    try:
        folder = claim(path, config, wiring.IGNORED)
    except RunFolderError as error:
        sys.exit(f"error: {error}")
    triplets, _ = wiring.make_triplets(cfg, corpus, chunks)
    index = wiring.make_index(cfg, corpus, chunks, triplets)
    completer = wiring.open_completer(cfg, folder / "calls.jsonl")
    parts = Parts(completer, instantiate(cfg.encoder), chunks, lambda: index, tuple)
    shown = ShownTokens(instantiate(cfg.token_counter), cfg.kinds)
    contexts, seconds = _contexts(cfg, corpus.questions, parts)
    rows, table = {}, {}
    for name, evidences in contexts.items():
        rows[name] = _measure(corpus.questions, evidences, shown)
        table[name] = _summary(rows[name], rows[WHOLE]) | {"seconds": seconds[name]}
    print(f"{corpus.name}: {len(corpus.questions)} questions, {cfg.num_chunks} chunks each\n")
    print(markdown_table(table, COLUMNS))
    differences = _compare(rows, cfg.first)
    write_jsonl(
        folder / "per_question.jsonl",
        ({"compressor": name, **row} for name, found in rows.items() for row in found),
    )
    write_json(folder / "metrics.json", {"table": table, "differences": differences})
    with atomic_write(folder / "table.md") as stream:
        stream.write(markdown_table(table, COLUMNS) + "\n")
    print(json.dumps({"folder": str(folder.path), "questions": len(corpus.questions)}))


def _contexts(
    cfg: DictConfig, questions: Sequence[Question], parts: Parts
) -> tuple[dict[str, list[Evidence]], dict[str, float]]:
    """The whole contexts and the compressed ones, and how long each took."""
    groups = [[one.searched] for one in questions]
    retriever = assemble(instantiate(cfg.retriever), parts)
    compressors = {name: assemble(instantiate(one), parts) for name, one in cfg.compressors.items()}
    started = time.monotonic()
    contexts = {WHOLE: retriever.search(groups, cfg.num_chunks)}
    seconds = {WHOLE: time.monotonic() - started}
    for name, compressor in compressors.items():
        started = time.monotonic()
        contexts[name] = compressor.compress(groups, contexts[WHOLE])
        seconds[name] = time.monotonic() - started
    return contexts, seconds


def _measure(
    questions: Sequence[Question], evidences: Sequence[Evidence], shown: ShownTokens
) -> list[dict]:
    """One row a question; None for what the corpus does not say of it."""
    rows = []
    for one, evidence, tokens in zip(questions, evidences, shown.totals(evidences), strict=True):
        texts = [text for piece, text in pieces(evidence).items() if piece[0] in shown.kinds]
        answers = [text for text in one.answers if normalize_answer(text) not in ("yes", "no")]
        gold = {*one.gold_document_ids, *one.unmatched_gold}
        found = {scored.chunk.document_id for scored in evidence.chunks}
        rows.append(
            {
                "id": one.id,
                "tokens": tokens,
                "chunks": len(evidence.chunks),
                "facts": len(evidence.hits),
                "answer": holds_answer([(text, "", "") for text in texts], answers)
                if answers
                else None,
                "gold": gold <= found if gold else None,
            }
        )
    return rows


def _summary(rows: Sequence[Mapping], whole: Sequence[Mapping]) -> dict[str, float]:
    count = max(1, len(rows))
    table = {
        "tokens": sum(row["tokens"] for row in rows) / count,
        "max_tokens": max((row["tokens"] for row in rows), default=0),
        "chunks": sum(row["chunks"] for row in rows) / count,
        "facts": sum(row["facts"] for row in rows) / count,
    }
    for field in ("answer", "gold"):
        key = f"coverage/{field}"
        judged = [float(row[field]) for row in rows if row[field] is not None]
        before = [row[field] for row, old in zip(rows, whole, strict=True) if old[field]]
        if judged:
            interval = mean_interval(judged)
            table |= {key: interval.mean, f"{key}/low": interval.low, f"{key}/high": interval.high}
            table[f"count/{field}"] = len(judged)
        if before:
            table[f"{key}_kept"] = sum(before) / len(before)
    return table


def _compare(rows: Mapping[str, Sequence[Mapping]], first: str) -> dict[str, dict[str, float]]:
    """Paired differences of one compressor to each of the others, in points."""
    found = {}
    for other in rows:
        for field in ("answer", "gold"):
            pairs = [
                (float(one[field]), float(two[field]))
                for one, two in zip(rows[first], rows[other], strict=True)
                if one[field] is not None
            ]
            if other in (WHOLE, first) or not pairs:
                continue
            one = paired_bootstrap(*zip(*pairs))
            found[f"{field}/{first}-{other}"] = {
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p_value": one.p_value,
                "questions": one.num_questions,
            }
            print(
                f"{field} {first} - {other}: {100 * one.difference:+.1f} "
                f"[{100 * one.low:+.1f}, {100 * one.high:+.1f}], n={one.num_questions}"
            )
    return found


if __name__ == "__main__":
    main()
