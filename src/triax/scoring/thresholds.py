"""From two probabilities to a route, and the threshold that does it best.

Source: R2Adapter, section 3.2 and its code: graph if p_graph - p_vanilla > t, with t from 0 to
0.48 in steps of 0.02, chosen on validation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from triax.scoring.routing import RoutingScores, score_routes

Objective = Literal["objective", "f1"]
Probabilities = Sequence[float] | Float[np.ndarray, " questions"]
GRID = tuple(round(0.02 * n, 2) for n in range(25))


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """What a threshold gives."""

    threshold: float
    scores: RoutingScores


def to_graph(p_vanilla: Probabilities, p_graph: Probabilities, threshold: float) -> list[bool]:
    """Whether each question goes to the graph."""
    margin = np.asarray(p_graph, np.float64) - np.asarray(p_vanilla, np.float64)
    return (margin > threshold).tolist()


def sweep_thresholds(
    p_vanilla: Probabilities,
    p_graph: Probabilities,
    needs_graph: Sequence[bool],
    grid: Sequence[float] = GRID,
) -> list[ThresholdRow]:
    """The scores at every threshold of the grid.

    Raises:
        ValueError: unequal lengths, no question, or an empty grid.
    """
    if not len(grid):
        raise ValueError("the grid of thresholds is empty; expected at least one")
    return [
        ThresholdRow(float(one), score_routes(to_graph(p_vanilla, p_graph, one), needs_graph))
        for one in grid
    ]


def best_threshold(
    rows: Sequence[ThresholdRow], objective: Objective = "objective"
) -> ThresholdRow:
    """The best row; of equal ones that with the lower graph ratio, which costs less."""
    return max(rows, key=lambda row: (getattr(row.scores, objective), -row.scores.graph_ratio))
