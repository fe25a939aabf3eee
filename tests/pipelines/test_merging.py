import pytest

from triax.pipelines.merging import merge_chunks, merge_evidence
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.triplets import Proposition, Triplet
from triax.records.usage import Usage


def evidence(**scores):
    return Evidence(
        tuple(ScoredChunk(Chunk(name, name, ""), score) for name, score in scores.items())
    )


def test_the_best_score_of_all_rounds_ranks_a_chunk():
    rounds = [evidence(a=0.5, b=0.4), evidence(c=0.45, b=0.9)]
    assert merge_chunks(rounds) == ("b", "a", "c")


def test_ties_go_to_the_first_seen():
    assert merge_chunks([evidence(b=0.5, a=0.5), evidence(c=0.5, a=0.5)]) == ("b", "a", "c")


def test_nothing_found_is_an_empty_ranking():
    assert merge_chunks([]) == merge_chunks([Evidence(), Evidence()]) == ()
    assert merge_evidence([]) == Evidence()


def test_scores_may_be_negative():
    assert merge_chunks([evidence(a=-2.0, b=-1.0)]) == ("b", "a")


def shown(merged):
    return [(found.chunk.id, found.score) for found in merged.chunks]


def test_chunks_stay_as_they_were_found_or_by_their_scores():
    rounds = [evidence(a=0.5, b=0.4), evidence(c=0.45, b=0.9), evidence(d=0.7)]
    by_round = merge_evidence(rounds, 3, order="round")
    assert shown(by_round) == [("a", 0.5), ("b", 0.9), ("c", 0.45)]
    assert shown(merge_evidence(rounds, 3)) == [("b", 0.9), ("d", 0.7), ("a", 0.5)]
    assert shown(merge_evidence(rounds, 0)) == []
    assert len(shown(merge_evidence(rounds, 9))) == 4


def hit(name, score, *chunk_ids):
    return Hit(Proposition(name, Triplet(name, "p", "o"), name, chunk_ids), score, chunk_ids)


def note(name, score):
    return ScoredNote(Note(name, f"text of {name}"), score)


def test_hits_and_notes_stand_once_with_their_best_score():
    one = Evidence(
        evidence(a=0.9, b=0.1).chunks,
        (hit("p", 0.2, "a"), hit("r", 0.3, "b")),
        (note("m", 0.1), note("n", 0.5)),
        Usage(calls=1),
    )
    two = Evidence(evidence(c=0.8).chunks, (hit("p", 0.4, "c"),), (note("m", 0.7),), Usage(calls=2))
    merged = merge_evidence([one, two], max_chunks=2)
    assert shown(merged) == [("a", 0.9), ("c", 0.8)]
    assert [(h.proposition.id, h.score, h.chunk_ids) for h in merged.hits] == [
        ("p", 0.4, ("a", "c")),
        ("r", 0.3, ()),  # b did not stay
    ]
    assert [(found.note.id, found.score) for found in merged.notes] == [("m", 0.7), ("n", 0.5)]
    assert merged.usage == Usage(calls=3)


def test_an_unknown_order_is_named():
    with pytest.raises(ValueError, match=r"order is 'best', expected one of \('score', 'round'\)"):
        merge_evidence([], order="best")
