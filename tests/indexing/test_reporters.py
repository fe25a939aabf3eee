import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reasoning.golden import check_golden

from triax.indexing.reporters import (
    SCHEMA,
    ExtractiveReporter,
    Fact,
    Material,
    Part,
    PromptedReporter,
    Reporter,
    fit,
    read_written,
)
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.models.constraint import json_schema_pattern
from triax.records.completions import Completion

FACTS = (
    Fact("Ada met Babbage", 3, ("a", "b")),
    Fact("Ada lived in London", 4, ("c",), 0),
    Fact("London lies on the Thames", 5, ("d", "a"), 0),
    Fact("Babbage built engines", 3, ("e",), 1),
)
PARTS = (Part("London\nAda lived there.", 4, ("c", "d")), Part("Engines\nBuilt.", 2, ("e",)))
MATERIAL = Material(("Ada", "London", "Babbage", "engines", "the Thames"), FACTS, PARTS)
GOOD = {
    "title": "Ada and Babbage",
    "summary": "They met in London.",
    "rating": 7.5,
    "findings": ["Ada met Babbage.", "Ada lived in London."],
}


def test_the_extractive_report_by_hand():
    reporter = ExtractiveReporter(num_names=2, max_tokens=7)
    assert isinstance(reporter, Reporter)
    (reply,) = reporter.write([MATERIAL])
    found = reply.value
    assert (found.title, found.summary) == ("Ada, London", "")
    # 3 and 4 tokens fit into 7, in the order of the facts.
    assert found.findings == ("Ada met Babbage", "Ada lived in London")
    assert found.chunk_ids == ("a", "b", "c")
    assert found.rating == pytest.approx(math.log2(5))
    assert reply.usage.calls == 0


def test_an_extractive_report_says_something_and_its_rating_has_an_end():
    reporter = ExtractiveReporter(max_tokens=1)
    assert reporter.write([MATERIAL])[0].value.findings == ("Ada met Babbage",)
    much = Material(("Ada",), FACTS[:1] * 3000)
    assert reporter.write([much])[0].value.rating == 10.0
    assert reporter.write([Material(("Ada",), ())])[0].value.findings == ()
    assert reporter.write([]) == []


def test_what_fits_is_shown_as_it_is():
    assert fit(MATERIAL, 15) == ([], list(FACTS))


def test_the_part_with_the_longest_facts_is_replaced_first():
    """15 tokens of facts; London's 9 become 4, then the engines' 3 become 2."""
    london, engines = PARTS
    assert fit(MATERIAL, 14) == ([london], [FACTS[0], FACTS[3]])
    assert fit(MATERIAL, 10) == ([london], [FACTS[0], FACTS[3]])
    assert fit(MATERIAL, 9) == ([london, engines], [FACTS[0]])
    # Then the end goes, facts first.
    assert fit(MATERIAL, 8) == ([london, engines], [])
    assert fit(MATERIAL, 5) == ([london], [])
    assert fit(MATERIAL, 0) == ([], [])


def test_a_report_that_is_longer_than_its_facts_replaces_nothing():
    long = Part("x", 9, ())
    material = Material(MATERIAL.names, FACTS, (long, long))
    assert fit(material, 7) == ([], list(FACTS[:2]))


facts = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([None, 0, 1])), max_size=12)


@given(facts, st.lists(st.integers(0, 9), min_size=2, max_size=2), st.integers(0, 60))
def test_r08_a_budget_is_kept(sizes, parts, budget):
    material = Material(
        (),
        tuple(Fact(str(n), size, (), part) for n, (size, part) in enumerate(sizes)),
        tuple(Part(str(n), size) for n, size in enumerate(parts)),
    )
    shown, said = fit(material, budget)
    assert sum(one.num_tokens for one in [*shown, *said]) <= budget
    assert not {one.part for one in said} & {material.parts.index(one) for one in shown}
    if sum(size for size, _ in sizes) <= budget:
        assert (shown, said) == ([], list(material.facts))


