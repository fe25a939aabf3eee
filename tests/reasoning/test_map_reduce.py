import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning.golden import check_golden
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.models.constraint import json_schema_pattern
from triax.models.token_counter import WordCounter
from triax.reasoning.map_reduce import SCHEMA, MapReduce, Point, read_points
from triax.records.completions import Completion
from triax.records.questions import Question

QUESTION = Question("q", "Who wrote The Leopard?")
# Three words each.
TEXTS = ["Leopard is novel", "Lampedusa wrote it", "Palermo in Sicily"]


def points(*items):
    rows = [{"point": text, "score": score, "reports": list(r)} for text, score, *r in items]
    return json.dumps({"points": rows})


def make(answers, **options):
    completer = ScriptedCompleter(answers)
    return completer, MapReduce(completer, WordCounter(1.0), **options)


def run(map_reduce, questions=(QUESTION,), texts=TEXTS):
    return asyncio.run(map_reduce.answer(list(questions), list(texts)))


def test_batches_are_mapped_and_their_best_points_reduced():
    """Six words a batch: two texts, then one."""
    answers = [
        points(("It is a novel.", 20, 1), ("Nothing.", 0, 1), ("Lampedusa wrote it.", 90, 2, 1)),
        points(("It is set in Sicily.", 55, 1)),
        "Answer: Lampedusa",
    ]
    completer, map_reduce = make(answers, max_batch_tokens=6, max_map_tokens=99, max_tokens=9)
    (found,) = run(map_reduce)
    assert found.reply.value.text == "Lampedusa" and found.num_failed == 0
    assert found.points == (
        Point("Lampedusa wrote it.", 90.0, (1, 0)),
        Point("It is set in Sicily.", 55.0, (2,)),
        Point("It is a novel.", 20.0, (0,)),
    )
    first, second, last = completer.requests
    assert [one.stage for one in completer.requests] == ["map", "map", "reduce"]
    assert {one.question_id for one in completer.requests} == {"q"}
    assert (first.max_tokens, last.max_tokens) == (99, 9)
    assert "Palermo" not in first.messages[-1].content
    assert second.messages[-1].content.startswith("Reports:\n[1] Palermo in Sicily\n\nQuestion:")
    assert found.reply.usage.calls == 3
    check_golden("map", first.messages)
    check_golden("reduce", last.messages)


def test_many_questions_are_asked_together_and_keep_their_own():
    questions = [Question("a", "A?"), Question("b", "B?")]

    def answer(request):
        asked = request.messages[-1].content
        if request.stage == "reduce":
            return "yes" if "for A" in asked else "no"
        return points((f"for {asked.rpartition('Question: ')[2][0]}", 50, 1))

    _, map_reduce = make(answer, max_batch_tokens=3)
    first, second = run(map_reduce, questions)
    assert (first.reply.value.text, second.reply.value.text) == ("yes", "no")
    assert [point.sources for point in first.points] == [(0,), (1,), (2,)]


def test_points_fit_into_their_budget_the_best_first():
    answers = [points(("one two three", 10), ("four five", 30), ("six", 20)), "x"]
    # With its score before it, "four five" has three words and "six" two.
    completer, map_reduce = make(answers, max_point_tokens=5)
    (found,) = run(map_reduce)
    assert [point.text for point in found.points] == ["four five", "six"]
    assert "one two three" not in completer.requests[-1].messages[-1].content


def test_no_point_is_an_abstention_and_costs_no_reduction():
    completer, map_reduce = make([points(("nothing here", 0, 1))])
    (found,) = run(map_reduce)
    assert found.reply.value.text is None and not found.reply.error
    assert found.points == () and len(completer.requests) == 1


def test_nothing_to_read_asks_nothing():
    completer, map_reduce = make([])
    (found,) = run(map_reduce, texts=[])
    assert found.reply.value.text is None and completer.requests == []
    assert run(map_reduce, questions=[]) == []


