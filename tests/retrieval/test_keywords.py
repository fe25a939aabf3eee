import json

import pytest
from reasoning.golden import check_golden

from triax.llm.scripted import RAISE, ScriptedCompleter
from triax.records.completions import Completion
from triax.retrieval.keywords import (
    GRAMMAR,
    SHOTS,
    KeywordReader,
    Keywords,
    PromptedKeywords,
    RuleKeywords,
    read_keywords,
)


def said(high, low):
    return json.dumps({"high_level_keywords": high, "low_level_keywords": low})


QUESTION = "Who is the father of the director of Lost in Translation?"


def test_the_prompt():
    model = ScriptedCompleter([said(["father"], ["Lost in Translation"])])
    reader = PromptedKeywords(model)
    assert isinstance(reader, KeywordReader)
    [found] = reader.read([QUESTION])
    assert (found.high, found.low) == (("father",), ("Lost in Translation",))
    assert found.usage.calls == 1 and found.usage.completion_tokens > 0
    [request] = model.requests
    check_golden("keywords", request.messages)
    assert (request.stage, request.max_tokens, request.grammar) == ("keywords", 256, GRAMMAR)


@pytest.mark.parametrize("shot", SHOTS)
def test_the_examples_are_in_the_form_that_they_show(shot):
    found = read_keywords(Completion(shot[1]))
    assert found.high and found.low
    assert json.loads(shot[1]).keys() == set(json.loads(GRAMMAR.source)["required"])


@pytest.mark.parametrize(
    ("text", "high", "low"),
    [
        ('Sure:\n```json\n{"low_level_keywords": ["A", "A", " b  c "]}\n```', (), ("A", "b c")),
        (
            '{"high_level_keywords": "depth, lakes", "low_level_keywords": 3}',
            ("depth", "lakes"),
            (),
        ),
        (
            "{'high_level_keywords': ['a', 1, None, ''], 'low_level_keywords': ['b'],}",
            ("a",),
            ("b",),
        ),
        ('{"high_level_keywords": ["a"], "low_level_keywords": ["b", "half', ("a",), ("b",)),
        (said(["draft"], []) + said([], []) + said(["last"], []) + "{}", ("last",), ()),
    ],
)
def test_r01_answers_are_read_leniently(text, high, low):
    assert read_keywords(Completion(text)) == Keywords(high, low)


@pytest.mark.parametrize(
    ("answers", "calls", "failed", "unreadable", "by_rule"),
    [
        (["father, Sofia", said(["f"], ["n"])], 2, 0, 0, False),
        ([said([], []), "none"], 2, 0, 1, True),
        ([f"{RAISE} down"], 1, 1, 0, True),
    ],
)
def test_r26_asked_again_and_then_by_rule(answers, calls, failed, unreadable, by_rule, caplog):
    reader = PromptedKeywords(ScriptedCompleter(answers))
    [found] = reader.read([QUESTION])
    [rule] = RuleKeywords().read([QUESTION])
    wanted = rule if by_rule else Keywords(("f",), ("n",))
    assert (found.high, found.low) == (wanted.high, wanted.low)
    assert found.usage.calls == calls
    assert (reader.num_failed, reader.num_unreadable) == (failed, unreadable)
    assert ("1 of 1 queries have keywords by rule" in caplog.text) == by_rule


def test_r09_blank_queries_are_not_asked_about():
    model = ScriptedCompleter([said(["a"], ["b"])])
    found = PromptedKeywords(model).read(["", "q", " \n"])
    assert [bool(one.low) for one in found] == [False, True, False] and len(model.requests) == 1
    assert PromptedKeywords(model).read([]) == [] and RuleKeywords().read([]) == []


@pytest.mark.parametrize(
    ("query", "high", "low"),
    [
        (
            "Which film has the director who was born earlier, Vertigo or Stalker?",
            ("film", "director", "born", "earlier"),
            ("Vertigo", "Stalker"),
        ),
        ("What is Ada Lovelace's birth place?", ("birth", "place"), ("Ada Lovelace",)),
        # No capital: the whole is the name. Nothing but a name: the whole is the theme.
        ("how deep is the lake", ("deep", "lake"), ("how deep is the lake",)),
        ("Who is Ada Lovelace?", ("Who is Ada Lovelace?",), ("Ada Lovelace",)),
        ("what is that", ("what is that",), ("what is that",)),
        ("", (), ()),
        ("  ", (), ()),
    ],
)
def test_keywords_by_rule(query, high, low):
    [found] = RuleKeywords().read([query])
    assert found == Keywords(high, low)
    [whole] = RuleKeywords("question").read([query])
    assert whole == Keywords((query,) if query.strip() else (), low)


def test_there_are_two_themes():
    with pytest.raises(ValueError, match="theme is 'all'"):
        RuleKeywords("all")