def test_a_prompted_report_is_one_call_with_its_cost():
    completer = ScriptedCompleter([json.dumps(GOOD)])
    reporter = PromptedReporter(completer, max_input_tokens=10, max_tokens=99, max_names=3)
    assert isinstance(reporter, Reporter)
    (reply,) = reporter.write([MATERIAL])
    assert (reply.value.title, reply.value.rating) == ("Ada and Babbage", 7.5)
    assert reply.value.findings == tuple(GOOD["findings"])
    # What was shown: two facts, and the report about London in place of its facts.
    assert reply.value.chunk_ids == ("a", "b", "e", "c", "d")
    assert reply.usage.calls == 1
    (request,) = completer.requests
    assert (request.stage, request.max_tokens) == ("report", 99)
    check_golden("report", request.messages)
    assert reporter.write([]) == []


def test_settings_and_prompt_decide_what_is_derived():
    configs = [
        reporter.config
        for reporter in (
            PromptedReporter(ScriptedCompleter([], "one")),
            PromptedReporter(ScriptedCompleter([], "two")),
            PromptedReporter(ScriptedCompleter([], "one"), max_input_tokens=5),
            ExtractiveReporter(),
            ExtractiveReporter(num_names=1),
        )
    ]
    assert len({json.dumps(config, sort_keys=True) for config in configs}) == 5


def test_what_cannot_be_read_is_asked_for_once_more():
    reporter = PromptedReporter(ScriptedCompleter(["no JSON", json.dumps(GOOD), "{}", "{}"]))
    (good,) = reporter.write([MATERIAL])
    assert good.value.title == "Ada and Babbage" and good.usage.calls == 2
    (bad,) = reporter.write([MATERIAL])
    assert bad.value is None and not bad.is_failed and "expected" in bad.error
    (down,) = PromptedReporter(ScriptedCompleter(["__RAISE__: down"])).write([MATERIAL])
    assert down.value is None and down.is_failed and down.error == "down"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (json.dumps(GOOD), ("Ada and Babbage", "They met in London.", 7.5, 2)),
        (f"Here it is:\n```json\n{json.dumps(GOOD)}\n```", ("Ada and Babbage", None, 7.5, 2)),
        ('<think>{"title": "a", "summary": "b"}</think>{"title": "c", "summary": "d"}', "c"),
        ('{"title": "T", "summary": "S", "rating": "8", "findings": "one"}', ("T", "S", 8.0, 1)),
        ('{"title": "T", "summary": "S", "rating": 99}', ("T", "S", 10.0, 0)),
        ('{"title": "T", "summary": "S", "rating": -1}', ("T", "S", 0.0, 0)),
        ('{"title": "T", "summary": "S", "rating": "nan"}', ("T", "S", 0.0, 0)),
        ('{"title": "T", "summary": "S", "rating": [1]}', ("T", "S", 0.0, 0)),
        # GraphRAG's own form of findings, and an answer that was cut.
        ('{"title": "T", "findings": [{"summary": "a", "explanation": "b"}, 3]}', "a: b"),
        ('{"title": "T", "summary": "S", "rating": 2, "findings": ["one", "tw', ("T", "S", 2.0, 1)),
    ],
)
def test_reports_are_read_leniently(text, wanted):
    found = read_written(Completion(text))
    if isinstance(wanted, str):
        assert wanted in (found.title, *found.findings)
        return
    title, summary, rating, count = wanted
    assert (found.title, found.rating, len(found.findings)) == (title, rating, count)
    assert summary is None or found.summary == summary


@pytest.mark.parametrize(
    "text", ["", "no", "[]", '{"title": "T"}', '{"summary": "S"}', '{"title": " ", "summary": "S"}']
)
def test_what_is_no_report_is_unreadable(text):
    with pytest.raises(Unreadable, match="expected"):
        read_written(Completion(text))


def test_the_schema_is_one_that_a_local_model_can_be_held_to():
    assert json_schema_pattern(json.dumps(SCHEMA))
