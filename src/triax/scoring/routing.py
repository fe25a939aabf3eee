"""How good routes are: the class is "needs the graph"; and what they cost, the graph ratio.

Source: R2Adapter, section 4 and its code: the objective is half F1 and half recall. A router that
always takes the graph has recall 1, so the objective alone cannot rank routers: F1, recall and
graph ratio belong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Scores = Sequence[float] | Float[np.ndarray, " questions"]
Flags = Sequence[bool] | Bool[np.ndarray, " questions"]


@dataclass(frozen=True, slots=True)
class RoutingScores:
    """Precision, recall and F1 of "needs the graph", 0 where there is nothing to count.

    `graph_ratio` is the share of questions that are sent to the graph, `objective` half F1 and
    half recall.
    """

    f1: float
    precision: float
    recall: float
    graph_ratio: float
    objective: float
    num_questions: int


def score_routes(to_graph: Sequence[bool], needs_graph: Sequence[bool]) -> RoutingScores:
    """Scores of routes.

    Args:
        to_graph: whether each question is sent to the graph.
        needs_graph: whether vanilla retrieval does not suffice for it.

    Raises:
        ValueError: unequal lengths, or no question.
    """
    sent, needed = np.asarray(to_graph, bool), np.asarray(needs_graph, bool)
    if sent.shape != needed.shape or not len(sent):
        raise ValueError(
            f"{len(sent)} routes for {len(needed)} labels; expected as many, at least one"
        )
    return _scores(np.array([[(sent & needed).sum(), sent.sum(), needed.sum(), len(sent)]]))[0]


def area(margins: Scores, needs_graph: Flags) -> float | None:
    """How well margins order questions: the area under the ROC curve, 0.5 by chance.

    The share of pairs, of a question that needs the graph and one that does not, in which the first
    has the higher margin; equal margins count half (Hanley and McNeil, 1982). It depends on no
    threshold. None where all questions need the graph, or none does.
    """
    own, needed = np.asarray(margins, np.float64), np.asarray(needs_graph, bool)
    others = np.sort(own[~needed])
    if not len(others) or not needed.any():
        return None
    below = np.searchsorted(others, own[needed], "left")
    up_to = np.searchsorted(others, own[needed], "right")
    return float((below + up_to).mean() / (2 * len(others)))


def area_interval(
    margins: Scores,
    needs_graph: Sequence[bool],
    confidence: float = 0.95,
    num_resamples: int = 2_000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """The bootstrap percentile interval of `area` over questions; None where there is no area.

    A resample without both kinds of question is left out.
    """
    own, needed = np.asarray(margins, np.float64), np.asarray(needs_graph, bool)
    if area(own, needed) is None:
        return None
    drawn = np.random.default_rng(seed).integers(0, len(own), (num_resamples, len(own)))
    found = [area(own[rows], needed[rows]) for rows in drawn]
    tail = (1 - confidence) / 2
    low, high = np.quantile([one for one in found if one is not None], [tail, 1 - tail])
    return float(low), float(high)


def routing_intervals(
    to_graph: Sequence[bool],
    needs_graph: Sequence[bool],
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Bootstrap percentile intervals (Efron, 1979) of the scores, by name.

    Raises:
        ValueError: as for `score_routes`.
    """
    score_routes(to_graph, needs_graph)
    sent, needed = np.asarray(to_graph, bool), np.asarray(needs_graph, bool)
    cells = np.array(
        [(sent & needed).sum(), (sent & ~needed).sum(), (~sent & needed).sum(), 0.0], float
    )
    cells[3] = len(sent) - cells.sum()
    # A resample of questions is a draw of the four kinds of outcome.
    drawn = np.random.default_rng(seed).multinomial(
        len(sent), cells / len(sent), size=num_resamples
    )
    counts = np.stack(
        [drawn[:, 0], drawn[:, :2].sum(1), drawn[:, 0] + drawn[:, 2], drawn.sum(1)], axis=1
    )
    found = _scores(counts)
    tail = (1 - confidence) / 2
    names = ("f1", "precision", "recall", "graph_ratio", "objective")
    return {
        name: tuple(
            float(one) for one in np.quantile([getattr(x, name) for x in found], [tail, 1 - tail])
        )
        for name in names
    }


def compose(
    to_graph: Sequence[bool],
    vanilla: Scores,
    graph: Scores,
    to_rewriter: Sequence[bool] | None = None,
    rewritten: Scores | None = None,
) -> Float[np.ndarray, " questions"]:
    """The score that each question gets by its route, from runs in which all went one way.

    Args:
        to_graph: whether each question is sent to the graph.
        vanilla: its score where all went to vanilla retrieval.
        graph: its score where all went to the graph.
        to_rewriter: whether it is rewritten before it goes to the graph; None: none is. Says
            nothing of a question that stays with vanilla retrieval.
        rewritten: its score where all were rewritten and went to the graph.

    Raises:
        ValueError: unequal lengths, or only one of `to_rewriter` and `rewritten`.
    """
    if (to_rewriter is None) != (rewritten is None):
        raise ValueError("of to_rewriter and rewritten one is missing; give both, or neither")
    parts = [to_graph, vanilla, graph, *([] if rewritten is None else [to_rewriter, rewritten])]
    lengths = [len(part) for part in parts if part is not None]
    if len(set(lengths)) != 1:
        raise ValueError(f"routes and scores of {lengths} questions; expected as many of each")
    best = np.asarray(graph, np.float64)
    if rewritten is not None:
        best = np.where(np.asarray(to_rewriter, bool), np.asarray(rewritten, np.float64), best)
    return np.where(np.asarray(to_graph, bool), best, np.asarray(vanilla, np.float64))


def _scores(counts: np.ndarray) -> list[RoutingScores]:
    """Of rows [hits, sent, needed, questions]."""
    hits, sent, needed, total = counts.astype(float).T

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)

    precision, recall, f1 = share(hits, sent), share(hits, needed), share(2 * hits, sent + needed)
    ratio = share(sent, total)
    return [
        RoutingScores(*map(float, row[:5]), int(row[5]))
        for row in zip(f1, precision, recall, ratio, (f1 + recall) / 2, total, strict=True)
    ]
