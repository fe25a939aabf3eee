import numpy as np

from triax.records.questions import Question
from triax.routing.gold_ranks import rank_gold

DOCUMENTS = ["a", "a", "b", "c"]  # of four chunks
SCORES = {"q one": [0.1, 0.9, 0.5, 0.7], "q two": [0.2, 0.1, 0.2, 0.8]}


def score(groups):
    return np.array([SCORES[text] for (text,) in groups])


QUESTIONS = [
    Question("1", "q one", gold_document_ids=("b", "a")),
    Question("2", "q two", gold_document_ids=("a",)),
    Question("3", "q two", gold_document_ids=("c", "gone")),
]


def test_a_document_is_as_good_as_its_best_chunk():
    done = []
    first, second, third = rank_gold(score, DOCUMENTS, QUESTIONS, tile=2, progress=done.append)
    assert first.ranks == (3.0, 1.0)
    assert second.ranks == (2.5,)  # a and b tie
    assert third.ranks == (1.0, 4.0)  # behind the three documents that there are
    assert done == [2, 3]


def test_no_questions():
    assert rank_gold(score, DOCUMENTS, []) == []
