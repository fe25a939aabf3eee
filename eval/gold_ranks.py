"""Where retrievers rank the gold documents, among all documents of the corpus.

python eval/gold_ranks.py name=hotpotqa-train corpus=hotpotqa corpus.split=train

Two of these files, of a vanilla and of a graph retriever, become the labels of a router
(train/label_router.py). Questions of which the corpus lacks a gold document are left out.
"""

import json
import time
from pathlib import Path

import hydra
import numpy as np
import wiring
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.indexing.store import load_index
from triax.records.files import write_json, write_jsonl
from triax.retrieval.graph import table_scores
from triax.routing.labels import ranks_of
from triax.tracking.progress import track

TILE = 256


@hydra.main(version_base="1.3", config_path="../conf", config_name="gold_ranks")
def main(cfg: DictConfig) -> None:
    corpus, _ = wiring.open_corpus(cfg)
    encoder = instantiate(cfg.encoder)
    index = load_index(wiring.require(wiring.index_folder(cfg, corpus), "index"), encoder)
    documents = [document.id for document in corpus.documents]
    place_of = {one: place for place, one in enumerate(documents)}
    row_places = np.array([place_of[chunk.document_id] for chunk in index.tables.all_chunks()])
    questions = [
        one for one in corpus.questions if one.gold_document_ids and not one.unmatched_gold
    ]
    folder = Path(cfg.paths.runs).expanduser() / "ranks" / cfg.name
    told = {"questions": len(questions), "left_out": len(corpus.questions) - len(questions)}
    for system in cfg.systems:
        score = _scores(cfg, system, index, encoder)
        rows, started = [], time.monotonic()
        with track(f"{cfg.name}, {system}", len(questions)) as progress:
            for start in range(0, len(questions), TILE):
                part = questions[start : start + TILE]
                for question, chunk_scores in zip(part, score([[one.text] for one in part])):
                    # A document is as good as its best chunk.
                    best = np.full(len(documents), -np.inf, np.float64)
                    np.maximum.at(best, row_places, chunk_scores.astype(np.float64))
                    gold = [place_of[one] for one in question.gold_document_ids]
                    rows.append(
                        {
                            "id": question.id,
                            "question": question.text,
                            "kind": question.kind,
                            "ranks": list(ranks_of(best, gold).ranks),
                        }
                    )
                progress(start + len(part))
        write_jsonl(folder / f"{system}.jsonl", rows)
        seconds = time.monotonic() - started
        top = np.mean([np.mean([rank <= 5 for rank in row["ranks"]]) for row in rows])
        told[system] = {"seconds": round(seconds, 1), "recall@5": round(float(top), 4)}
    config = wiring.plain(cfg)
    write_json(folder / "config.json", config | {"corpus_fingerprint": corpus.fingerprint})
    print(json.dumps({"folder": str(folder), **told}))


def _scores(cfg: DictConfig, system: str, index, encoder):
    """Groups of queries to scores of every chunk."""
    if system == "graph":
        return instantiate(cfg.graph)(index=index, encoder=encoder).scores
    scorer = {"dense": "encoder", "bm25": "bm25"}.get(system)
    if scorer is None:
        raise ValueError(f"systems has {system!r}; expected some of ['bm25', 'dense', 'graph']")
    return table_scores(index, encoder, scorer)[1].scores


if __name__ == "__main__":
    main()
