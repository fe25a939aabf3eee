import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.drawn_evidence import ASKED, COUNTER, check
from triax.indexing.hashing import HashingEncoder
from triax.models.token_counter import WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Note, ScoredChunk, ScoredNote
from triax.records.verbs import Compressor
from triax.retrieval.adaptive import AdaptiveRetriever
from triax.retrieval.dense import DenseRetriever
from triax.retrieval.nearest_chunks import NearestChunks
from triax.retrieval.shown import ShownTokens, pieces

ONE_A_WORD = ShownTokens(WordCounter(1.0))


def test_chunks_in_the_order_of_dense_retrieval(index, encoder, ids):
    """Whatever order they come in; dense retrieval is the reference (no two are equally near)."""
    groups = [["Who was born in London?"], ["Marie Curie was born", "Дніпрі"]]
    dense = DenseRetriever(index, encoder).search(groups, 9)
    turned = [Evidence(one.chunks[::-1]) for one in dense]
    compressor = NearestChunks(index, encoder, ShownTokens(COUNTER))
    assert isinstance(compressor, Compressor)
    assert [ids(one) for one in compressor.compress(groups, turned)] == [ids(one) for one in dense]


def test_every_kind_by_its_own_vector_and_the_budget_by_hand(index, encoder, propositions):
    """The note is the question, the fact has half of it, the new chunk little, the other none."""
    asked = "Marie Curie Warsaw"
    chunks = (
        ScoredChunk(Chunk("new", "new", "Warsaw is a city on a river in Europe"), 0.1),
        ScoredChunk(index.tables.chunk(3), 0.9),
    )
    note = ScoredNote(Note("n", "Curie Marie Warsaw"), 0.5)
    evidence = Evidence(chunks, (), (note,))
    near = {piece: encoder.encode([text])[0] for piece, text in pieces(evidence).items()}
    cosines = {piece: float(row @ encoder.encode([asked])[0]) for piece, row in near.items()}
    ranked = sorted(cosines, key=cosines.get, reverse=True)
    assert ranked == [("notes", 0), ("chunks", 0), ("chunks", 1)]

    def kept(max_tokens, **options):
        compressor = NearestChunks(index, encoder, ONE_A_WORD, max_tokens, **options)
        (found,) = compressor.compress([[asked]], [evidence])
        return [one.note.id for one in found.notes] + [one.chunk.id for one in found.chunks]

    # Headings 2, note 4, new chunk 10, the other 6 ("[4]", title, four words).
    assert kept(22) == ["n", "new", "kyiv"]
    assert kept(21) == ["n", "new"]
    assert kept(15) == ["n", "kyiv"] and kept(15, skips=False) == ["n"]
    assert kept(2) == []


def test_facts_have_the_vectors_of_the_index(index, encoder, propositions):
    (found,) = AdaptiveRetriever(index, encoder).search([["Marie Curie was born in Warsaw"]], 4)
    (near,) = NearestChunks(index, encoder, ShownTokens(COUNTER)).compress(
        [["Marie Curie was born in Warsaw"]], [Evidence(hits=found.hits[::-1])]
    )
    texts = [one.proposition.text for one in near.hits]
    assert texts[0] == "Marie Curie was born in Warsaw"
    scores = [one.score for one in near.hits]
    assert scores == sorted(scores, reverse=True) and len(scores) > 1


def test_an_index_without_chunk_vectors_will_do(build, encoder):
    index = build("red", "blue", embeds_chunks=False)
    chunks = tuple(ScoredChunk(index.tables.chunk(row), 0.0) for row in range(2))
    (found,) = NearestChunks(index, encoder, ONE_A_WORD).compress([["blue"]], [Evidence(chunks)])
    assert [one.chunk.text for one in found.chunks] == ["blue", "red"]


@given(ASKED, st.integers(-2, 60), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_budget_holds(index, encoder, asked, max_tokens, skips):
    shown = ShownTokens(COUNTER)
    check(NearestChunks(index, encoder, shown, max_tokens, skips), asked, max_tokens)


def test_the_smallest(index, build, encoder):
    compressor = NearestChunks(build(), encoder, ShownTokens(COUNTER))
    assert compressor.compress([], []) == []
    assert compressor.compress([["one"], []], [Evidence(), Evidence()]) == [Evidence()] * 2
    chunks = tuple(ScoredChunk(index.tables.chunk(row), 0.0) for row in (2, 0))
    # Without a query nothing is nearer than anything else, and neither among equals.
    for group in ([], ["zzz"]):
        assert compressor.compress([group], [Evidence(chunks)])[0].chunks == chunks
    with pytest.raises(ValueError, match="encoder"):
        NearestChunks(index, HashingEncoder(64), ShownTokens(COUNTER))
