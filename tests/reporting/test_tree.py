import io

import pytest
from rich.console import Console

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State
from triax.records.trace_json import trace_to_json
from triax.records.traces import Round, Trace
from triax.records.triplets import Proposition, Triplet
from triax.records.usage import Usage
from triax.reporting.tree import trace_tree


def show(trace, **options):
    console = Console(file=io.StringIO(), width=200, force_terminal=False, color_system=None)
    console.print(trace_tree(trace_to_json(trace), **options))
    return [line.lstrip("│├└─ ").rstrip() for line in console.file.getvalue().splitlines()]


def trace(text="Vertigo", **changes):
    first = QueryTriplet.parse(text, "directed by", "?d")
    second = QueryTriplet.parse("?d", "born in", "?c")
    known = Resolved(Triplet(text, "directed by", "H"), ("a", "b", "c", "d"), 1)
    before = State((), (first,), (second,))
    after = State((known,), (second.fill({"d": "H"}),))
    hits = tuple(
        Hit(Proposition(f"p{i}", known.triplet, f"{text} {i}", ("a",)), 0.5, ("a",))
        for i in range(7)
    )
    evidence = Evidence((ScoredChunk(Chunk("a", "a", "text", text), 0.5),), hits)
    given = {
        "question_id": "q",
        "question": f"Who directed {text}?",
        "pipeline": "t2rag",
        "answer": text,
        "stop_reason": "max rounds",
        "decomposition": (first, second),
        "rounds": (Round(1, (f"{text} directed by",), evidence, before, after, f"note {text}"),),
        "final": after,
        "usage": Usage(3, 0, 100, 20),
        "seconds": 1.25,
    }
    return Trace(**(given | changes))


def test_a_whole_trace():
    assert show(trace(), num_propositions=2) == [
        "Who directed Vertigo?  (t2rag)",
        "query triplets: 2",
        "Vertigo | directed by | ?d",
        "?d | born in | ?c",
        "round 1",
        "searched",
        "Vertigo directed by",
        "found 7 propositions in 1 chunks",
        "0.50  Vertigo 0",
        "0.50  Vertigo 1",
        "resolved  Vertigo | directed by | H",
        "newly searchable  H | born in | ?c",
        "note Vertigo",
        "resolved: 1",
        "Vertigo | directed by | H  a, b, c",
        "stopped: max rounds; 3 calls, 100 + 20 tokens, 1.2 s",
        "answer: Vertigo",
    ]


def test_a_failed_trace():
    lines = show(Trace("q", "Who?", "closed_book", None, "error", "reading: down", final=None))
    assert lines[-2:] == ["answer: no answer", "error: reading: down"]


HOSTILE = [
    "[bold red]x[/]",
    "[/]",
    "[link=http://x]y[/link]",
    "a\\[b]\\",
    "back\\",
    ":smile:",
    "[not closed",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_r24_text_is_never_markup(text):
    lines = show(trace(text, error=f"error {text}", pipeline=text, stop_reason=text))
    assert lines[0] == f"Who directed {text}?  ({text})"
    assert f"{text} | directed by | ?d" in lines
    assert f"{text} directed by" in lines
    assert f"0.50  {text} 0" in lines
    assert f"note {text}" in lines
    assert f"{text} | directed by | H  a, b, c" in lines
    assert f"answer: {text}" in lines
    assert f"error: error {text}" in lines


def test_r24_text_sends_nothing_to_the_terminal():
    text = "x\x1b[31m\x9b1m\x07\x08y"
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="standard")
    plain = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="standard")
    console.print(trace_tree(trace_to_json(trace(text))))
    plain.print(trace_tree(trace_to_json(trace("x[31m1my"))))
    assert console.file.getvalue() == plain.file.getvalue()
