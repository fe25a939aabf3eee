"""What a first search tells about itself: the shape of its scores, and what a reader sees in it.

Source: RASER (Li et al., 2026, arXiv 2606.02488) decides from one round of retrieval and its draft
answer whether more is needed, without another call of a language model. Here the draft is that of
a trained reader, whose probabilities take the place of features of the draft's words.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from triax.records.readings import ReadRequest, shown_passage
from triax.records.verbs import PassageReader, Retriever

Signal = Literal["top", "margin", "concentration", "p_here", "p_right"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
# These come from a reader; the others from the scores alone.
READ: tuple[Signal, ...] = ("p_here", "p_right")


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """Searches once and measures; of every signal, more means that the search rather suffices.

    Attributes:
        retriever: the vanilla one.
        num_chunks: k, the chunks that are looked at.
        reader: gives `p_here` and `p_right`; None leaves these two out.
        temperature: of the softmax over scores that `concentration` is taken from. 0.05 is that
            of encoders which were trained with cosines times 20.
    """

    retriever: Retriever
    num_chunks: int = 5
    reader: PassageReader | None = None
    temperature: float = 0.05

    @property
    def names(self) -> tuple[Signal, ...]:
        """The signals that this search gives, in order of the columns of `look`."""
        return SIGNALS if self.reader else tuple(one for one in SIGNALS if one not in READ)

    def look(
        self,
        queries: Sequence[str],
        *,
        tile: int = 64,
        progress: Callable[[int], None] | None = None,
    ) -> Float[np.ndarray, "queries signals"]:
        """The signals of each query.

        Where nothing is found, or the reader sees no answer, a signal is 0.

        Args:
            queries: questions as a retriever is asked them.
            tile: queries that are searched and read together.
            progress: is called with the number of queries done.
        """
        rows = []
        for start in range(0, len(queries), tile):
            part = queries[start : start + tile]
            found = self.retriever.search([[query] for query in part], self.num_chunks)
            shapes = [
                score_shape([one.score for one in evidence.chunks], self.temperature)
                for evidence in found
            ]
            if self.reader:
                requests = [
                    ReadRequest(
                        query,
                        tuple(shown_passage(x.chunk.title, x.chunk.text) for x in evidence.chunks),
                    )
                    for query, evidence in zip(part, found, strict=True)
                ]
                readings = self.reader.read(requests, allows_verdicts=True)
                shapes = [
                    (*shape, one.p_here, one.p_right) if one else (*shape, 0.0, 0.0)
                    for shape, one in zip(shapes, readings, strict=True)
                ]
            rows += shapes
            if progress is not None:
                progress(start + len(part))
        return np.array(rows, np.float64).reshape(len(rows), len(self.names))


def score_shape(scores: Sequence[float], temperature: float = 0.05) -> tuple[float, float, float]:
    """Top score, its lead over the second, and how much of the softmax's mass stands together.

    The last is 1 - H / log n, with H the entropy over the n scores: 0 if all are equal, 1 if one
    stands alone. A missing second score counts as 0.

    Args:
        scores: of the chunks that were found, in any order.
        temperature: divides the scores before the softmax.

    >>> score_shape([0.5, 0.5])
    (0.5, 0.0, 0.0)
    """
    if not len(scores):
        return 0.0, 0.0, 0.0
    ranked = np.sort(np.asarray(scores, np.float64))[::-1]
    top = float(ranked[0])
    if len(ranked) == 1:
        return top, top, 1.0
    weights = np.exp((ranked - top) / temperature)
    shares = weights / weights.sum()
    entropy = -sum(share * math.log(share) for share in shares.tolist() if share > 0)
    # An entropy of equal shares may come out above log n by rounding.
    return top, top - float(ranked[1]), max(0.0, 1 - entropy / math.log(len(ranked)))
