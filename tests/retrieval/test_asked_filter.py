import asyncio
import json

import pytest

from triax.llm.ledger import Ledger, LedgerCompleter
from triax.llm.scripted import RAISE, ScriptedCompleter
from triax.records.completions import Completion
from triax.records.triplets import Proposition, Triplet
from triax.retrieval.asked_filter import GRAMMAR, SHOTS, LlmTripletFilter, read_places
from triax.retrieval.triplet_filter import TripletFilter


def props(*facts):
    return [Proposition("|".join(f), Triplet(*f), " ".join(f), ("c",)) for f in facts]


FILM = props(
    ("Stalker", "directed by", "Andrei Tarkovsky"),
    ("Stalker", "released in", "1979"),
    ("Andrei Tarkovsky", "born in", "Zavrazhye"),
    ("Stephen King", "born in", "Portland"),
)
CITY = props(("Київ", "стоїть на", "Дніпрі"), ("東京", "首都", "日本"), ("C++", "made by", "B. S."))


def said(*triplets):
    return json.dumps({"triplets": triplets}, ensure_ascii=False)


def keep(answer, candidates=FILM, **settings):
    model = ScriptedCompleter([answer])
    asked = LlmTripletFilter(model, **settings)
    (kept,) = asked.keep([["Where was the director of Stalker born?"]], [candidates])
    return list(kept.places), asked


def test_it_is_a_filter_and_shows_the_question_with_its_triplets():
    model = ScriptedCompleter([said(), said()])
    asked = LlmTripletFilter(model, keep_at_most=3)
    assert isinstance(asked, TripletFilter)
    assert [
        list(one.places) for one in asked.keep([["Who?"], ["Де?", "Which?"]], [FILM, CITY])
    ] == [
        [],
        [],
    ]
    first, second = model.requests
    assert (first.stage, first.grammar) == ("filter", GRAMMAR)
    assert "at most 3" in first.messages[0].content
    question, shown = first.messages[-1].content.split("\n")
    assert question == "Question: Who?"
    assert [tuple(one) for one in json.loads(shown)["triplets"]] == [
        one.triplet.fields for one in FILM
    ]
    assert second.messages[-1].content.startswith("Question: Де?\nQuestion: Which?\n")
    assert '["Київ", "стоїть на", "Дніпрі"]' in second.messages[-1].content


def test_examples_are_answered_in_the_asked_form():
    """One example keeps some, and one keeps none; each keeps the places it says."""
    model = ScriptedCompleter([said()])
    LlmTripletFilter(model).keep([["q"]], [FILM])
    turns = model.requests[0].messages[1:-1]
    assert [one.role for one in turns] == ["user", "assistant"] * len(SHOTS)
    for (_, shown, places), answer in zip(SHOTS, turns[1::2], strict=True):
        found = read_places(Completion(answer.content), props(*shown))
        assert found == list(places)
    assert [] in [list(places) for *_, places in SHOTS]


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        (said(["Stalker", "directed by", "Andrei Tarkovsky"]), [0]),
        # Ascending, once each, whatever the order.
        (said(*[FILM[n].triplet.fields for n in (2, 0, 2)]), [0, 2]),
        ("Stalker | directed by | Andrei Tarkovsky\nStalker | released in | 1979", [0, 1]),
        ("1. (Stalker; released in; 1979)", [1]),
        ("- Andrei Tarkovsky born in Zavrazhye\n- Stalker, released in, 1979.", [1, 2]),
        ("```json\n" + said(["STALKER", "Directed by", "Andrei  Tarkovsky"]) + "\n```", [0]),
        ("<think>\nStalker released in 1979\n</think>\n" + said(FILM[2].triplet.fields), [2]),
        # Nearly copied.
        (said(["Andrei Tarkovsky", "was born in", "Zavrazhye"]), [2]),
        # Made up beside a real one.
        (said(["Solaris", "is", "a film"], ["Stalker", "released in", "1979"]), [1]),
        # None helps.
        (said(), []),
        ("None", []),
        ("<think>Stalker released in 1979</think>\nnone", []),
    ],
)
def test_what_the_model_says_is_found_among_the_candidates(answer, places):
    found, asked = keep(answer)
    assert found == places
    assert (asked.num_failed, asked.num_unreadable) == (0, 0)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I do not know.",
        said(["Solaris", "is", "a film"]),
        '{"triplets": [["Stal',
        "<think>Stalker released in 1979",
        "\u0000\ufffd{[(]})",
        "The answer is Zavrazhye. " * 200,
    ],
)
def test_r26_an_answer_that_cannot_be_read_drops_nothing(answer, caplog):
    found, asked = keep(answer)
    assert found == [0, 1, 2, 3]
    assert (asked.num_failed, asked.num_unreadable) == (0, 1)
    assert "1 of 1 questions keep all their triplets" in caplog.text