def test_r03_one_failed_batch_loses_its_points_only():
    answers = ["__RAISE__: down", points(("Lampedusa wrote it.", 80, 1)), points(), "Lampedusa"]
    _, map_reduce = make(answers, max_batch_tokens=3)
    (found,) = run(map_reduce)
    assert found.reply.value.text == "Lampedusa" and found.num_failed == 1
    assert found.points == (Point("Lampedusa wrote it.", 80.0, (1,)),)
    assert found.reply.usage.calls == 4


def test_r29_a_failed_batch_and_no_point_is_no_abstention():
    _, map_reduce = make([points(), "__RAISE__: down", points()], max_batch_tokens=3)
    (found,) = run(map_reduce)
    assert found.reply.value is None
    assert found.reply.error == "1 of 3 batches failed, the others have no point; down"


def test_r29_a_failed_reduction_is_an_error_with_all_costs():
    _, map_reduce = make([points(("x", 5, 1)), "__RAISE__: late"])
    (found,) = run(map_reduce)
    assert found.reply.value is None and found.reply.error == "late"
    assert found.reply.usage.calls == 2


def test_an_unreadable_batch_is_asked_again():
    completer, map_reduce = make(["no JSON", points(("x", 5, 1)), "y"])
    (found,) = run(map_reduce)
    assert found.reply.value.text == "y" and found.reply.usage.calls == 3
    assert "cannot be read" in completer.requests[1].messages[-1].content


def test_an_abstention_of_the_reduction():
    _, map_reduce = make([points(("x", 5, 1)), "unknown"])
    assert run(map_reduce)[0].reply.value.text is None


def test_r08_a_text_longer_than_a_batch_is_cut():
    completer, map_reduce = make([points()], max_batch_tokens=2)
    run(map_reduce, texts=["one two three four"])
    assert completer.requests[0].messages[-1].content.startswith("Reports:\n[1] one two\n")


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 9))
def test_batches_hold_every_text_once_and_no_more_than_fits(sizes, limit):
    completer, map_reduce = make(lambda request: points(), max_batch_tokens=limit)
    texts = [" ".join([f"w{n}"] * size) for n, size in enumerate(sizes)]
    run(map_reduce, texts=texts)
    shown = [
        request.messages[-1].content.partition("Reports:\n")[2].rpartition("\n\nQuestion:")[0]
        for request in completer.requests
    ]
    words = [[word for word in text.split() if word.startswith("w")] for text in shown]
    assert all(len(batch) <= limit for batch in words)
    assert [word for batch in words for word in batch] == [
        word for text in texts for word in text.split()[:limit]
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (points(("a b", 50, 2, 1)), [Point("a b", 50.0, (7, 4))]),
        ('{"points": []}', []),
        (
            f"<think>{points(('no', 9, 1))}</think>{points(('yes', 8, 1))}",
            [Point("yes", 8.0, (4,))],
        ),
        # GraphRAG's own key; texts as scores; numbers out of range; reports that are not there.
        ('{"points": [{"description": "a", "score": "60"}]}', [Point("a", 60.0)]),
        (points(("a", 900, 0, 3, 2, 2), ("b", -4, -1)), [Point("a", 100.0, (7,)), Point("b", 0.0)]),
        ('{"points": [{"point": "a", "score": "high", "reports": "1"}]}', [Point("a", 0.0)]),
        ('{"points": ["a", 3, null, {"score": 5}, {"point": " ", "score": 5}]}', []),
        # An answer that was cut keeps what is whole.
        (
            '{"points": [{"point": "a", "score": 5, "reports": [1]}, {"point": "b", "sco',
            [Point("a", 5.0, (4,)), Point("b", 0.0)],
        ),
    ],
)
def test_points_are_read_leniently(text, wanted):
    assert list(read_points(Completion(text), [4, 7])) == wanted


@pytest.mark.parametrize("text", ["", "none", "[]", '{"points": "x"}', "<think>never ends"])
def test_what_has_no_list_of_points_is_unreadable(text):
    with pytest.raises(Unreadable, match="points"):
        read_points(Completion(text), [0])


def test_the_schema_is_one_that_a_local_model_can_be_held_to():
    assert json_schema_pattern(json.dumps(SCHEMA))
