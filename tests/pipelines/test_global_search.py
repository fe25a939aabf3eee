import asyncio
import json
import random

from triax.indexing.reports import CommunityReports, Report
from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter
from triax.pipelines.global_search import GlobalSearch
from triax.reasoning.map_reduce import MapReduce
from triax.records.questions import Question
from triax.records.verbs import Pipeline


def report(number, level=0):
    chunks = (f"c{number}", f"d{number}", "shared")
    return Report(f"r{number}", level, "", f"T{number}", f"says{number}", 1.0, (), (), chunks)


REPORTS = CommunityReports(tuple(report(n, level=n % 4) for n in range(8)))
QUESTION = Question("q", "Who?")


def make(answers, reports=REPORTS, max_batch_tokens=99, **options):
    completer = ScriptedCompleter(answers)
    map_reduce = MapReduce(completer, WordCounter(1.0), max_batch_tokens=max_batch_tokens)
    return completer, GlobalSearch(reports, map_reduce, **options)


def run(pipeline, *questions):
    return asyncio.run(pipeline.answer(list(questions or [QUESTION])))


def point(text, score, *reports):
    return {"point": text, "score": score, "reports": list(reports)}


def points(*found):
    return json.dumps({"points": found})


def shown(request):
    """The numbers of the reports in a call of the map, in their order."""
    return [
        int(line.partition("] T")[2])
        for line in request.messages[-1].content.splitlines()
        if line.startswith("[")
    ]


def test_the_reports_of_the_widest_levels_are_read_in_a_seeded_order():
    completer, pipeline = make([points(), points()])
    assert isinstance(pipeline, Pipeline)
    run(pipeline)
    order = [0, 1, 2, 4, 5, 6]  # 3 and 7 are of level 3
    random.Random(86).shuffle(order)
    assert shown(completer.requests[0]) == order != sorted(order)
    other, pipeline = make([points()], seed=3, max_level=0)
    run(pipeline)
    assert sorted(shown(other.requests[0])) == [0, 4]


def test_an_answer_names_the_chunks_of_the_reports_that_its_points_cite():
    order = [0, 1, 2, 4, 5, 6]
    random.Random(86).shuffle(order)
    answers = [points(point("weak", 10, 1), point("strong", 90, 3, 2)), "Answer: Ada"]
    _, pipeline = make(answers, num_chunks=6)
    (trace,) = run(pipeline)
    first, second, third = order[2], order[1], order[0]
    assert trace.chunk_ids == (
        f"c{first}",
        f"d{first}",
        "shared",
        f"c{second}",
        f"d{second}",
        f"c{third}",
    )
    assert (trace.answer, trace.error, trace.stop_reason) == ("Ada", None, "reduced")
    assert trace.context == ("[90] strong", "[10] weak")
    assert (trace.pipeline, trace.question_id, trace.usage.calls) == ("graphrag_global", "q", 2)


def test_r29_no_point_is_an_abstention_and_a_failure_an_error():
    _, pipeline = make([points()])
    (trace,) = run(pipeline)
    assert (trace.answer, trace.error, trace.stop_reason) == (None, None, "no point")
    _, pipeline = make(["__RAISE__: down"])
    (trace,) = run(pipeline)
    assert trace.answer is None and trace.stop_reason == "error"
    assert "global search: 1 of 1 batches failed" in trace.error and "down" in trace.error


def test_r03_one_failed_batch_is_told():
    """Two words a report, so three reports a batch and two batches."""
    answers = ["__RAISE__: down", points(point("Ada", 5, 1)), "Ada"]
    completer, pipeline = make(answers, max_batch_tokens=6)
    (trace,) = run(pipeline)
    assert (trace.answer, trace.stop_reason) == ("Ada", "reduced, some batches failed")
    # Report 1 of the second batch.
    assert trace.chunk_ids[0] == f"c{shown(completer.requests[1])[0]}"


def test_no_report_and_no_question():
    completer, pipeline = make([], reports=CommunityReports(()))
    (trace,) = run(pipeline)
    assert (trace.answer, trace.error, trace.stop_reason) == (None, None, "no point")
    assert asyncio.run(pipeline.answer([])) == [] and completer.requests == []
