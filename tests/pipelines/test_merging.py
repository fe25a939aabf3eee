from triax.pipelines.merging import merge_chunks
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk


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


def test_scores_may_be_negative():
    assert merge_chunks([evidence(a=-2.0, b=-1.0)]) == ("b", "a")