def test_r03_one_failed_call_is_that_of_one_question(caplog):
    model = ScriptedCompleter([f"{RAISE} no server", said(FILM[1].triplet.fields)])
    asked = LlmTripletFilter(model)
    first, second = asked.keep([["a"], ["b"]], [FILM, FILM])
    assert (list(first.places), list(second.places)) == ([0, 1, 2, 3], [1])
    assert (asked.num_failed, asked.num_unreadable) == (1, 0)
    assert "no server" in caplog.text


def test_r07_triplets_of_every_script_are_told_apart():
    assert keep(said(["київ", "стоїть на", "Дніпрі"]), CITY)[0] == [0]
    assert keep("東京 | 首都 | 日本", CITY)[0] == [1]
    assert keep(said(["C++", "made by", "B. S."]), CITY)[0] == [2]
    languages = props(("C#", "is", "a language"), ("C++", "is", "a language"))
    assert keep(said(["C++", "is", "a language"]), languages)[0] == [1]


def test_the_first_that_are_named_are_kept():
    answer = said(*[FILM[n].triplet.fields for n in (3, 2, 1, 0)])
    assert keep(answer, keep_at_most=2)[0] == [2, 3]
    assert keep(answer)[0] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="keep_at_most is 0"):
        LlmTripletFilter(ScriptedCompleter([]), keep_at_most=0)


def test_candidates_that_differ_in_case_only_are_one():
    twins = props(("IBM", "is", "firm"), ("ibm", "is", "firm"), ("IBM", "is", "old"))
    assert keep(said(["IBM", "is", "firm"]), twins)[0] == [0, 1]


def test_a_cut_answer_counts_as_far_as_it_goes():
    text = said(FILM[1].triplet.fields)[:-2] + ', ["Andrei Tar'
    assert read_places(Completion(text, "length"), FILM) == [1]
    assert read_places(Completion("Stalker directed by Andrei Tar", "length"), FILM) is None


def test_r09_without_a_candidate_or_a_query_nothing_is_asked():
    model = ScriptedCompleter([])
    asked = LlmTripletFilter(model)
    assert [list(one.places) for one in asked.keep([["q"], []], [[], []])] == [[], []]
    assert asked.keep([], []) == [] and model.requests == []


def test_calls_are_in_the_ledger_and_on_the_bill_of_their_group():
    """Tokens of the scripted completer are words: 1 for the answer NONE."""
    model = LedgerCompleter(ScriptedCompleter(lambda request: "NONE"), Ledger())
    kept = LlmTripletFilter(model).keep([["a"], [], ["b"]], [FILM, FILM, FILM])
    assert model.ledger.by_stage()["filter"].calls == 2
    assert [one.usage.calls for one in kept] == [1, 0, 1]
    assert kept[0].usage.completion_tokens == 1 and kept[0].usage.prompt_tokens > 50


def test_it_may_be_called_inside_an_event_loop():
    async def inside():
        return keep(said(FILM[1].triplet.fields))[0]

    assert asyncio.run(inside()) == [1]
