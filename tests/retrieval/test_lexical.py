import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest

from triax.indexing.tables import TripletTables
from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet
from triax.records.verbs import Retriever
from triax.retrieval.bm25 import BM25Retriever
from triax.retrieval.lexical import LexicalTripletRetriever

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
MUSIQUE = Path(os.environ.get("TRIAX_DATA", SHARED)) / "musique"


@pytest.mark.parametrize("scorer", ["bm25", "tfidf"])
def test_walks_over_propositions(propositions, scorer, chunks, ids):
    retriever = LexicalTripletRetriever(TripletTables.of(chunks, propositions), scorer)
    assert isinstance(retriever, Retriever)
    babbage, kyiv, none = retriever.search([["Charles Babbage was born in"], ["київ"], []], 3)
    assert [hit.proposition.triplet.subject for hit in babbage.hits][:1] == ["Charles Babbage"]
    assert babbage.hits[0].chunk_ids == ("ada", "babbage")
    assert ids(babbage) == ["ada", "babbage", "curie"]
    assert ids(kyiv) == ["kyiv"] and none.hits == ()


@pytest.mark.parametrize("scorer", ["bm25", "tfidf"])
def test_r09_no_proposition_and_more_chunks_than_there_are(propositions, scorer, chunks, ids):
    empty = LexicalTripletRetriever(TripletTables.of([], []), scorer)
    assert empty.search([["x"]], 3)[0].chunks == ()
    retriever = LexicalTripletRetriever(TripletTables.of(chunks, propositions), scorer)
    assert len(ids(retriever.search([["was in London Київ"]], 99)[0])) == 4
    assert retriever.search([["zebra"]], 3)[0].chunks == ()


def musique():
    with gzip.open(MUSIQUE / "openie_gpt35.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    chunks = [Chunk(row["id"], row["id"], row["text"], row["title"]) for row in rows]
    propositions = [
        Proposition(
            hashlib.sha256("\t".join(fields).encode()).hexdigest(),
            Triplet(*fields),
            " ".join(fields),
            (row["id"],),
        )
        for row in rows
        for fields in row["triples"]
        if len(fields) == 3 and all(isinstance(field, str) and field for field in fields)
    ]
    id_of = {(row["title"], row["text"]): row["id"] for row in rows}
    questions = []
    for part in ("train", "dev"):
        with gzip.open(MUSIQUE / f"{part}.jsonl.gz", "rt", encoding="utf-8") as stream:
            found = [json.loads(line) for line in stream]
        for question in found:
            if question["source"] == "hipporag_musique100":
                gold = [p for p in question["paragraphs"] if p["is_supporting"]]
                gold_ids = {id_of[p["title"], p["text"]] for p in gold}
                questions.append((question["question"], gold_ids))
    return chunks, propositions, questions


@pytest.mark.data
@pytest.mark.skipif(not MUSIQUE.exists(), reason="needs the shared MuSiQue files")
def test_recall_on_musique_is_that_of_independent_code(ids):
    """Recall at 5, measured before on all 100 questions by scikit-learn and another BM25.

    84 of them are here; the tolerance is twice the standard error of a mean over 84 questions.
    """
    chunks, propositions, questions = musique()
    assert len(chunks) == 1890 and len(questions) == 84
    tables = TripletTables.of(chunks, propositions)
    retrievers = {
        0.508: BM25Retriever(chunks),
        0.481: LexicalTripletRetriever(tables, "tfidf"),
    }
    for expected, retriever in retrievers.items():
        found = retriever.search([[text] for text, _ in questions], 5)
        recall = [len(gold & {*ids(e)}) / len(gold) for e, (_, gold) in zip(found, questions)]
        assert sum(recall) / len(recall) == pytest.approx(expected, abs=0.07)
