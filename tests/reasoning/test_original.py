"""Small cases of the released code's parsers and update; the runs are in tests/pipelines.

The right values are what the released code gave on these texts.
"""

import pytest

from triax.reasoning import original
from triax.reasoning.original import OriginalState

MARKED = ("What's Up, Doc?", "released in", "1972")
DOUBLE = ("Who Framed Roger Rabbit?", "directed by", "?d")


def test_every_mark_counts():
    state = original.classify([MARKED, DOUBLE, ("A", "b", "C"), ("A", "b", "?")])
    assert state == OriginalState((("A", "b", "C"),), (MARKED, ("A", "b", "?")), (DOUBLE,))
    assert not state.is_resolved
    assert OriginalState(((("A", "b", "C")),)).is_resolved


@pytest.mark.parametrize(
    ("text", "triplets"),
    [
        ("Reasoning: r\n\nTriples:\nA | b | ?", [("A", "b", "?")]),
        ("Triples:\n- A | b | ?", [("- A", "b", "?")]),
        ("Triples:\n1. C | d | ?", [("1. C", "d", "?")]),
        ("Triples:\nA | b | ? | more", [("A", "b", "?")]),
        ("Triples:\nA | b | ?\na | B | ?", [("A", "b", "?")]),
        ("Triples:\nsubject | predicate | object", [("subject", "predicate", "object")]),
        ("Triples:\nA | b | ?\nPropositions: x\nC | d | ?", [("A", "b", "?")]),
        # No section: any line with bars, after the first ". " and without "- ".
        ("**Triples:**\n- Dr. Who | b | ?", [("Who", "b", "?")]),
        ("1. A | b | ?\n- C | d | ?", [("A", "b", "?"), ("C", "d", "?")]),
        ('"A" | \'b\' | "?"', [("A", "b", "?")]),
        ("Triples: A | b | ?", []),
        ("propositions: A | b | ?", []),
        ("A | b", []),
        ("nothing", []),
        ("", []),
    ],
)
def test_decomposition(text, triplets):
    found = original.parse_decomposition(text)
    assert list(found.triplets) == triplets
    assert found.state == original.classify(triplets)


@pytest.mark.parametrize(
    ("text", "triplets"),
    [
        ("A | b | ?", [("A", "b", "?")]),
        ("1. A | b | ?\n- 'C' | d | \"?\"", [("A", "b", "?"), ("C", "d", "?")]),
        ("A | b | ?\nA | B | ?", [("A", "b", "?")]),
        ("Question: A | b | ?\nExamples: A | b | ?", []),
        ("? | is related to | all the words of a long question", []),
        ("? | is related to | Rome", [("?", "is related to", "Rome")]),
        ("\n".join(f"{name} | b | ?" for name in "ABCD"), [(name, "b", "?") for name in "ABC"]),
        ("", []),
    ],
)
def test_the_simple_prompt(text, triplets):
    assert list(original.parse_simple(text).triplets) == triplets


BLOCK = "Subject: A\nPredicate: b\nObject: {}\n"


@pytest.mark.parametrize(
    ("text", "resolved", "traceable"),
    [
        ("Fully Resolved Clue 1:\n" + BLOCK.format("C"), [("A", "b", "C")], []),
        ("Newly Traceable Clue 1:\n" + BLOCK.format("?"), [], [("A", "b", "?")]),
        ("  Fully Resolved Clue\n" + BLOCK.format("?"), [("A", "b", "?")], []),
        ("Fully Resolved Clue 1:\nSubject: A\nObject: C", [], []),
        ("Fully Resolved Clue 1:\nSubject: A: x\nPredicate: b\nObject:", [("A: x", "b", "")], []),
        (BLOCK.format("C"), [], []),
        ("**Fully Resolved Clue 1:**\n" + BLOCK.format("C"), [], []),
        ("Fully Resolved Clue 1:\n- Subject: A\n- Predicate: b\n- Object: C", [], []),
        ("no", [], []),
    ],
)
def test_resolution(text, resolved, traceable):
    assert original.parse_resolution(text) == (tuple(resolved), tuple(traceable))


def test_queries():
    state = OriginalState(
        (("R", "s", "T"),),
        (
            ("A", "b", "?x"),
            ("?", "c", "D"),
            ("the director of ?film", "is", "H"),
            ("", "e", "?"),
            ("?x", "?y", "?z"),
        ),
    )
    assert original.queries(state, "Who?") == ["A b", "c D", "the director of ?film is H", "e"]
    assert original.queries(OriginalState(), "Who is it?") == ["is it"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Whose mother ran the show?", "se mother ran the s"),
        ("Who owns the whole Showhowdy company?", "owns the le sdy company"),
        ("What?", ""),
    ],
)
def test_wh_words_are_cut_out_of_longer_words(question, text):
    assert original.strip_question(question) == text


def test_what_is_not_repeated_is_gone():
    before = OriginalState((("R", "s", "T"),), (("A", "b", "?"), ("C", "d", "?")), (DOUBLE,))
    newly = [("E", "f", "?"), ("G", "h", "I"), ("?", "j", "?")]
    assert original.update(before, [("A", "b", "X")], newly) == OriginalState(
        (("R", "s", "T"), ("A", "b", "X"), ("G", "h", "I")), (("E", "f", "?"),)
    )


def test_the_last_prompt_shows_each_fact_once():
    state = OriginalState((("A", "b", "C"), ("a", "B", " c")), (("D", "e", "?"),), (DOUBLE,))
    assert original.final_triplets(state) == (("A", "b", "C"), ("D", "e", "?"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: x", "x"),
        ("Answer: x\nAnswer: y ", "y"),
        (" x ", " x "),
        ("answer: x", "answer: x"),
    ],
)
def test_answer(text, answer):
    assert original.parse_answer(text) == answer
