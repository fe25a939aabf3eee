"""Tests for triax.retrieval.gold_steps."""

import pytest

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question, Step
from triax.retrieval.gold_steps import filled_steps, search_steps

STEPS = (
    Step("Journal of Psychotherapy Integration >> publisher", "American Psychological Association"),
    Step("Who was the first president of #1 ?", "G. Stanley Hall"),
    Step("Where did #2, who led #1, study?", "Harvard"),
)


def question(steps=STEPS) -> Question:
    return Question("q", "Where did the first president of the publisher study?", steps=steps)


def test_references_are_filled_with_earlier_answers():
    assert filled_steps(question()) == (
        "Journal of Psychotherapy Integration publisher",
        "Who was the first president of American Psychological Association ?",
        "Where did G. Stanley Hall, who led American Psychological Association, study?",
    )


@pytest.mark.parametrize("text", ["of #1", "of #2", "of #0"])
def test_a_reference_to_a_step_not_before_it_is_refused(text):
    with pytest.raises(ValueError, match="step 1 refers to"):
        filled_steps(question((Step(text, "x"),)))


def test_a_question_without_steps_is_refused():
    with pytest.raises(ValueError, match="no gold steps"):
        filled_steps(question(()))


class Fixed:
    """Gives each query the chunks that a table names, best first."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def search(self, groups, num_chunks):
        self.asked += groups
        return [
            Evidence(tuple(ScoredChunk(Chunk(i, i, i), 1.0) for i in self.table[group[0]]))
            for group in groups
        ]


def test_ranks_are_merged_in_turn_without_repeats():
    steps = (Step("one", "x"), Step("two", "y"))
    fixed = Fixed({"one": "abc", "two": "adef"})
    [evidence] = search_steps([question(steps)], fixed, 5)
    # rank 1: a (both); rank 2: b, d; rank 3: c, e; f is sixth.
    assert [found.chunk.id for found in evidence.chunks] == ["a", "b", "d", "c", "e"]
    scores = [found.score for found in evidence.chunks]
    assert scores == sorted(scores, reverse=True)


def test_all_questions_are_searched_in_one_call_and_keep_their_own_steps():
    fixed = Fixed({"one": "a", "two": "b", "three": "c"})
    first = question((Step("one", "x"), Step("two", "y")))
    second = question((Step("three", "z"),))
    found = search_steps([first, second], fixed, 5)
    assert fixed.asked == [["one"], ["two"], ["three"]]
    assert [[c.chunk.id for c in one.chunks] for one in found] == [["a", "b"], ["c"]]
