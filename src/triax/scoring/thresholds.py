"""From two probabilities to a route, and the threshold that does it best.

Source: R2Adapter, section 3.2 and its code: graph if p_graph - p_vanilla > t, with t from 0 to
0.48 in steps of 0.02, chosen on validation. Section 3.3: of the questions that go to the graph
those with p_graph below tau are rewritten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from triax.scoring.routing import RoutingScores, Scores, compose, score_routes

Objective = Literal["objective", "f1"]
Probabilities = Sequence[float] | Float[np.ndarray, " questions"]
GRID = tuple(round(0.02 * n, 2) for n in range(25))
TAUS = tuple(round(0.05 * n, 2) for n in range(21))


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """What a threshold gives."""

    threshold: float
    scores: RoutingScores


@dataclass(frozen=True, slots=True)
class Selection:
    """What a threshold, or any other choice of routes, is chosen for.

    objective: what is maximised: half F1 and half recall, as in the paper, or F1 alone. Where many
        questions need the graph, sending all of them there does well by both.
    max_graph_ratio: the greatest share of questions that may go to the graph. Routers that are
        chosen within the same share can be compared by what they make of it.
    """

    objective: Objective = "objective"
    max_graph_ratio: float | int = 1.0

    def worth(self, scores: RoutingScores) -> tuple[bool, float, float]:
        """Greater is better: within the share first, then the objective, then a lower share."""
        is_within = scores.graph_ratio <= self.max_graph_ratio
        value = getattr(scores, self.objective) if is_within else 0.0
        return is_within, value, -scores.graph_ratio


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What a threshold, or a tau, gives end to end.

    `setting` is its value, `graph_ratio` and `rewritten_ratio` are shares of all questions, `score`
    is the mean over questions of that of the answer each gets.
    """

    setting: float
    graph_ratio: float
    rewritten_ratio: float
    score: float


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
    _check(grid, needs_graph)
    return [
        ThresholdRow(float(one), score_routes(to_graph(p_vanilla, p_graph, one), needs_graph))
        for one in grid
    ]


def cuts(margins: Probabilities, at_most: int = 100) -> list[float]:
    """Thresholds between the margins that occur, from "all to the graph" to "none", ascending.

    Args:
        margins: what is compared with a threshold, above which a question goes to the graph.
        at_most: how many, at least 2; of more that there are, as many at even steps.

    Raises:
        ValueError: no margin.

    >>> cuts([0.5, 0.25, 0.5])
    [-0.75, 0.375, 1.5]
    """
    found = np.unique(np.asarray(margins, np.float64))
    if not len(found):
        raise ValueError("no margins to put thresholds between; expected at least one")
    between = (found[:-1] + found[1:]) / 2
    every = np.concatenate([found[:1] - 1, between, found[-1:] + 1])
    kept = np.unique(np.linspace(0, len(every) - 1, min(at_most, len(every))).round().astype(int))
    return every[kept].tolist()


def sweep_answers(
    p_vanilla: Probabilities,
    p_graph: Probabilities,
    vanilla: Scores,
    graph: Scores,
    grid: Sequence[float] = GRID,
) -> list[AnswerRow]:
    """The answers that every threshold of the grid chooses from two runs, without a run of its own.

    Args:
        p_vanilla: of each question.
        p_graph: of each question.
        vanilla: the score of its answer where all went to vanilla retrieval.
        graph: the same where all went to the graph.
        grid: thresholds.

    Raises:
        ValueError: unequal lengths, no question, or an empty grid.
    """
    _check(grid, vanilla)
    rows = []
    for setting in grid:
        sent = to_graph(p_vanilla, p_graph, setting)
        score = compose(sent, vanilla, graph).mean()
        rows.append(AnswerRow(float(setting), float(np.mean(sent)), 0.0, float(score)))
    return rows


def sweep_taus(
    sent: Sequence[bool],
    p_graph: Probabilities,
    vanilla: Scores,
    graph: Scores,
    rewritten: Scores,
    grid: Sequence[float] = TAUS,
) -> list[AnswerRow]:
    """The same over tau, at fixed routes: below it a question's rewriting goes to the graph.

    Args:
        sent: whether each question goes to the graph.
        p_graph: of each question; a question is rewritten where it is below tau.
        vanilla: as for `sweep_answers`.
        graph: as for `sweep_answers`.
        rewritten: the score where all were rewritten and went to the graph.
        grid: values of tau.

    Raises:
        ValueError: unequal lengths, no question, or an empty grid.
    """
    _check(grid, vanilla)
    rows = []
    for setting in grid:
        unsure = np.asarray(p_graph, np.float64) < setting
        score = compose(sent, vanilla, graph, unsure.tolist(), rewritten).mean()
        changed = np.asarray(sent, bool) & unsure
        rows.append(
            AnswerRow(float(setting), float(np.mean(sent)), float(changed.mean()), float(score))
        )
    return rows


def best_threshold(rows: Sequence[ThresholdRow], select: Selection = Selection()) -> ThresholdRow:
    """The best row; of equal ones that with the lower graph ratio, which costs less."""
    return max(rows, key=lambda row: select.worth(row.scores))


def _check(grid: Sequence[float], questions: Sequence[bool] | Scores) -> None:
    if not len(grid):
        raise ValueError("the grid of thresholds is empty; expected at least one")
    if not len(questions):
        raise ValueError("no question to sweep thresholds over; expected at least one")
