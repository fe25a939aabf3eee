import asyncio

import pytest

from reasoning.golden import check_golden
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.context import Budget
from triax.reasoning.synthesize import (
    Ending,
    PromptedReader,
    PromptedSynthesizer,
    Synthesizer,
    read_short,
)
from triax.records.completions import Completion, Grammar
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import Resolved, State
from triax.records.triplets import Triplet

QUESTION = Question("q", "Where was the director of Vertigo born?")
STATE = State(
    (Resolved(Triplet("Vertigo", "directed by", "Hitchcock"), ("a",), 1),),
    (QueryTriplet.parse("Hitchcock", "born in", "?place"),),
    (QueryTriplet.parse("?x", "y", "?z"),),
)
EVIDENCE = Evidence(
    (ScoredChunk(Chunk("a", "a", "Vertigo is a film by Hitchcock.", "Vertigo"), 1.0),)
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Palermo", "Palermo"),
        ("Answer: Palermo", "Palermo"),
        ("answer:Palermo", "Palermo"),
        ("**Answer:** Palermo", "Palermo"),
        ("**Answer: Palermo**", "Palermo"),
        ("Final answer: Palermo", "Palermo"),
        ("The final answer is: Palermo", "Palermo"),
        ("The answer is Palermo.", "Palermo."),
        ("Let me see.\nThe answer is **Palermo**", "Palermo"),
        ("Answer: Rome? No.\nAnswer: Palermo", "Palermo"),
        ("Answer:\n\nPalermo\nIt is in Sicily.", "Palermo"),
        ("Palermo\n\nExplanation: it is", "Palermo"),
        ('"Palermo"', "Palermo"),
        ("<think>\nMaybe Rome.\n</think>\n\nPalermo", "Palermo"),
        ('The "Boss"', 'The "Boss"'),
        ("The question whether the answer is yes", "The question whether the answer is yes"),
        ("yes", "yes"),
        ("42", "42"),
        ("no", "no"),
    ],
)
def test_short_answers(text, answer):
    assert read_short(Completion(text)).text == answer


@pytest.mark.parametrize(
    "text",
    ["unknown", "Unknown.", "Answer: unknown", "I don\u2019t know", "The answer is unknown."],
)
def test_r17_abstention_is_a_value(text):
    assert read_short(Completion(text)).text is None


@pytest.mark.parametrize("text", ["", " \n", "Answer:", "**", "<think>Let me think", None])
def test_r26_nothing_is_unreadable(text):
    with pytest.raises(Unreadable, match="an empty answer"):
        read_short(Completion(text))


def synthesize(answers, *items, **options):
    completer = ScriptedCompleter(answers)
    asker = PromptedSynthesizer(completer, **options)
    assert isinstance(asker, Synthesizer)
    return asyncio.run(asker.synthesize(list(items))), completer


def test_open_searchable_triplets_stand_beside_the_resolved():
    [reply], completer = synthesize(["Leytonstone"], Ending(QUESTION, (), STATE, EVIDENCE))
    assert reply.value.text == "Leytonstone"
    [request] = completer.requests
    assert request.messages[-1].content == (
        "Facts:\nVertigo | directed by | Hitchcock\nHitchcock | born in | ?place\n\n"
        "Question: Where was the director of Vertigo born?"
    )
    assert (request.stage, request.question_id, request.max_tokens) == ("synthesize", "q", 24)
    check_golden("synthesize", request.messages)


def test_without_facts_the_question_stands_alone():
    _, completer = synthesize(["x"], Ending(QUESTION, (), State(), Evidence()))
    assert completer.requests[0].messages[-1].content == f"Question: {QUESTION.text}"


def test_the_options_go_with_the_call():
    grammar = Grammar("regex", "x")
    _, completer = synthesize(
        ["x"], Ending(QUESTION, (), STATE, EVIDENCE), grammar=grammar, max_tokens=7
    )
    assert (completer.requests[0].grammar, completer.requests[0].max_tokens) == (grammar, 7)


def read(answers, *items, **options):
    completer = ScriptedCompleter(answers)
    return asyncio.run(PromptedReader(completer, **options).read(list(items))), completer


def test_reading_passages():
    [reply], completer = read(["Hitchcock"], (QUESTION, EVIDENCE))
    assert reply.value.text == "Hitchcock"
    assert completer.requests[0].stage == "read"
    check_golden("read_passages", completer.requests[0].messages)


def test_a_closed_book_has_examples_without_passages():
    _, completer = read(["x", "y"], (QUESTION, Evidence()), (QUESTION, EVIDENCE))
    closed, opened = (request.messages for request in completer.requests)
    check_golden("read_closed_book", closed)
    assert "Passages:" in opened[1].content


def test_the_budget_holds():
    _, completer = read(["x"], (QUESTION, EVIDENCE), budget=Budget(max_words_per_chunk=2))
    assert (
        completer.requests[0]
        .messages[-1]
        .content.startswith("Passages:\n[1] Vertigo Vertigo \u2026\n\nQuestion:")
    )


def test_r26_an_empty_answer_is_asked_again():
    [reply], completer = read(["", "Hitchcock"], (QUESTION, EVIDENCE))
    assert (reply.value.text, reply.usage.calls) == ("Hitchcock", 2)


def test_r29_a_failed_call_has_no_value():
    [reply], _ = read(["__RAISE__: down"], (QUESTION, EVIDENCE))
    assert (reply.value, reply.error) == (None, "down")
