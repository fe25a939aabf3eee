"""Tests of triax.reasoning.shots."""

import asyncio

from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.decompose import PromptedDecomposer
from triax.reasoning.resolve import FillingResolver, Task
from triax.reasoning.shots import (
    PASSAGE_FILLS,
    PASSAGES_SYSTEM,
    RELATION_DECOMPOSITIONS,
    RELATIONS_SYSTEM,
)
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State


def test_fills_stand_in_their_passages():
    assert len(PASSAGE_FILLS) == 3
    for asked, answered in PASSAGE_FILLS:
        passages, _, query = asked.rpartition("\n\n")
        assert passages.startswith("Passages:\n[1] ") and query.endswith(" | ?")
        assert answered == "not found" or answered in passages
        words = [len(one.split()) for one in passages.split("\n[")]
        assert max(words) < 70


def test_decompositions_can_be_read_and_resolved_one_after_the_other():
    for asked, answered in RELATION_DECOMPOSITIONS:
        completer = ScriptedCompleter([answered])
        decomposer = PromptedDecomposer(
            completer, system=RELATIONS_SYSTEM, shots=RELATION_DECOMPOSITIONS
        )
        (reply,) = asyncio.run(decomposer.decompose([Question("q", asked)]))
        assert len(reply.value) == len(answered.splitlines())
        assert "fuzzy" not in {one.kind for one in reply.value[:1]}
        known = set()
        for one in reply.value:
            assert set(one.subject.placeholders) <= known
            known |= set(one.object.placeholders)
    messages = completer.requests[0].messages
    assert len(messages) == 2 + 2 * len(RELATION_DECOMPOSITIONS)


def test_a_fill_is_asked_in_the_same_form():
    completer = ScriptedCompleter(["not found."])
    resolver = FillingResolver(completer, system=PASSAGES_SYSTEM, shots=PASSAGE_FILLS)
    state = State(searchable=(QueryTriplet.parse("Brand", "author", "?x"),))
    (reply,) = asyncio.run(resolver.resolve([Task(Question("q", "x"), state, Evidence())]))
    assert reply.value == ()
    assert completer.requests[0].messages[-1].content.endswith("Brand | author | ?")
