"""The prompts of lessons are, word for word, those of the parts in the variants `written`."""

import asyncio
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.resolve import Task
from triax.reasoning.synthesize import Ending
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.lesson_prompts import (
    answer_prompt,
    cut_words,
    decompose_prompt,
    extract_prompt,
    first_words,
    lesson_messages,
    read_prompt,
    resolve_prompt,
)
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import Resolved, State
from triax.records.triplets import Proposition, Triplet

CONF = Path(__file__).resolve().parents[2] / "conf"
QUESTION = Question("q1", "Where was the author of Brand born?")
CHUNKS = [
    Chunk("c1", "c1", "Brand is a verse tragedy by Henrik Ibsen.", "Brand (play)"),
    Chunk("c2", "c2", "word " * 100, "Skien"),
]
EVIDENCE = Evidence(
    tuple(ScoredChunk(chunk, 1.0) for chunk in CHUNKS),
    (Hit(Proposition("p", Triplet("Brand", "by", "Ibsen"), "Brand by Ibsen", ("c1",)), 1.0, ()),),
)
PASSAGES = [cut_words(chunk.passage, 60) for chunk in CHUNKS]
STATE = State(
    (Resolved(Triplet("Brand", "author", "Henrik Ibsen")),),
    (QueryTriplet.parse("Henrik Ibsen", "born in", "?city"),),
)


def part(group, answer):
    """The variant `written` of a part, and the requests that it makes."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("run", overrides=["name=x", f"{group}=written"])[group]
    completer = ScriptedCompleter([answer])
    return instantiate(cfg)(completer=completer), completer.requests


def ask(made):
    return asyncio.run(made)


def test_decompose():
    decomposer, requests = part("decomposer", "Brand | author | ?a")
    ask(decomposer.decompose([QUESTION]))
    assert requests[0].messages == lesson_messages("decompose", decompose_prompt(QUESTION.text))


def test_resolve():
    resolver, requests = part("resolver", "Skien")
    ask(resolver.resolve([Task(QUESTION, STATE, EVIDENCE)]))
    user = resolve_prompt(STATE.searchable[0], PASSAGES)
    assert requests[0].messages == lesson_messages("resolve", user)
    assert user.startswith("Passages:\n[1] Brand (play)\nBrand is")
    assert user.endswith(" …\n\nHenrik Ibsen | born in | ?")


def test_resolve_from_propositions_alone():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        overrides = ["name=x", "resolver=filling", "+resolver.system=Fill."]
        cfg = compose("run", overrides=overrides).resolver
    completer = ScriptedCompleter(["Skien"])
    resolver = instantiate(cfg)(completer=completer, shots=())
    ask(resolver.resolve([Task(QUESTION, STATE, EVIDENCE)]))
    user = resolve_prompt(STATE.searchable[0], facts=["Brand by Ibsen"])
    assert completer.requests[0].messages == lesson_messages("resolve", user)


def test_answer_from_triplets():
    synthesizer, requests = part("synthesizer", "Skien")
    ask(synthesizer.synthesize([Ending(QUESTION, (), STATE, EVIDENCE)]))
    facts = ["Brand | author | Henrik Ibsen", "Henrik Ibsen | born in | ?city"]
    user = answer_prompt(QUESTION.text, facts)
    assert requests[0].messages == lesson_messages("answer", user)


@pytest.mark.parametrize("evidence", [Evidence(EVIDENCE.chunks), Evidence()])
def test_answer_from_passages_or_from_nothing(evidence):
    reader, requests = part("reader", "Skien")
    ask(reader.read([(QUESTION, evidence)]))
    user = read_prompt(QUESTION.text, PASSAGES if evidence.chunks else [])
    assert requests[0].messages == lesson_messages("answer", user)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_extract(chunk):
    extractor, requests = part("extractor", "Brand | author | Henrik Ibsen")
    ask(extractor.extract([chunk]))
    user = extract_prompt(first_words(chunk.passage, 90))
    assert requests[0].messages == lesson_messages("extract", user)
