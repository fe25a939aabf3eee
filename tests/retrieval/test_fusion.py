from hypothesis import given
from hypothesis import strategies as st

from triax.records.documents import Chunk
from triax.records.evidence import ScoredChunk
from triax.retrieval.fusion import fuse

rankings = st.lists(st.permutations("abcd").map(lambda one: one[:3]), max_size=4)


def chunks(names):
    return [ScoredChunk(Chunk(name, name, ""), 9.0) for name in names]


@given(rankings)
def test_scores_are_sums_of_reciprocal_ranks_whatever_the_order(given_rankings):
    found = fuse([chunks(names) for names in given_rankings], k=1)
    for one in found:
        ranks = [names.index(one.chunk.id) + 1 for names in given_rankings if one.chunk.id in names]
        assert abs(one.score - sum(1 / (1 + rank) for rank in ranks)) < 1e-9
    assert [-one.score for one in found] == sorted(-one.score for one in found)
    turned = fuse([chunks(names) for names in reversed(given_rankings)], k=1)
    assert [one.chunk.id for one in turned] == [one.chunk.id for one in found]


def test_equal_sums_are_in_order_of_ids():
    assert [one.chunk.id for one in fuse([chunks("ba"), chunks("ab")])] == ["a", "b"]
    assert fuse([]) == ()
