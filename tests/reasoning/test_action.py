"""ReAct's actions: how steps are told, how loosely an answer is read, what a look-up finds."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning.golden import check_golden
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.action import Action, Actor, PromptedActor, Step, look_up, read_action
from triax.reasoning.context import Budget
from triax.records.completions import Completion
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question

QUESTION = Question("q", "Where was the director of Vertigo born?")
VERTIGO = Chunk("v", "v", "Vertigo is a film of 1958. Alfred Hitchcock made the film.", "Vertigo")
OTHER = Chunk("o", "o", "The film Psycho is by Hitchcock too.", "Psycho")
EVIDENCE = Evidence((ScoredChunk(VERTIGO, 0.5), ScoredChunk(OTHER, 0.4)))
SEARCH = Step(Action("search", "Vertigo", "The director is missing."), EVIDENCE)
LOOKUP = Step(Action("lookup", "film"), sentence="(1 of 3) Vertigo is a film of 1958")


def act(answers, *steps, **options):
    completer = ScriptedCompleter(answers)
    actor = PromptedActor(completer, **options)
    assert isinstance(actor, Actor)
    [reply] = asyncio.run(actor.act([(QUESTION, steps)]))
    return reply, completer


def read(text):
    return read_action(Completion(text))


def test_the_steps_are_the_turns_of_a_conversation():
    said = "Thought: It was Hitchcock.\nAction: search[Alfred Hitchcock]"
    reply, completer = act([said], SEARCH, LOOKUP, Step(Action("search", "nothing")))
    assert reply.value == Action("search", "Alfred Hitchcock", "It was Hitchcock.")
    [request] = completer.requests
    assert (request.stage, request.question_id, request.max_tokens) == ("act", "q", 128)
    check_golden("act", request.messages)


def test_the_budget_and_the_tokens_are_settings():
    options = {"budget": Budget(max_chunks=1, max_words_per_chunk=2), "max_tokens": 7}
    _, completer = act(["finish[x]"], SEARCH, **options)
    assert completer.requests[0].messages[-1].content == (
        "Observation:\nPassages:\n[1] Vertigo Vertigo \u2026"
    )
    assert completer.requests[0].max_tokens == 7


@pytest.mark.parametrize(
    ("text", "verb", "argument", "thought"),
    [
        ("Thought: A.\nAction: search[Vertigo (film)]", "search", "Vertigo (film)", "A."),
        ("Thought 1: A.\nAction 1: Search[Vertigo]", "search", "Vertigo", "A."),
        ("**Thought:** A.\n**Action:** finish[yes]", "finish", "yes", "A."),
        ("I know. finish[Palermo].", "finish", "Palermo", "I know."),
        ("Action: search: Vertigo", "search", "Vertigo", ""),
        ('Action: Search "Vertigo"', "search", "Vertigo", ""),
        ("Action: finish(13 August 1899)", "finish", "13 August 1899", ""),
        ("Action: finish Vertigo (film)", "finish", "Vertigo (film)", ""),
        ("Action: look up[born]", "lookup", "born", ""),
        ("Action: look-up[born", "lookup", "born", ""),
        ("lookup[born]", "lookup", "born", ""),
        ("<think>search[x]</think>Action: search[y]", "search", "y", ""),
        ("Thought: I search for it.\nAction: finish[no]", "finish", "no", "I search for it."),
        ("Action: search Rome\nObservation: x\nAction: finish[y]", "search", "Rome", ""),
        ("Action: search[A]\nObservation: invented\nAction: finish[B]", "search", "A", ""),
    ],
)
def test_an_action_is_read_loosely(text, verb, argument, thought):
    assert read(text) == Action(verb, argument, thought)


@pytest.mark.parametrize("text", ["", "I do not know.", "search for it", "Action: buy[it]", "[x]"])
def test_r26_an_answer_without_an_action_is_unreadable(text):
    with pytest.raises(Unreadable, match="no search"):
        read(text)


@pytest.mark.parametrize("text", ["Action: search[]", "finish[ ]", "Action: lookup"])
def test_r26_an_action_without_an_argument_is_unreadable(text):
    with pytest.raises(Unreadable, match="is empty"):
        read(text)


def test_r26_an_unreadable_answer_is_asked_again_once():
    reply, completer = act(["Let me see.", "finish[yes]"])
    assert (reply.value.argument, reply.usage.calls) == ("yes", 2)
    assert "no search[...]" in completer.requests[1].messages[-1].content
    reply, _ = act(["Let me see.", "Well."])
    assert (reply.value, reply.is_failed) == (None, False)


words = st.text("abc[]() \u0442", min_size=1, max_size=12)


@given(words, words, st.sampled_from(["search", "lookup", "finish"]))
def test_r24_any_text_is_an_action_or_unreadable(thought, argument, verb):
    try:
        action = read(f"Thought: {thought}\nAction: {verb}[{argument}]")
    except Unreadable:
        assert not argument.partition("]")[0].strip(" ()")
    else:
        assert action.verb == verb and action.argument in argument
        # What was read is told again as it was read.
        if "]" not in action.argument:
            assert read(str(action)) == action


def test_a_look_up_walks_through_the_sentences_of_the_last_search():
    """Three sentences say "film", in either case; the search before does not count."""
    steps = [Step(Action("search", "x"), Evidence()), SEARCH]
    found = []
    for _ in range(4):
        found.append(look_up("Film", steps))
        steps.append(Step(Action("lookup", "film"), sentence=found[-1]))
        steps.append(Step(Action("lookup", "other")))
    assert found == [
        "(1 of 3) Vertigo is a film of 1958",
        "(2 of 3) Alfred Hitchcock made the film",
        "(3 of 3) The film Psycho is by Hitchcock too",
        "",
    ]
    assert look_up("film", [*steps, SEARCH]).startswith("(1 of 3)")


def test_a_look_up_that_finds_nothing():
    assert look_up("film", []) == look_up("novel", [SEARCH]) == ""
