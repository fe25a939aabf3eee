r"""Recall of retrievers for whole questions, gold sub-questions and gold query triplets.

No language model is asked. Extracts and indexes what is not there yet. Gold query triplets are
searched together, as a round of T2RAG does: as they stand, and with the values of earlier ones
filled in where gold triplets tell them (compared with the whole question on those questions only).

python eval/retrieval.py corpus=musique_openie

What a triplet filter does to the graph (triplet_filter=asked is the one part that does ask a
language model; its calls are in runs/retrieval/<name>/calls.jsonl):

python eval/retrieval.py triplet_filter=trained systems=[graph,graph_unfiltered] \
    baseline=graph_unfiltered
"""

import json
from collections.abc import Sequence
from pathlib import Path

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.reasoning.gold_resolve import gold_queries
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.verbs import Retriever
from triax.reporting.tables import markdown_table
from triax.retrieval.gold_steps import filled_steps, search_steps
from triax.scoring.retrieval import rank_documents, score_retrieval
from triax.scoring.significance import mean_interval, paired_bootstrap


@hydra.main(version_base="1.3", config_path="../conf", config_name="retrieval")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    corpus, chunks = wiring.open_corpus(cfg)
    document_of = {chunk.id: chunk.document_id for chunk in chunks}
    triplets, _ = wiring.make_triplets(cfg, corpus, chunks)
    index = wiring.make_index(cfg, corpus, chunks, triplets)
    has_steps = all(
        one.steps and all(step.document_id for step in one.steps) for one in corpus.questions
    )
    steps = [
        Question(f"{one.id}/{i}", step.question, gold_document_ids=(step.document_id,))
        for one in corpus.questions
        for i, step in enumerate(one.steps)
        if has_steps
    ]
    table, recalls = {}, {}
    for name in cfg.systems:
        retriever = _retriever(cfg, name, chunks, index)
        found = _found(corpus.questions, steps, retriever, name, cfg.num_chunks)
        for label, (asked, evidences) in found.items():
            rankings = {
                question.id: rank_documents([one.chunk.id for one in evidence.chunks], document_of)
                for question, evidence in zip(asked, evidences, strict=True)
            }
            table[label], rows = score_retrieval(
                rankings, asked, cfg.cutoffs, allow_unmatched=cfg.allow_unmatched
            )
            table[label]["questions"] = len(rows)
            recalls[label] = [row[f"recall@{cfg.compared}"] for row in rows]
            for cutoff in cfg.cutoffs:
                key = f"retrieval/recall@{cutoff}"
                interval = mean_interval([row[f"recall@{cutoff}"] for row in rows])
                table[label] |= {f"{key}/low": interval.low, f"{key}/high": interval.high}
    print(f"{corpus.name}: {len(corpus.questions)} questions, {len(corpus.documents)} documents\n")
    columns = {f"retrieval/recall@{cutoff}": f"R@{cutoff}" for cutoff in cfg.cutoffs}
    print(markdown_table(table, columns | {"questions": "n"}))
    _compare(recalls, cfg.baseline, cfg.compared)
    rounded = {name: {k: round(v, 4) for k, v in row.items()} for name, row in table.items()}
    print(json.dumps(rounded))


def _found(
    questions: Sequence[Question],
    steps: Sequence[Question],
    retriever: Retriever,
    name: str,
    num_chunks: int,
) -> dict[str, tuple[Sequence[Question], list[Evidence]]]:
    """By kind of query: who was asked, and what was found."""
    found = {name: (questions, retriever.search([[one.text] for one in questions], num_chunks))}
    if steps:
        found[f"{name}, gold steps"] = (questions, search_steps(questions, retriever, num_chunks))
        alone = [[text] for one in questions for text in filled_steps(one)]
        found[f"{name}, each step alone"] = (steps, retriever.search(alone, num_chunks))
    asked = [one for one in questions if one.gold_query_triplets]
    filled = [one for one in asked if gold_queries(one)[1]]
    for label, form, some in (("query", 0, asked), ("filled query", 1, filled)):
        if some:
            groups = [gold_queries(one)[form] for one in some]
            found[f"{name}, gold {label} triplets"] = (some, retriever.search(groups, num_chunks))
    if len(filled) not in (0, len(questions)):
        of = {one.id: evidence for one, evidence in zip(questions, found[name][1], strict=True)}
        found[f"{name}, those questions"] = (filled, [of[one.id] for one in filled])
    return found


def _compare(recalls: dict[str, list[float]], baseline: str, cutoff: int) -> None:
    """Paired differences to the baseline, each under the same kind of query."""
    for label, values in recalls.items():
        base = baseline + label.removeprefix(label.partition(",")[0])
        if label == base or base not in recalls:
            continue
        found = paired_bootstrap(values, recalls[base])
        print(
            f"R@{cutoff} {label} - {base}: {100 * found.difference:+.1f} "
            f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        )


def _retriever(cfg: DictConfig, name: str, chunks, index) -> Retriever:
    from triax.retrieval.adaptive import AdaptiveRetriever
    from triax.retrieval.bm25 import BM25Retriever
    from triax.retrieval.dense import DenseRetriever
    from triax.retrieval.lexical import LexicalTripletRetriever

    ledger = Path(cfg.paths.runs).expanduser() / "retrieval" / cfg.name / "calls.jsonl"
    if name == "bm25":
        return BM25Retriever(chunks)
    if name in ("graph_bm25", "graph_tfidf"):
        words = {"scorer": name.removeprefix("graph_"), "synonym_threshold": None}
        return wiring.open_retriever(cfg, instantiate(cfg.graph, **words), index, None, ledger)
    encoder = instantiate(cfg.encoder)
    if name == "graph_unfiltered":
        return instantiate(cfg.graph)(index=index, encoder=encoder, triplet_filter=None)
    if name in ("graph", "hipporag1"):
        return wiring.open_retriever(cfg, instantiate(cfg[name]), index, encoder, ledger)
    if name == "dense":
        return DenseRetriever(index, encoder)
    if name == "triplets":
        return AdaptiveRetriever(index, encoder, instantiate(cfg.index))
    scorers = {"triplets_bm25": "bm25", "triplets_tfidf": "tfidf"}
    if name not in scorers:
        graphs = ["graph", "graph_unfiltered", "graph_bm25", "graph_tfidf", "hipporag1"]
        known = ["bm25", "dense", "triplets", *scorers, *graphs]
        raise ValueError(f"systems has {name!r}; expected some of {known}")
    return LexicalTripletRetriever(index.tables, scorer=scorers[name])


if __name__ == "__main__":
    main()
