"""Controls that are fitted to labels: counts, types, and TF-IDF with logistic regression.

On the usual labels of hop count, a threshold on the number of words does as well as a fine-tuned
encoder; a learnt router is worth its weights only above these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from triax.records.routes import RouterExample
from triax.routing.rules import CountRouter, KindRouter
from triax.scoring.routing import score_routes
from triax.scoring.thresholds import Selection, best_threshold, sweep_thresholds


def fit_count(
    count: Callable[[str], int],
    examples: Sequence[RouterExample],
    select: Selection = Selection(),
    name: str = "count",
) -> CountRouter:
    """The router "graph from so many on" whose least count does best on these examples.

    Of equally good ones the highest count, which sends fewest to the graph.

    Raises:
        ValueError: there are no examples.
    """
    counts = [count(one.question) for one in examples]
    needs = [one.needs_graph for one in examples]
    if not counts:
        raise ValueError("no examples to fit a count to")

    def worth(least: int) -> tuple[Any, ...]:
        return *select.worth(score_routes([found >= least for found in counts], needs)), least

    return CountRouter(count, max(range(max(counts) + 2), key=worth), name)


def fit_kinds(examples: Sequence[RouterExample], select: Selection = Selection()) -> KindRouter:
    """The router by question type that does best on these examples.

    Types go to the graph in order of their share of questions that need it, as many as do best; of
    equally good choices the one that sends the fewest types.

    Raises:
        ValueError: there are no examples.
    """
    if not examples:
        raise ValueError("no examples to fit types to")
    needs: dict[str, list[bool]] = {}
    for one in examples:
        needs.setdefault(one.kind, []).append(one.needs_graph)
    kinds = sorted(needs, key=lambda kind: (-sum(needs[kind]) / len(needs[kind]), kind))
    gold = [one.needs_graph for one in examples]

    def worth(num_kinds: int) -> tuple[Any, ...]:
        sent = set(kinds[:num_kinds])
        return *select.worth(score_routes([one.kind in sent for one in examples], gold)), -num_kinds

    best = max(range(len(kinds) + 1), key=worth)
    return KindRouter(frozenset(kinds[:best]))


@dataclass
class TfidfReader:
    """Logistic regressions on TF-IDF of words and pairs of words, one for each side.

    Needs scikit-learn (`pip install 'triax[controls]'`). Classes are weighted by their counts, as
    the trained router's sampler does.
    """

    config: Mapping[str, Any] = field(default_factory=lambda: {"threshold": 0.0})
    _parts: Any = field(default=None, repr=False)

    def fit(
        self,
        train: Sequence[RouterExample],
        validation: Sequence[RouterExample],
        select: Selection = Selection(),
        seed: int = 0,
    ) -> "TfidfReader":
        """Learns from `train` and chooses the threshold on `validation`.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed; the message says how.
        """
        words, make = tfidf_logistic(class_weight="balanced", random_state=seed)
        rows = words.fit_transform([one.question for one in train])
        sides = fit_sides(train, lambda targets: make().fit(rows, targets))
        self._parts = (words, sides)
        p = self.read([one.question for one in validation])
        found = sweep_thresholds(p[:, 0], p[:, 1], [one.needs_graph for one in validation])
        self.config = {"threshold": best_threshold(found, select).threshold}
        return self

    def read(self, questions: Sequence[str]) -> Float[np.ndarray, "questions 2"]:
        """Probabilities that vanilla retrieval, and that the graph, suffices."""
        if self._parts is None:
            raise RuntimeError("the TF-IDF control is not fitted; call fit first")
        words, sides = self._parts
        rows = words.transform(list(questions))
        return side_probabilities(sides, rows)


def tfidf_logistic(**settings: Any) -> tuple[Any, Callable[..., Any]]:
    """A vectoriser of words and pairs of words, and a maker of logistic regressions over it.

    Args:
        settings: of every regression; the maker takes further ones.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed; the message says how.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the TF-IDF control needs scikit-learn; install it with pip install 'triax[controls]'"
        ) from error
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    return words, partial(LogisticRegression, max_iter=1000, **settings)


def fit_sides(
    train: Sequence[RouterExample], fit: Callable[[list[bool]], Any]
) -> list[float | Any]:
    """A classifier of "suffices" for vanilla and for the graph, by `fit` of the labels.

    A side that always suffices, or never, has that as a number in its place.
    """
    labels = [[getattr(one, side) for one in train] for side in ("vanilla", "graph")]
    return [float(found[0]) if len(set(found)) == 1 else fit(found) for found in labels]


def side_probabilities(sides: Sequence[Any], rows: Any) -> Float[np.ndarray, "rows 2"]:
    """Probabilities that each of `fit_sides`'s two suffices, for rows of features."""
    columns = [
        np.full(rows.shape[0], side) if isinstance(side, float) else side.predict_proba(rows)[:, 1]
        for side in sides
    ]
    return np.stack(columns, axis=1)
