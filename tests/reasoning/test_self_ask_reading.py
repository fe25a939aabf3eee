import asyncio

from reasoning.golden import check_golden
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.final_answer import read_final
from triax.reasoning.self_ask_reading import SHOTS, self_ask_reader
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question

EVIDENCE = Evidence((ScoredChunk(Chunk("a", "a", "It is by Hitchcock.", "Vertigo"), 1.0),))


def test_the_prompt():
    model = ScriptedCompleter(["Follow up: Who?\nFINAL ANSWER: Leytonstone"])
    question = Question("q", "Where was the director of Vertigo born?")
    [reply] = asyncio.run(self_ask_reader(model).read([(question, EVIDENCE)]))
    assert reply.value == Short("Leytonstone")
    [request] = model.requests
    check_golden("self_ask", request.messages)
    assert (request.stage, request.max_tokens) == ("self_ask", 2048)


def test_the_examples_end_in_the_asked_form():
    assert [read_final(Completion(one)).text for _, one in SHOTS] == ["Palermo", "the Black Sea"]
