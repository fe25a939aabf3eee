import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning.golden import check_golden
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.final_answer import read_final
from triax.reasoning.sparql import SHOTS, read_thoughts, sparql_reader
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question

EVIDENCE = Evidence((ScoredChunk(Chunk("a", "a", "It is by Hitchcock.", "Vertigo"), 1.0),))
WRITTEN = """Step 1:
```sparql
SELECT ?city WHERE {
  "Vertigo" directed by ?director .
  ?director :born_in ?city
}
```
Step 2:
- ?director = **Alfred Hitchcock**
?city -> Leytonstone
Step 3: FINAL ANSWER: Leytonstone"""


def test_the_prompt():
    model = ScriptedCompleter(["FINAL ANSWER: Leytonstone"])
    question = Question("q", "Where was the director of Vertigo born?")
    [reply] = asyncio.run(sparql_reader(model).read([(question, EVIDENCE)]))
    assert reply.value == Short("Leytonstone")
    [request] = model.requests
    check_golden("sparql", request.messages)
    assert (request.stage, request.max_tokens, request.temperature) == ("sparql", 512, 0.0)


def test_query_patterns_and_bindings_are_read():
    found = read_thoughts(WRITTEN)
    assert found.query.startswith("SELECT ?city WHERE {") and found.query.endswith("}")
    assert found.patterns == (
        QueryTriplet.parse("Vertigo", "directed by", "?director"),
        QueryTriplet.parse("?director", "born in", "?city"),
    )
    assert found.bindings == {"?director": "Alfred Hitchcock", "?city": "Leytonstone"}


def test_the_example_is_in_the_form_that_it_shows():
    found = read_thoughts(SHOTS[0][1])
    assert len(found.patterns) == 2 and len(found.bindings) == 2
    assert read_final(Completion(SHOTS[0][1])) == Short("Palermo")


@pytest.mark.parametrize(
    ("lines", "bindings"),
    [
        ("1. ?a: the writer\n2. ?b = **B**.", {"?a": "the writer", "?b": "B"}),
        ("So ?a = A, ?b = B (from [2])", {"?a": "A", "?b": "B (from [2])"}),
        ('"Vertigo" directed_by ?a -> "Alfred Hitchcock"', {"?a": "Alfred Hitchcock"}),
        ("`?a` = A\n?a = another", {"?a": "A"}),
        ("?a = ?b\n?b = I don't know\n?c :born_in ?d\n?c =", {}),
    ],
)
def test_values_are_read_wherever_they_stand(lines, bindings):
    written = f"SELECT ?a WHERE {{ ?a is ?b }}\nStep 2:\n{lines}\nFINAL ANSWER: A"
    assert read_thoughts(written).bindings == bindings


def test_what_is_only_thought_is_not_written():
    found = read_thoughts("<think>SELECT ?a { ?a b ?c }</think>SELECT ?x { ?x y ?z }\n?x = A")
    assert (found.query, found.bound) == ("SELECT ?x { ?x y ?z }", 0.5)


def test_a_query_that_was_cut_is_one():
    """Else it would be missing among the queries that do not parse."""
    found = read_thoughts('SELECT ?x WHERE {\n "A" is ?x .\n ?x bo')
    assert found.query.startswith("SELECT") and len(found.patterns) == 1


@given(st.text(max_size=300))
def test_whatever_is_written_is_read(text):
    for written in (text, f"SELECT ?x WHERE {{{text}}}\n?x = {text}"):
        found = read_thoughts(written)
        assert all(isinstance(one, QueryTriplet) for one in found.patterns)
        assert all(found.bindings.values()) and 0.0 <= found.bound <= 1.0
    assert read_thoughts("no query here").query == ""
