import json
import math
import os
from pathlib import Path

import pytest

from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.triplets import Proposition, Triplet
from triax.records.verbs import Retriever
from triax.retrieval.adaptive import AdaptiveRetriever, encode_groups

SHARED = Path(__file__).parents[2].parent / "shared" / "oracle"
ORACLE = Path(os.environ.get("TRIAX_ORACLE", SHARED)) / "t2rag"


def engines():
    from triax.indexing.faiss_index import FaissSearch
    from triax.indexing.flat import FlatSearch
    from triax.indexing.small import default_engine

    return [default_engine, FlatSearch, FaissSearch]


@pytest.mark.parametrize("engine", engines())
def test_hits_lead_to_chunks_and_know_which(index, encoder, engine, chunks, ids):
    retriever = AdaptiveRetriever(index, encoder, engine)
    assert isinstance(retriever, Retriever)
    (found,) = retriever.search([["Charles Babbage was born in"]], 3)
    # 5 of 6 words shared: 5 / sqrt(5 * 6); then "was born in", 3 of 6.
    assert [hit.proposition.text for hit in found.hits] == [
        "Charles Babbage was born in London",
        "Marie Curie was born in Warsaw",
    ]
    assert [hit.score for hit in found.hits] == pytest.approx(
        [5 / math.sqrt(30), 3 / math.sqrt(30)]
    )
    assert [hit.chunk_ids for hit in found.hits] == [("ada", "babbage"), ("curie",)]
    assert found.hits[0].proposition.chunk_ids == ("ada", "babbage")
    assert ids(found) == ["ada", "babbage", "curie"]
    assert [c.score for c in found.chunks] == pytest.approx(
        [5 / math.sqrt(30)] * 2 + [3 / math.sqrt(30)]
    )
    assert found.chunks[0].chunk == chunks[0]


def test_r27_a_hit_names_only_the_sources_that_entered(index, encoder, ids):
    (found,) = AdaptiveRetriever(index, encoder).search([["Charles Babbage was born in"]], 1)
    assert [hit.chunk_ids for hit in found.hits] == [("ada",)]
    assert ids(found) == ["ada"]


def test_queries_of_a_group_share_one_pool_and_those_of_a_call_one_batch(index, ids):
    class Counting(HashingEncoder):
        calls = []

        def encode(self, texts, role="passage"):
            self.calls.append((list(texts), role))
            return super().encode(texts, role)

    encoder = Counting(256)
    retriever = AdaptiveRetriever(index, encoder)
    both, one, none = retriever.search([["Warsaw", "Дніпрі"], ["Warsaw"], []], 2)
    assert encoder.calls == [(["Warsaw", "Дніпрі"], "query")]
    assert sorted(ids(both)) == ["curie", "kyiv"] and ids(one) == ["curie"]
    assert none == Evidence()
    assert retriever.search([], 2) == [] and retriever.search([[], []], 2) == [Evidence()] * 2
    assert len(encoder.calls) == 1


def test_r09_tiny_indexes_give_a_ranked_list(build, encoder, ids):
    assert AdaptiveRetriever(build(), encoder).search([["one"]], 5) == [Evidence()]
    one = AdaptiveRetriever(build("one"), encoder)
    assert ids(one.search([["one two"]], 5)[0]) == ["c0"]
    assert one.search([["other"]], 5) == [Evidence()] and one.search([["one"]], 0) == [Evidence()]
    same = AdaptiveRetriever(build("same", "same", "same"), encoder)
    assert ids(same.search([["same"]], 2)[0]) == ["c0", "c1"]
    assert ids(same.search([["same"]], 9)[0]) == ["c0", "c1", "c2"]


def test_r05_another_encoder_is_refused(index):
    with pytest.raises(ValueError, match="dimension: 256 there, 64 given"):
        AdaptiveRetriever(index, HashingEncoder(64))


def test_a_text_that_several_groups_ask_is_encoded_once(encoder):
    rows = encode_groups(encoder, [["a", "b", "a"], ["b"]])
    assert [len(group) for group in rows] == [2, 1]
    assert (rows[0][1] == rows[1][0]).all()


def original_walks():
    """Every search of the released code's toy runs: documents, k, queries, what it found."""
    for path in sorted(ORACLE.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        rounds = (run["result"]["trace"] or {}).get("iterations", [])
        for queries, turn in zip(run["result"]["embed_calls"], rounds):
            found = turn["step_2_retrieval_and_expansion"]
            yield run["scenario"]["docs"], run["scenario"]["k"], queries, found


@pytest.mark.data
@pytest.mark.skipif(not ORACLE.exists(), reason="needs the shared traces of the released code")
def test_scores_and_chunks_are_those_of_the_released_code(tmp_path):
    searches = list(original_walks())
    assert len(searches) == 14
    for number, (documents, k, queries, found) in enumerate(searches):
        # There a repeated sentence leads to its last document only.
        last = {
            fields: document["idx"]
            for document in documents
            for fields in map(tuple, document["extracted_triples"])
        }
        facts = [
            Proposition("|".join(fields), Triplet(*fields), " ".join(fields), (source,))
            for fields, source in last.items()
        ]
        chunks = [Chunk(d["idx"], d["idx"], d["passage"]) for d in documents]
        encoder = HashingEncoder()
        index = build_index(chunks, facts, encoder, tmp_path / str(number))
        (evidence,) = AdaptiveRetriever(index, encoder).search([queries], k)
        hits = {hit.proposition.text: hit.score for hit in evidence.hits}
        theirs = {p["proposition"]: p["similarity"] for p in found["retrieved_propositions"]}
        passages = {p["passage_id"]: p["score"] for p in found["retrieved_passages"]}
        assert hits == pytest.approx(theirs, abs=1e-6)
        assert {c.chunk.id: c.score for c in evidence.chunks} == pytest.approx(passages, abs=1e-6)
