import asyncio

from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.vanilla import Vanilla
from triax.reasoning.synthesize import PromptedReader
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question
from triax.records.verbs import Pipeline

CHUNK = Chunk("c1", "d1", "The Leopard is a novel by Lampedusa.", "The Leopard")


class OneChunk:
    def __init__(self):
        self.asked = []

    def search(self, groups, num_chunks):
        self.asked.append((groups, num_chunks))
        return [Evidence((ScoredChunk(CHUNK, 0.5),)) for _ in groups]


def answer(pipeline, *texts):
    questions = [Question(f"q{i}", text) for i, text in enumerate(texts)]
    return asyncio.run(pipeline.answer(questions))


def test_one_search_and_one_reading_call_for_all():
    completer, retriever = ScriptedCompleter(["Lampedusa", "1958"]), OneChunk()
    pipeline = Vanilla(PromptedReader(completer), retriever, 3, "dense")
    assert isinstance(pipeline, Pipeline)
    first, second = answer(pipeline, "Who wrote it?", "When?")
    assert retriever.asked == [([["Who wrote it?"], ["When?"]], 3)]
    assert (first.answer, second.answer) == ("Lampedusa", "1958")
    assert (first.chunk_ids, first.pipeline, first.stop_reason) == (("c1",), "dense", "read")
    assert first.usage.calls == 1
    asked = completer.requests[0].messages[-1].content
    assert asked == f"Passages:\n[1] {CHUNK.passage}\n\nQuestion: Who wrote it?"


def test_a_closed_book_shows_nothing_and_searches_nothing():
    completer = ScriptedCompleter(["Lampedusa"])
    [trace] = answer(Vanilla(PromptedReader(completer)), "Who wrote it?")
    assert (trace.chunk_ids, trace.pipeline) == ((), "closed_book")
    turns = [turn.content for turn in completer.requests[0].messages]
    assert turns[-1] == "Question: Who wrote it?"
    # The worked examples have no passages either.
    assert not any("Passages:" in turn for turn in turns)


def test_r03_r29_a_failed_reading_is_an_error_of_its_question():
    reader = PromptedReader(ScriptedCompleter(["__RAISE__: down", "x"]))
    [bad, good] = answer(Vanilla(reader), "a", "b")
    assert (bad.answer, bad.error, bad.stop_reason) == (None, "reading: down", "error")
    assert (good.answer, good.error) == ("x", None)


def test_abstention_is_no_failure():
    [trace] = answer(Vanilla(PromptedReader(ScriptedCompleter(["unknown"]))), "a")
    assert (trace.answer, trace.error, trace.stop_reason) == (None, None, "read")


def test_no_questions():
    assert answer(Vanilla(PromptedReader(ScriptedCompleter([])), OneChunk())) == []
