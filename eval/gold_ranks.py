"""Where retrievers rank the gold documents, among all documents of the corpus.

python eval/gold_ranks.py name=hotpotqa-train corpus=hotpotqa corpus.split=train

Two of these files, of a vanilla and of a graph retriever, become the labels of a router
(train/label_router.py). Questions of which the corpus lacks a gold document are left out.
"""

import json
import time
from pathlib import Path

import hydra
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.indexing.store import load_index
from triax.records.files import write_json, write_jsonl
from triax.retrieval.graph import table_scores
from triax.routing.gold_ranks import rank_gold
from triax.tracking.progress import track


@hydra.main(version_base="1.3", config_path="../conf", config_name="gold_ranks")
def main(cfg: DictConfig) -> None:
    wiring.use_mesh(cfg)
    corpus, _ = wiring.open_corpus(cfg)
    encoder = instantiate(cfg.encoder)
    index = load_index(wiring.require(wiring.index_folder(cfg, corpus), "index"), encoder)
    chunk_documents = [chunk.document_id for chunk in index.tables.all_chunks()]
    questions = [
        one for one in corpus.questions if one.gold_document_ids and not one.unmatched_gold
    ]
    folder = Path(cfg.paths.runs).expanduser() / "ranks" / cfg.name
    told = {"questions": len(questions), "left_out": len(corpus.questions) - len(questions)}
    for system in cfg.systems:
        started = time.monotonic()
        score = _scores(cfg, system, index, encoder, folder / "calls.jsonl")
        with track(f"{cfg.name}, {system}", len(questions)) as progress:
            found = rank_gold(score, chunk_documents, questions, progress=progress)
        write_jsonl(
            folder / f"{system}.jsonl",
            (
                {"id": one.id, "question": one.text, "kind": one.kind, "ranks": list(gold.ranks)}
                for one, gold in zip(questions, found, strict=True)
            ),
        )
        top = [sum(rank <= 5 for rank in gold.ranks) / len(gold.ranks) for gold in found]
        seconds = round(time.monotonic() - started, 1)
        told[system] = {"seconds": seconds, "recall@5": round(sum(top) / max(1, len(top)), 4)}
    config = wiring.plain(cfg)
    write_json(folder / "config.json", config | {"corpus_fingerprint": corpus.fingerprint})
    print(json.dumps({"folder": str(folder), **told}))


def _scores(cfg: DictConfig, system: str, index, encoder, ledger_path: Path):
    """Groups of queries to scores of every chunk."""
    if system == "graph":
        made = instantiate(cfg.graph)
        return wiring.open_retriever(cfg, made, index, encoder, ledger_path).scores
    scorer = {"dense": "encoder", "bm25": "bm25"}.get(system)
    if scorer is None:
        raise ValueError(f"systems has {system!r}; expected some of ['bm25', 'dense', 'graph']")
    return table_scores(index, encoder, scorer)[1].scores


if __name__ == "__main__":
    main()
