"""A gate behind the first search: vanilla if what it found looks enough, else the graph.

Source: after RASER-2 (Li et al., 2026, arXiv 2606.02488), which stops after one round of retrieval
or escalates. `RetrievalGate` compares one signal with a threshold and needs no training;
`SearchReader` is their classifier, gradient boosting over all signals.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from triax.records.questions import Question
from triax.records.routes import RouterExample, Routing
from triax.records.verbs import Completer, PassageReader, Retriever
from triax.routing.first_search import READ, SIGNALS, FirstSearch, Signal
from triax.routing.fitted import fit_sides, side_probabilities
from triax.scoring.thresholds import Selection, best_threshold, cuts, sweep_thresholds

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RetrievalGate:
    """The graph for questions of which the signal stays below the threshold.

    The vanilla pipeline searches once more for those that stay with it: a router hands on no
    evidence. A signal of the reader is given as `p_vanilla`. The gate asks no completer, and takes
    one so that it can stand wherever a router does that asks one.

    Attributes:
        retriever: what is searched once.
        signal: what is compared; see `triax.routing.first_search`.
        threshold: in units of the signal.
        num_chunks: k of the first search.
        reader: needed for `p_here` and `p_right` only.
    """

    retriever: Retriever
    signal: Signal = "margin"
    threshold: float = 0.05
    num_chunks: int = 5
    reader: PassageReader | None = None
    completer: Completer | None = None
    name: str = "gated"

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"signal is {self.signal!r}; expected one of {list(SIGNALS)}")
        if self.signal in READ and self.reader is None:
            raise ValueError(
                f"signal {self.signal!r} is a reader's, and there is none; give a reader "
                "(router=gated_reading has one), or take a signal of the scores: top, margin, "
                "concentration"
            )

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """Searches for all questions at once."""
        found = await asyncio.to_thread(self.sufficiency, [one.searched for one in questions])
        return [
            Routing(
                "graph" if value < self.threshold else "vanilla",
                value if self.signal in READ else None,
            )
            for value in found.tolist()
        ]

    def sufficiency(
        self, queries: Sequence[str], progress: Progress | None = None
    ) -> Float[np.ndarray, " queries"]:
        """The gate's signal for each query: the more, the rather the first search suffices."""
        reader = self.reader if self.signal in READ else None
        search = FirstSearch(self.retriever, self.num_chunks, reader)
        return search.look(queries, progress=progress)[:, search.names.index(self.signal)]


def fit_gate(
    gate: RetrievalGate,
    examples: Sequence[RouterExample],
    select: Selection = Selection(),
    progress: Progress | None = None,
) -> RetrievalGate:
    """The same gate with the threshold that does best on these examples.

    Of equally good ones that which sends fewest to the graph.

    Raises:
        ValueError: there are no examples.
    """
    found = gate.sufficiency([one.question for one in examples], progress)
    rows = sweep_thresholds(
        found, np.zeros(len(found)), [one.needs_graph for one in examples], cuts(-found)
    )
    return replace(gate, threshold=-best_threshold(rows, select).threshold)


@dataclass
class SearchReader:
    """Gradient boosting over the signals of a first search, one classifier for each side.

    Stands where a trained router's reader does. Needs scikit-learn (`pip install
    'triax[controls]'`). Classes are weighted by their counts, as the trained router's sampler does.
    """

    search: FirstSearch
    config: Mapping[str, Any] = field(default_factory=lambda: {"threshold": 0.0})
    _sides: Any = field(default=None, repr=False)

    def fit(
        self,
        train: Sequence[RouterExample],
        validation: Sequence[RouterExample],
        select: Selection = Selection(),
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "SearchReader":
        """Learns from `train` and chooses the threshold on `validation`.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed; the message says how.
        """
        try:
            from sklearn.base import clone
            from sklearn.ensemble import GradientBoostingClassifier
            from sklearn.utils.class_weight import compute_sample_weight
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "the control over a first search needs scikit-learn; install it with pip install "
                "'triax[controls]'"
            ) from error
        rows = self.search.look([one.question for one in train], progress=progress)
        model = GradientBoostingClassifier(random_state=seed)
        self._sides = fit_sides(
            train,
            lambda targets: clone(model).fit(
                rows, targets, sample_weight=compute_sample_weight("balanced", targets)
            ),
        )
        p = self.read([one.question for one in validation])
        found = sweep_thresholds(p[:, 0], p[:, 1], [one.needs_graph for one in validation])
        self.config = {"threshold": best_threshold(found, select).threshold}
        return self

    def read(self, questions: Sequence[str]) -> Float[np.ndarray, "questions 2"]:
        """Probabilities that vanilla retrieval, and that the graph, suffices."""
        if self._sides is None:
            raise RuntimeError("the control over a first search is not fitted; call fit first")
        return side_probabilities(self._sides, self.search.look(questions))
