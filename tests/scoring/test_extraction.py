import pytest

from triax.scoring.extraction import (
    Match,
    exact_match,
    f1_interval,
    holds_answer,
    pairs_match,
    precision_recall_f1,
    soft_match,
)

CURIE = ("Marie Curie", "was born in", "Warsaw")


def test_exact_match_counts_repeats_once_and_knows_all_names():
    said = [CURIE, ("marie curie", "was born in", "Warsaw."), ("Marie Curie", "died in", "Passy")]
    true = [[CURIE, ("Curie", "was born in", "Warsaw")], [("Marie Curie", "won", "Nobel Prize")]]
    assert exact_match(said, true) == Match(1.0, 2, 1.0, 2)
    assert exact_match([("Curie", "was born in", "Warsaw")], true) == Match(1.0, 1, 1.0, 2)


def test_pairs_ignore_the_predicate():
    true = [[("Marie Curie", "place of birth", "Warsaw")]]
    assert exact_match([CURIE], true).recall_sum == 0.0
    assert pairs_match([CURIE], true) == Match(1.0, 1, 1.0, 1)


def test_soft_match_by_hand():
    """Said: marie curie | was born in | warsaw poland (7 words); true: curie | born in | warsaw.

    Common words: curie; born, in; warsaw: 4. Precision 4/7, recall 4/4.
    """
    said = [("Marie Curie", "was born in", "Warsaw Poland")]
    found = soft_match(said, [[("Curie", "born in", "Warsaw")]])
    assert found.precision_sum == pytest.approx(4 / 7)
    assert found.recall_sum == pytest.approx(1.0)


def test_soft_match_needs_a_common_word_in_the_predicate():
    found = soft_match([CURIE], [[("Marie Curie", "died at", "Warsaw")]])
    assert (found.precision_sum, found.recall_sum) == (0.0, 0.0)


def test_soft_precision_is_one_to_one_and_recall_many_to_one():
    # CaRB, section 3: one long extraction may serve the recall of two gold tuples, but two
    # extractions of one gold tuple do not both count for precision.
    twice = [CURIE, ("Curie", "was born in", "Warsaw")]
    assert soft_match(twice, [[CURIE]]).precision_sum == pytest.approx(1.0)
    long = [("Curie", "born in", "Warsaw 1867")]
    gold = [[("Curie", "born in", "Warsaw")], [("Curie", "born in", "1867")]]
    found = soft_match(long, gold)
    assert found.recall_sum == pytest.approx(2.0)
    assert found.precision_sum == pytest.approx(4 / 5)


def test_nothing_said_and_nothing_true():
    assert soft_match([], [[CURIE]]) == Match(0.0, 0, 0.0, 1)
    assert soft_match([CURIE], []) == Match(0.0, 1, 0.0, 0)
    assert precision_recall_f1([]) == (0.0, 0.0, 0.0)


def test_micro_average():
    found = precision_recall_f1([Match(1.0, 2, 1.0, 1), Match(0.0, 2, 1.0, 4)])
    assert found == pytest.approx((0.25, 0.4, 2 * 0.25 * 0.4 / 0.65))


def test_interval_of_equal_texts_is_a_point():
    assert f1_interval([Match(1.0, 2, 1.0, 2)] * 5) == pytest.approx((0.5, 0.5))
    low, high = f1_interval([Match(1.0, 1, 1.0, 1), Match(0.0, 1, 0.0, 1)] * 10)
    assert 0.0 < low < 0.5 < high < 1.0
    with pytest.raises(ValueError, match="no texts"):
        f1_interval([])


def test_answers_are_whole_words_of_a_field():
    assert holds_answer([CURIE], ["warsaw"])
    assert holds_answer([("The Curie family", "is", "x")], ["Curie"])
    assert not holds_answer([CURIE], ["War"])
    assert not holds_answer([CURIE], ["was born in", ""])
