from triax.records.documents import Chunk
from triax.records.verbs import Retriever
from triax.retrieval.bm25 import BM25Retriever


def test_title_and_text_are_searched_in_any_script(chunks, ids):
    retriever = BM25Retriever(chunks)
    assert isinstance(retriever, Retriever)
    found = retriever.search([["Lovelace program"], ["київ"], ["Who lives in Warsaw, Curie?"]], 2)
    assert [ids(evidence)[0] for evidence in found] == ["ada", "kyiv", "curie"]
    titled = BM25Retriever([Chunk("a", "a", "nothing here", "Zebra"), Chunk("b", "b", "cat")])
    assert ids(titled.search([["zebra"]], 5)[0]) == ["a"]


def test_a_group_takes_the_best_of_its_queries(chunks):
    retriever = BM25Retriever(chunks)
    one, other, both = retriever.search([["Warsaw"], ["Дніпрі"], ["Warsaw", "Дніпрі"]], 4)
    scores = {scored.chunk.id: scored.score for scored in (*one.chunks, *other.chunks)}
    assert {scored.chunk.id: scored.score for scored in both.chunks} == scores


def test_r09_tiny_equal_and_unmatched(ids):
    assert BM25Retriever([]).search([["x"], []], 3)[0].chunks == ()
    assert ids(BM25Retriever([Chunk("c", "c", "one")]).search([["one"]], 9)[0]) == ["c"]
    same = BM25Retriever([Chunk(name, name, "same") for name in "cab"])
    assert ids(same.search([["same"]], 2)[0]) == ["a", "b"]
    assert same.search([["other"], ["the"]], 2)[0].chunks == ()


def test_r18_the_order_of_chunks_does_not_change_the_result(chunks):
    groups = [["born in London"], ["the first program"]]
    assert BM25Retriever(chunks).search(groups, 3) == BM25Retriever(chunks[::-1]).search(groups, 3)
