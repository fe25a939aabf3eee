"""The released code's search on small cases; whole runs are in tests/pipelines."""

import numpy as np
import pytest

from triax.indexing.hashing import HashingEncoder
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.triplets import Extraction, Triplet
from triax.records.verbs import Retriever
from triax.retrieval.original import OriginalRetriever


class Words:
    """One component a word of `a b c d`, so that scores are known by hand."""

    name, dimension = "words", 4

    def encode(self, texts, role="passage"):
        rows = np.array([[text.split().count(w) for w in "abcd"] for text in texts], np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)


def retriever(**triplets):
    chunks = {name: Chunk(name, name, name) for name in triplets}
    found = [
        Extraction(name, tuple(Triplet(*text.split()) for text in texts))
        for name, texts in triplets.items()
    ]
    made = OriginalRetriever(chunks, found, Words())
    assert isinstance(made, Retriever)
    return made


def search(made, group, num_chunks):
    [evidence] = made.search([group], num_chunks)
    hits = [(hit.proposition.text, round(hit.score, 4), hit.chunk_ids) for hit in evidence.hits]
    return hits, [(found.chunk.id, round(found.score, 4)) for found in evidence.chunks]


def test_one_pool_with_the_best_score_over_the_queries():
    made = retriever(one=["a x x", "b x x"], two=["a b x"])
    hits, chunks = search(made, ["a", "b"], 5)
    assert hits == [
        ("a x x", 1.0, ("one",)),
        ("b x x", 1.0, ("one",)),
        ("a b x", 0.7071, ("two",)),
    ]
    assert chunks == [("one", 1.0), ("two", 0.7071)]


def test_the_walk_ends_with_the_last_chunk():
    made = retriever(one=["a x x"], two=["a b x"], three=["a b c"])
    hits, chunks = search(made, ["a"], 2)
    assert [text for text, *_ in hits] == ["a x x", "a b x"]
    assert [name for name, _ in chunks] == ["one", "two"]
    assert search(made, ["a"], 0) == ([], [])


def test_nothing_without_a_score_is_found():
    hits, chunks = search(retriever(one=["a x x"], two=["b x x"]), ["a"], 5)
    assert [name for name, _ in chunks] == ["one"]
    assert search(retriever(one=["a x x"]), ["d"], 5) == ([], [])


def test_a_repeated_proposition_stands_twice_and_leads_to_its_last_chunk():
    """The released code knows a proposition by its text; see R27 for what is done elsewhere."""
    hits, chunks = search(retriever(one=["a x x"], two=["a x x"]), ["a"], 5)
    assert hits == [("a x x", 1.0, ("two",))] * 2
    assert chunks == [("two", 1.0)]


def test_ties_are_in_order_of_extraction():
    hits, _ = search(retriever(one=["a x x", "a y y"], two=["a z z"]), ["a"], 5)
    assert [text for text, *_ in hits] == ["a x x", "a y y", "a z z"]


@pytest.mark.parametrize("group", [[], ["a"]])
def test_r09_an_empty_index_finds_nothing(group):
    made = OriginalRetriever({}, [Extraction("one", ())], HashingEncoder(8))
    assert made.search([group, group], 3) == [Evidence(), Evidence()]


def test_no_query_finds_nothing():
    assert retriever(one=["a x x"]).search([[]], 3) == [Evidence()]
