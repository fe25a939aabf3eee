import asyncio

import pytest

from reasoning.golden import check_golden
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.decompose import Decomposer, GoldDecomposer, PromptedDecomposer
from triax.records.completions import Completion, Grammar
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question

QUESTION = Question("q", "Who is the mother of the director of Vertigo?")
LINES = "Vertigo | directed by | ?director\n?director | mother | ?mother"


def decompose(answers, *questions, **options):
    completer = ScriptedCompleter(answers)
    decomposer = PromptedDecomposer(completer, **options)
    assert isinstance(decomposer, Decomposer)
    return asyncio.run(decomposer.decompose(list(questions) or [QUESTION])), completer


def shown(reply):
    return [str(query) for query in reply.value]


def test_one_call_a_question():
    replies, completer = decompose([LINES, "A | b | ?"], QUESTION, Question("r", "x"))
    assert shown(replies[0]) == LINES.splitlines()
    assert shown(replies[1]) == ["A | b | ?"]
    assert [one.question_id for one in completer.requests] == ["q", "r"]
    assert {one.stage for one in completer.requests} == {"decompose"}
    assert {one.max_tokens for one in completer.requests} == {256}


@pytest.mark.parametrize(
    "answer",
    [
        f"Triplets:\n{LINES}",
        f"```\n{LINES}\n```",
        "1. Vertigo | directed by | ?director\n2. ?director | mother | ?mother",
        "- Vertigo | directed by | ?director\n- ?director | mother | ?mother",
        f"Sure, here they are:\n\n{LINES}\n\nI hope this helps.",
        f"<think>a | b | c</think>\n{LINES}",
        '[["Vertigo", "directed by", "?director"], ["?director", "mother", "?mother"]]',
    ],
)
def test_forms_that_models_use(answer):
    [reply], completer = decompose([answer])
    assert shown(reply) == LINES.splitlines()
    assert len(completer.requests) == 1


def test_a_number_that_the_question_has_is_a_name():
    [reply], _ = decompose(
        ["1. FC Köln | coached by | ?"], Question("q", "Who coaches 1. FC Köln?")
    )
    assert shown(reply) == ["1. FC Köln | coached by | ?"]


def test_thinking_comes_before_the_triplets():
    grammar = Grammar("regex", "x")
    [reply], completer = decompose(
        [f"Reasoning: first a | b | c.\nTriplets:\n{LINES}"], thinks=True, grammar=grammar
    )
    assert shown(reply) == LINES.splitlines()
    # The constraint has no place for the reasoning.
    assert completer.requests[0].grammar is None
    check_golden("decompose_thinks", completer.requests[0].messages)


def test_the_grammar_goes_with_the_call():
    grammar = Grammar("regex", "x")
    _, completer = decompose([LINES], grammar=grammar)
    assert completer.requests[0].grammar == grammar
    check_golden("decompose", completer.requests[0].messages)


def test_no_more_than_the_limit():
    [reply], _ = decompose(["\n".join(f"A{i} | b | ?" for i in range(9))], max_triplets=3)
    assert len(reply.value) == 3


def test_r26_an_answer_without_a_triplet_is_asked_again():
    [reply], completer = decompose(["I cannot", LINES])
    assert shown(reply) == LINES.splitlines()
    assert reply.usage.calls == len(completer.requests) == 2


@pytest.mark.parametrize("answer", ["", "none", "I cannot", "a, b, c"])
def test_r02_r29_no_triplet_is_no_value(answer):
    [reply], _ = decompose([answer, answer])
    assert reply.value is None
    assert reply.error.startswith("unreadable: no line of the form subject | predicate | object")


def test_r01_the_last_line_of_a_cut_answer_is_left_out():
    class Cut:
        model = "cut"

        async def complete(self, requests):
            return [Completion("Vertigo | directed by | ?d\n?d | moth | ?m", "length")]

    [reply] = asyncio.run(PromptedDecomposer(Cut()).decompose([QUESTION]))
    assert shown(reply) == ["Vertigo | directed by | ?d"]


def test_r03_a_failed_call_fails_its_question_only():
    replies, _ = decompose(["__RAISE__: down", LINES], QUESTION, Question("r", "x"))
    assert (replies[0].value, replies[0].error) == (None, "down")
    assert shown(replies[1]) == LINES.splitlines()


def test_gold():
    triplets = (QueryTriplet.parse("A", "b", "?"),)
    gold = GoldDecomposer()
    assert isinstance(gold, Decomposer)
    questions = [Question("q", "x", gold_query_triplets=triplets), Question("r", "y")]
    known, unknown = asyncio.run(gold.decompose(questions))
    assert (known.value, known.usage.calls) == (triplets, 0)
    assert (unknown.value, unknown.error) == (None, "question r has no gold query triplets")
