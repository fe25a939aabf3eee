import pytest

from triax.records.query_triplets import QueryTriplet
from triax.scoring.decomposition import (
    decomposition_scores,
    has_equal_arguments,
    has_same_structure,
    is_equal,
    step_links,
    structure_scores,
)


def triplets(text):
    return [QueryTriplet.parse(*line.split(" | ")) for line in text.split(" ; ")]


GOLD = triplets("Vertigo | director | ?1 ; ?1 | date of birth | ?2")


@pytest.mark.parametrize(
    "text",
    [
        "Vertigo | director | ?1 ; ?1 | date of birth | ?2",
        "Vertigo | director | ?2 ; ?2 | date of birth | ?1",
        "?x | date of birth | ?y ; vertigo | the Director of | ?x",
        "Vertigo | is director | ?a ; ?a | birth date | ?b",
    ],
)
def test_order_names_and_small_words_do_not_count(text):
    assert is_equal(triplets(text), GOLD)


@pytest.mark.parametrize(
    ("text", "same_arguments"),
    [
        ("Vertigo | director | ?1 ; ?1 | place of birth | ?2", True),
        ("Vertigo | directed by | ?1 ; ?1 | date of birth | ?2", True),  # no stemming
        ("Stalker | director | ?1 ; ?1 | date of birth | ?2", False),
        ("Vertigo | director | ?1 ; ?2 | date of birth | ?1", False),  # the other way round
        ("Vertigo | director | ?1 ; ?3 | date of birth | ?2", False),  # not linked
        ("Vertigo | director | ?1", False),
        ("?1 | director | Vertigo ; ?1 | date of birth | ?2", False),
    ],
)
def test_what_counts(text, same_arguments):
    assert not is_equal(triplets(text), GOLD)
    assert has_equal_arguments(triplets(text), GOLD) is same_arguments


def test_a_placeholder_within_a_predicate_counts_in_equal_only():
    gold = triplets("A | b | ?1 ; C | d | ?2 ; ?1 | e of ?2 | ?3")
    other = triplets("A | b | ?1 ; C | d | ?2 ; ?1 | e of | ?3")
    assert is_equal(triplets("C | d | ?1 ; A | b | ?2 ; ?2 | of ?1 e | ?3"), gold)
    assert not is_equal(other, gold)
    assert has_equal_arguments(other, gold)


# MuSiQue's shapes (Trivedi et al. 2022, figure 2), by their sub-questions.
TWO = ["Anna Benson >> spouse", "#1 >> member of sports team"]
THREE = [*TWO, "where is #2"]
JOINED = ["What king was it?", "which language", "What was the #2 of #1 's era later known as?"]


def test_links_of_sub_questions():
    assert [sorted(one) for one in step_links(THREE)] == [[1], [1, 2], [2, 3]]
    assert [sorted(one) for one in step_links(JOINED)] == [[1], [2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "steps", "same"),
    [
        ("A | b | ?1 ; ?1 | c | ?2", TWO, True),
        ("?b | c | ?a ; A | b | ?b", TWO, True),
        ("A | b | ?1 ; C | d | ?2", TWO, False),
        ("A | b | ?1 ; ?1 | c | ?2 ; ?2 | d | ?3", THREE, True),
        ("A | b | ?1 ; ?1 | c | ?2 ; ?1 | d | ?3", THREE, False),
        ("A | b | ?1 ; C | d | ?2 ; ?1 | e of ?2 | ?3", JOINED, True),
        ("A | b | ?1 ; C | d | ?2 ; ?1 | e of | ?3", JOINED, False),
        ("A | b | ?", [TWO[0]], True),
    ],
)
def test_structure(text, steps, same):
    assert has_same_structure(triplets(text), step_links(steps)) is same


def test_means_and_single_figures():
    wrong = triplets("Vertigo | mother | ?1 ; ?1 | date of birth | ?2")
    means, each = decomposition_scores([GOLD, wrong], [GOLD, GOLD])
    assert means == {"equal": 0.5, "equal_arguments": 1.0, "parsed": 1.0}
    assert [one["equal"] for one in each] == [1.0, 0.0]
    means, _ = structure_scores([GOLD, GOLD[:1]], [step_links(TWO), step_links(TWO)])
    assert means == {"structure": 0.5, "num_triplets": 0.5, "parsed": 1.0}


def test_numbers_must_agree():
    with pytest.raises(ValueError, match="1 decompositions for 0 gold"):
        decomposition_scores([GOLD], [])
