import math

import numpy as np
import pytest

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.readings import Reading
from triax.routing.first_search import FirstSearch, score_shape


class Finds:
    """Gives prepared scores, one chunk each, and keeps what it was asked."""

    def __init__(self, scores):
        self.scores, self.asked = scores, []

    def search(self, groups, num_chunks):
        self.asked.append((len(groups), num_chunks))
        return [
            Evidence(
                tuple(
                    ScoredChunk(Chunk(f"c{n}", "d", f"text {n}", "Title"), score)
                    for n, score in enumerate(self.scores[text][:num_chunks])
                )
            )
            for (text,) in groups
        ]


class Reads:
    """Sees an answer where the query says so."""

    name = "reads"

    def __init__(self):
        self.passages = []

    def read(self, requests, *, allows_verdicts=False):
        assert allows_verdicts
        self.passages += [one.passages for one in requests]
        return [
            Reading("x", 0, 0, 1, 1.0, 0.25, 0.75) if one.query == "seen" else None
            for one in requests
        ]


SCORES = {"seen": [0.9, 0.7, 0.6], "flat": [0.4, 0.4], "lost": []}


def test_the_shape_by_hand():
    """Scores 0.1 ln 4 apart at temperature 0.1 have softmax 4:1, so entropy .5004 of ln 2."""
    top, margin, concentration = score_shape([0.5, 0.5 + 0.1 * math.log(4)], temperature=0.1)
    assert (top, margin) == pytest.approx((0.638629, 0.138629), abs=1e-6)
    assert concentration == pytest.approx(1 - 0.500402 / 0.693147, abs=1e-5)


def test_the_order_of_scores_and_a_common_shift_change_no_shape():
    assert score_shape([0.1, 0.7, 0.3]) == score_shape([0.7, 0.3, 0.1])
    assert score_shape([2.1, 2.7])[1:] == pytest.approx(score_shape([0.1, 0.7])[1:])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([], (0.0, 0.0, 0.0)), ([0.3], (0.3, 0.3, 1.0)), ([0.2] * 5, (0.2, 0.0, 0.0))],
)
def test_shapes_at_the_edge(scores, expected):
    assert score_shape(scores) == expected


def test_far_scores_overflow_nothing():
    assert score_shape([1000.0, -1000.0]) == (1000.0, 2000.0, 1.0)


def test_signals_of_scores_and_of_a_reader():
    search, done = FirstSearch(Finds(SCORES), 2, Reads()), []
    assert search.names == ("top", "margin", "concentration", "p_here", "p_right")
    found = search.look(["seen", "flat", "lost"], tile=2, progress=done.append)
    assert found[:, [0, 1, 3, 4]].tolist() == [
        [0.9, pytest.approx(0.2), 0.75, 0.25],
        [0.4, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    assert search.retriever.asked == [(2, 2), (1, 2)] and done == [2, 3]
    # Only the two best of the first question, as a reader sees passages.
    assert search.reader.passages[0] == ("Title. text 0", "Title. text 1")


def test_without_a_reader_nothing_is_read():
    search = FirstSearch(Finds(SCORES), 2)
    assert search.names == ("top", "margin", "concentration")
    assert search.look(["flat"]).tolist() == [[0.4, 0.0, 0.0]]
    assert search.look([]).shape == (0, 3)
    assert search.look([]).dtype == np.float64
