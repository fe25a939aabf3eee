import numpy as np
import pytest

from triax.scoring.thresholds import (
    GRID,
    TAUS,
    AnswerRow,
    Selection,
    best_threshold,
    cuts,
    sweep_answers,
    sweep_taus,
    sweep_thresholds,
    to_graph,
)


def test_the_grid_of_the_paper():
    assert GRID == pytest.approx(np.arange(0.0, 0.5, 0.02))


def test_only_more_than_the_threshold_goes_to_the_graph():
    assert to_graph([0.5, 0.5, 0.5], [0.5, 0.625, 0.75], 0.125) == [False, False, True]


def test_the_best_threshold_by_hand():
    """Margins .05, .15, .25, .35; the last two need the graph."""
    vanilla, graph = [0.1] * 4, [0.15, 0.25, 0.35, 0.45]
    rows = sweep_thresholds(vanilla, graph, [False, False, True, True])
    best = best_threshold(rows)
    assert best.scores.f1 == 1 and 0.15 <= best.threshold < 0.25
    assert rows[0].scores.graph_ratio == 1
    assert best_threshold(rows, Selection("f1")).threshold == best.threshold


def test_of_equal_ones_the_cheaper():
    rows = sweep_thresholds([0.0, 0.0], [0.1, 0.3], [False, False], (0.0, 0.2, 0.4))
    assert best_threshold(rows, Selection("f1")).threshold == 0.4


def test_within_a_share():
    """Margins .05 to .35; of four questions three need the graph, and at most two may go there."""
    vanilla, graph = [0.1] * 4, [0.15, 0.25, 0.35, 0.45]
    rows = sweep_thresholds(vanilla, graph, [False, True, True, True])
    assert best_threshold(rows).scores.graph_ratio == 0.75
    assert best_threshold(rows, Selection(max_graph_ratio=0.5)).scores.graph_ratio == 0.5
    # Where none is within the share, the one that comes nearest to it.
    some = [row for row in rows if row.scores.graph_ratio >= 0.5]
    assert best_threshold(some, Selection("f1", 0.1)).scores.graph_ratio == 0.5


def test_an_empty_grid():
    with pytest.raises(ValueError, match="the grid of thresholds is empty"):
        sweep_thresholds([0.1], [0.2], [True], ())


def test_cuts_reach_every_graph_ratio():
    margins = [0.5, -0.25, 0.5, 0.125]
    found = cuts(margins)
    assert found == [-1.25, -0.0625, 0.3125, 1.5]
    sent = [sum(to_graph([0.0] * 4, margins, one)) for one in found]
    assert sent == [4, 3, 2, 0]  # equal margins go together


def test_of_many_cuts_some_at_even_steps():
    found = cuts(np.arange(1000) / 1000, at_most=11)
    assert len(found) == 11 and found == sorted(found)
    assert (found[0], found[-1]) == (-1.0, 1.999)
    assert found[5] == pytest.approx(0.4995, abs=1e-9)


def test_cuts_of_nothing():
    with pytest.raises(ValueError, match="no margins"):
        cuts([])


# Three questions with margins .1, .3, .5: vanilla answers the first, the graph the others.
P_VANILLA, P_GRAPH = [0.4, 0.4, 0.4], [0.5, 0.7, 0.9]
VANILLA, GRAPH, REWRITTEN = [1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]


def test_answers_at_every_threshold_by_hand():
    rows = sweep_answers(P_VANILLA, P_GRAPH, VANILLA, GRAPH, (0.0, 0.2, 0.4, 0.6))
    assert [row.graph_ratio for row in rows] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [row.score for row in rows] == pytest.approx([1.5 / 3, 2.5 / 3, 1.5 / 3, 1.5 / 3])
    assert {row.rewritten_ratio for row in rows} == {0.0}


def test_answers_at_every_tau_by_hand():
    """Routes v, g, g. Below .8 the second is rewritten, which loses it; the third wins at 1."""
    sent = [False, True, True]
    rows = sweep_taus(sent, P_GRAPH, VANILLA, GRAPH, REWRITTEN, (0.6, 0.8, 1.0))
    assert rows[1] == AnswerRow(0.8, 2 / 3, 1 / 3, 0.5)
    assert [row.graph_ratio for row in rows] == pytest.approx([2 / 3] * 3)
    assert [row.rewritten_ratio for row in rows] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [row.score for row in rows] == pytest.approx([2.5 / 3, 1.5 / 3, 2 / 3])


def test_at_tau_itself_nothing_is_rewritten():
    (row,) = sweep_taus([True], [0.6], [0.0], [1.0], [0.0], (0.6,))
    assert (row.rewritten_ratio, row.score) == (0.0, 1.0)
    assert TAUS[0] == 0.0 and TAUS[-1] == 1.0 and 0.6 in TAUS


def test_answers_of_no_question():
    with pytest.raises(ValueError, match="no question"):
        sweep_answers([], [], [], [])
    with pytest.raises(ValueError, match="the grid of thresholds is empty"):
        sweep_taus([True], [0.1], [0.0], [1.0], [1.0], ())
