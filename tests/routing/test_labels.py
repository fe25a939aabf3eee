import numpy as np
import pytest

from triax.routing.labels import GoldRanks, label, label_mix, part_of, ranks_of


def made(vanilla, graph, cut=5):
    return label("q", "Who?", "bridge", GoldRanks(vanilla), GoldRanks(graph), cut)


@pytest.mark.parametrize(
    ("vanilla", "graph", "cut", "expected"),
    [
        ((1, 9), (2, 4), 5, (False, True)),  # vanilla fails
        ((1, 3), (2, 9), 5, (True, False)),  # the graph fails
        ((1, 5), (1, 3), 5, (False, True)),  # the graph is better
        ((1, 2), (1, 3), 5, (True, False)),  # vanilla is better
        ((1, 4), (2, 3), 5, (True, True)),  # equal averages
        ((9, 2), (1, 7), 5, None),  # both fail
        ((9, 2), (1, 7), None, (False, True)),  # every rank counts: 5.5 and 4
        ((1, 5.0), (1, 5.5), 5, (True, False)),  # a tie over the cut is no find
    ],
)
def test_the_rule_of_the_paper(vanilla, graph, cut, expected):
    found = made(vanilla, graph, cut)
    assert expected == (found and (found.vanilla, found.graph))


def test_ranks_that_count_are_kept():
    found = made((1, 9), (2, 4))
    assert (found.vanilla_rank, found.graph_rank, found.num_gold) == (None, 3.0, 2)
    assert found.needs_graph


def test_sides_must_rank_the_same_documents():
    with pytest.raises(ValueError, match="2 ranks by vanilla retrieval and 1 by the graph"):
        made((1, 2), (1,))


def test_a_question_without_gold_documents_has_no_label():
    assert made((), ()) is None
    assert made((), (), None) is None


def test_ties_share_their_mean_rank():
    assert ranks_of(np.array([1.0, 1.0, 1.0]), [0]).ranks == (2.0,)
    assert ranks_of(np.array([3.0, 1.0, 2.0, 2.0]), [0, 1]).ranks == (1.0, 4.0)


def test_parts_are_8_1_1_and_a_matter_of_words():
    parts = [part_of(f"Who wrote book {n}?") for n in range(2000)]
    for part, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        assert parts.count(part) / 2000 == pytest.approx(share, abs=0.03)
    assert part_of("Who  wrote\nBrand?") == part_of("who wrote BRAND?")


def test_the_mix_counts_what_has_no_label_too():
    examples = [made((1, 9), (2, 4)), made((1, 4), (2, 3)), None, made((1, 2), (9, 9))]
    assert label_mix(examples, ["a", "a", "b", "b"]) == {
        "all": {"graph_only": 1, "vanilla_only": 1, "both": 1, "neither": 1},
        "a": {"graph_only": 1, "vanilla_only": 0, "both": 1, "neither": 0},
        "b": {"graph_only": 0, "vanilla_only": 1, "both": 0, "neither": 1},
    }
