import asyncio

from triax.pipelines.charged import AskingFilter, Charged
from triax.records.questions import Question
from triax.records.traces import Trace, Usage
from triax.records.verbs import Pipeline


class Answers:
    name = "answers"

    async def answer(self, questions):
        return [Trace(one.id, one.text, self.name, "x", usage=Usage(calls=1)) for one in questions]


class Spends:
    """Has spent what it was told to on a group, until that is asked for."""

    def __init__(self, spent):
        self.ids, self.usages = {}, dict(spent)

    def name_questions(self, ids):
        self.ids = dict(ids)

    def spent(self, group):
        return self.usages.pop(tuple(group), Usage())


def test_each_trace_gets_what_its_search_has_cost():
    spends = Spends({("one",): Usage(2, 1, 30, 4, 0.5), ("other words",): Usage(calls=1)})
    assert isinstance(spends, AskingFilter)
    pipeline = Charged(Answers(), spends)
    assert isinstance(pipeline, Pipeline) and pipeline.name == "answers"
    questions = [
        Question("q1", "one"),
        Question("q2", "two", search="other words"),
        Question("q3", "one"),
    ]
    traces = asyncio.run(pipeline.answer(questions))
    # The ids are told before the search; of two that are equal the first pays.
    assert spends.ids == {"one": "q3", "other words": "q2"}
    assert [one.question_id for one in traces] == ["q1", "q2", "q3"]
    assert [one.usage for one in traces] == [
        Usage(3, 1, 30, 4, 0.5),
        Usage(calls=2),
        Usage(calls=1),
    ]
