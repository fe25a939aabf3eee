import numpy as np
import pytest

from triax.scoring.thresholds import GRID, best_threshold, sweep_thresholds, to_graph


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
    assert best_threshold(rows, "f1").threshold == best.threshold


def test_of_equal_ones_the_cheaper():
    rows = sweep_thresholds([0.0, 0.0], [0.1, 0.3], [False, False], (0.0, 0.2, 0.4))
    assert best_threshold(rows, "f1").threshold == 0.4


def test_an_empty_grid():
    with pytest.raises(ValueError, match="the grid of thresholds is empty"):
        sweep_thresholds([0.1], [0.2], [True], ())
