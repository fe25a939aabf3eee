import asyncio

from reasoning.golden import check_golden
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.context import Budget
from triax.reasoning.final_answer import read_final
from triax.reasoning.steps import SHOTS, steps_reader
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question

EVIDENCE = Evidence((ScoredChunk(Chunk("a", "a", "It is by Hitchcock.", "Vertigo"), 1.0),))


def test_the_prompt():
    model = ScriptedCompleter(["1. Hitchcock\nFINAL ANSWER: I don't know"])
    question = Question("q", "Where was the director of Vertigo born?")
    reader = steps_reader(model, Budget(max_words_per_chunk=2), 77, 0.3)
    [reply] = asyncio.run(reader.read([(question, EVIDENCE)]))
    assert reply.value == Short(None)  # an abstention is a value (R17)
    [request] = model.requests
    check_golden("steps", request.messages)
    assert (request.stage, request.max_tokens, request.temperature) == ("steps", 77, 0.3)


def test_the_example_ends_in_the_asked_form():
    assert read_final(Completion(SHOTS[0][1])) == Short("Vertigo")
