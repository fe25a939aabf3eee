"""Tests for triax.reasoning.provenance."""

from triax.reasoning.provenance import find_sources
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.triplets import Proposition, Triplet

BORN = Triplet("Edith Carlmar", "was born in", "1911")


def hit(text: str, *chunk_ids: str) -> Hit:
    return Hit(Proposition(text, Triplet(text, "is", "it"), text, chunk_ids), 0.5, chunk_ids)


def chunk(name: str, text: str) -> ScoredChunk:
    return ScoredChunk(Chunk(name, name, text), 0.5)


def test_propositions_that_name_both_ends_come_first_and_give_all_their_chunks():
    evidence = Evidence(
        (chunk("a", "Edith Carlmar, 1911"), chunk("b", "x"), chunk("c", "y")),
        (hit("Edith Carlmar died 2003", "a"), hit("EDITH CARLMAR born in 1911", "c", "b")),
    )
    assert find_sources(BORN, evidence) == ("c", "b")


def test_passages_stand_in_where_no_proposition_says_it():
    evidence = Evidence(
        (chunk("a", "Nothing."), chunk("b", "Edith Carlmar (1911–2003), director.")),
        (hit("Edith Carlmar died 2003", "a"),),
    )
    assert find_sources(BORN, evidence) == ("b",)


def test_no_source_is_no_source():
    assert find_sources(BORN, Evidence((chunk("a", "Edith Carlmar."),))) == ()
    assert find_sources(BORN, Evidence()) == ()
