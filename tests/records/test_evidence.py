from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.triplets import Proposition, Triplet


def test_nothing_found_is_empty_evidence():
    assert Evidence() == Evidence((), ())


def test_evidence_keeps_its_order():
    chunks = tuple(
        ScoredChunk(Chunk(name, name, ""), score) for name, score in (("b", 2.0), ("a", 1.0))
    )
    hit = Hit(Proposition("p", Triplet("A", "b", "C"), "A b C", ("b", "a")), 2.0, ("b",))
    found = Evidence(chunks, (hit,))
    assert [one.chunk.id for one in found.chunks] == ["b", "a"]
    # A hit names the sources that entered, its proposition all of them.
    assert (found.hits[0].chunk_ids, found.hits[0].proposition.chunk_ids) == (("b",), ("b", "a"))


def test_notes_and_propositions_are_the_texts_beside_the_chunks():
    hit = Hit(Proposition("p", Triplet("A", "b", "C"), "A b C", ("b",)), 2.0, ("b",))
    notes = (ScoredNote(Note("n", "about A", "A"), 1.0), ScoredNote(Note("m", "no title"), 0.5))
    assert Evidence((), (hit,), notes).texts == ("A\nabout A", "no title", "A b C")
    assert Evidence().texts == ()
