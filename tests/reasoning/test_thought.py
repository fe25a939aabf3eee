"""The next sentence: what is asked, which sentence of an answer stays, what it leads to."""

import asyncio

import pytest

from reasoning.golden import check_golden
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.context import Budget
from triax.reasoning.synthesize import Short
from triax.reasoning.thought import (
    PromptedThinker,
    Thinker,
    Thought,
    Thread,
    next_query,
    read_conclusion,
)
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question

QUESTION = Question("q", "Where was the director of Vertigo born?")
CHUNK = Chunk("v", "v", "Vertigo is a film by Hitchcock, made in 1958.", "Vertigo")
EVIDENCE = Evidence((ScoredChunk(CHUNK, 0.5),))
FACT = Thought("Vertigo was directed by Hitchcock", "Vertigo was directed by Hitchcock")


def think(answers, *thoughts, evidence=EVIDENCE, **options):
    completer = ScriptedCompleter(answers if isinstance(answers, list) else [answers])
    thinker = PromptedThinker(completer, **options)
    assert isinstance(thinker, Thinker)
    [reply] = asyncio.run(thinker.think([Thread(QUESTION, evidence, thoughts)]))
    return reply, completer


def test_the_prompt():
    reply, completer = think("Hitchcock was born in Leytonstone.", FACT, Thought(""))
    text = "Hitchcock was born in Leytonstone"
    assert reply.value == Thought(text, query=text)
    [request] = completer.requests
    assert (request.stage, request.question_id, request.max_tokens) == ("think", "q", 300)
    check_golden("think", request.messages)


def test_without_passages_and_thoughts_the_question_stands_alone():
    _, completer = think("x", evidence=Evidence())
    assert completer.requests[0].messages[-1].content == (
        "Question: Where was the director of Vertigo born?\n\nNext sentence:"
    )


def test_the_budget_and_the_tokens_are_settings():
    _, completer = think("x", budget=Budget(max_words_per_chunk=2), max_tokens=7)
    assert "[1] Vertigo Vertigo \u2026\n" in completer.requests[0].messages[-1].content
    assert completer.requests[0].max_tokens == 7


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Dr. No is by T. Young, of 1962. He was born in 1915.", "Dr. No is by T. Young, of 1962"),
        ("It cost 2.5 million. It won.", "It cost 2.5 million"),
        ("One line\nAnother line", "One line"),
        ("Next sentence: The film is old.", "The film is old"),
        ("**Thought 2:** The film is old. So it is.", "The film is old"),
        ("- 1. The film is old.", "The film is old"),
        ("Is it old? Yes.", "Is it old?"),
        ("*Vertigo* is **very** old. 2*3*4 is 24.", "Vertigo is very old"),
        ("<think>Hm. Well.</think>\nThe film is old.", "The film is old"),
        ("Фильм снял А. Тарковский. Он родился в 1932.", "Фильм снял А. Тарковский"),
    ],
)
def test_the_first_sentence_stays(said, kept):
    reply, _ = think(said)
    assert reply.value == Thought(kept, query=kept)


def test_what_was_thought_before_is_no_new_sentence():
    """A chat model may tell its thoughts from the start."""
    told = "Vertigo was directed by  HITCHCOCK. He was born in Leytonstone. So it is that."
    assert think(told, FACT)[0].value.text == "He was born in Leytonstone"
    assert think("Vertigo was directed by Hitchcock.", FACT)[0].value == Thought("")


@pytest.mark.parametrize("said", ["", " \n", "...", "***"])
def test_r26_nothing_said_is_an_empty_thought(said):
    reply, completer = think(said)
    assert (reply.value, len(completer.requests)) == (Thought(""), 1)


def test_r26_thinking_that_was_cut_is_asked_again_once():
    reply, _ = think(["<think>Well, the film", "The film is old."])
    assert (reply.value.text, reply.usage.calls) == ("The film is old", 2)
    reply, _ = think(["<think>Well", "<think>Well"])
    assert (reply.value, reply.is_failed) == (None, False)
    assert reply.error == "unreadable: there is nothing behind the thinking; expected one sentence"


def test_r03_a_failed_call_has_no_value():
    reply, _ = think("__RAISE__: down")
    assert (reply.value, reply.is_failed, reply.error) == (None, True, "down")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("So the answer is: Palermo.", "Palermo"),
        ("Thus the answer is Palermo", "Palermo"),
        ("So the answer is:\n**Palermo**", "Palermo"),
        ("Answer: J. R. R. Tolkien. He wrote it.", "J. R. R. Tolkien"),
        ('The final answer is "13 August 1899".', "13 August 1899"),
    ],
)
def test_a_conclusion_ends_the_chain_and_is_not_searched(said, answer):
    thought = think(said)[0].value
    assert (thought.answer, thought.is_last, thought.query) == (Short(answer), True, "")


def test_a_conclusion_may_be_an_abstention():
    assert think("So the answer is: unknown.")[0].value.answer == Short(None)


@pytest.mark.parametrize("said", ["So the answer is", "The answers are many", "He answered: no"])
def test_no_conclusion(said):
    thought = think(said)[0].value
    assert (thought.answer, thought.is_last) == (None, False)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Washington, D.C.", "Washington, D.C."),
        ("it was A. Ivanov B.", "it was A. Ivanov B."),
        ("yes.", "yes"),
        ("'42.'", "42"),
    ],
)
def test_only_the_full_stop_of_the_sentence_goes(text, answer):
    assert read_conclusion(f"So the final answer is: {text}") == Short(answer)


def test_the_last_mark_counts_and_an_intermediate_answer_is_none():
    assert read_conclusion("The answer is this. So the answer is: that") == Short("that")
    assert read_conclusion("Intermediate answer: Palermo") is None
    assert read_conclusion("answer:") is None


@pytest.mark.parametrize(
    "said",
    [
        "Thus he was older.",
        "So, he was older.",
        "Therefore he was older.",
        "Hence he was older.",
        "That is, he was older.",
        "His age was 1980 - 1899 = 81 years.",
        "Together 1,000 + 2.5= 1002.5",
    ],
)
def test_a_sentence_that_infers_or_computes_is_not_searched(said):
    thought = think(said)[0].value
    assert thought.text and (thought.query, thought.is_last) == ("", False)


@pytest.mark.parametrize("said", ["Sofia lies in Bulgaria", "Thusnelda was born in 10 BC"])
def test_a_name_that_begins_alike_is_searched(said):
    assert think(said)[0].value.query == said


def test_the_next_query_is_the_last_fact_or_the_question():
    infers = Thought("So he is old")
    assert next_query(QUESTION, [FACT, infers]) == FACT.query
    assert next_query(QUESTION, [infers]) == next_query(QUESTION, []) == QUESTION.text
    assert next_query(Question("q", "Who?", search="rewritten"), []) == "rewritten"


def test_threads_are_asked_together_and_in_order():
    completer = ScriptedCompleter(["One.", "Two."])
    threads = [Thread(Question(name, f"{name}?"), Evidence()) for name in "ab"]
    replies = asyncio.run(PromptedThinker(completer).think(threads))
    assert [reply.value.text for reply in replies] == ["One", "Two"]
    assert asyncio.run(PromptedThinker(completer).think([])) == []
