import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning.golden import check_golden
from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.context import Budget
from triax.reasoning.resolve import (
    FillingResolver,
    PromptedResolver,
    Resolver,
    Task,
    parse_resolution,
)
from triax.records.completions import Grammar
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State
from triax.records.triplets import Proposition, Triplet


def triplet(text):
    return QueryTriplet.parse(*(part.strip() for part in text.split("|")))


BLOCKS = "{a}Subject:{b} A{c}\n{a}Predicate:{b} is by{c}\n{a}Object:{b} C{c}"
TWO = ["A | is by | C", "C | born in | ?place"]

FORMS = {
    "as asked": "Resolved:\nA | is by | C\nSearchable:\nC | born in | ?place",
    "blank lines": "Resolved:\n\nA | is by | C\n\nSearchable:\n\nC | born in | ?place\n",
    "bold headings": "**Resolved:**\nA | is by | C\n\n**Searchable:**\nC | born in | ?place",
    "bold, colon outside": "**Resolved**:\nA | is by | C\n**Searchable**:\nC | born in | ?place",
    "hash headings": "## Resolved\nA | is by | C\n## Searchable triplets\nC | born in | ?place",
    "bullets": "Resolved:\n- A | is by | C\nSearchable:\n* C | born in | ?place",
    "numbers": "Resolved:\n1. A | is by | C\n2. C | born in | ?place",
    "on the heading's line": "Resolved: A | is by | C\nSearchable: C | born in | ?place",
    "fence": "```\nResolved:\nA | is by | C\nSearchable:\nC | born in | ?place\n```",
    "prose around": "Here is what I found:\n\nResolved:\nA | is by | C\nSearchable:\n"
    "C | born in | ?place\n\nLet me know if you need more.",
    "none under one heading": "Resolved:\nA | is by | C\nC | born in | ?place\nSearchable:\nnone",
    "thinking": "<think>Maybe X | y | Z. none</think>\nA | is by | C\nC | born in | ?place",
    "bold lines": "**A | is by | C**\n**C | born in | ?place**",
    "table": "| A | is by | C |\n| C | born in | ?place |",
    "table with head": "| Subject | Predicate | Object |\n|---|---|---|\n| A | is by | C |\n"
    "| C | born in | ?place |",
    "labels in a line": "Subject: A | Predicate: is by | Object: C\n"
    "Subject: C | Predicate: born in | Object: ?place",
    "T2RAG's clues": "Fully Resolved Clue 1:\nSubject: A\nPredicate: is by\nObject: C\n"
    "Newly Traceable Clue 1:\nSubject: C\nPredicate: born in\nObject: ?place",
    "T2RAG's clues in bold": "**Fully Resolved Clue 1:**\n- **Subject:** A\n"
    "- **Predicate:** is by\n- **Object:** C\n\n**Newly Traceable Clue 1:**\n- **Subject:** C\n"
    "- **Predicate:** born in\n- **Object:** ?place",
    "clues, colon outside": "1. **Fully Resolved Clue 1**\n   * **Subject**: A\n"
    "   * **Predicate**: is by\n   * **Object**: C\n2. **Newly Traceable Clue 1**\n"
    "   * **Subject**: C\n   * **Predicate**: born in\n   * **Object**: ?place",
    "blocks and lines": "Resolved:\nSubject: A\nPredicate: is by\nObject: C\nSearchable:\n"
    "C | born in | ?place",
    "json": '[["A", "is by", "C"], ["C", "born in", "?place"]]',
    "windows lines": "Resolved:\r\nA | is by | C\r\nSearchable:\r\nC | born in | ?place\r\n",
    "repeated": "A | is by | C\nA | is by | C\nC | born in | ?place",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_r01_forms_that_models_use(text):
    assert [str(found) for found in parse_resolution(text)] == TWO


@pytest.mark.parametrize("a", ["", "- ", "* ", "> ", "  "])
@pytest.mark.parametrize("b", ["", "  "])
@pytest.mark.parametrize("c", ["", "  ", "**"])
def test_r01_blocks_in_any_dress(a, b, c):
    [found] = parse_resolution(BLOCKS.format(a=a, b=b, c=c))
    assert str(found) == "A | is by | C"


SIGNED = (
    "What's Up, Doc?",
    "C++",
    "Mother!",
    "U.S.",
    "(500) Days",
    "M*A*S*H",
    '"Heroes"',
    "\u00bfQu\u00e9?",
)


@pytest.mark.parametrize("name", SIGNED)
def test_r25_a_name_keeps_its_signs(name):
    [found] = parse_resolution(f"Subject: A\nPredicate: is\nObject: {name}")
    assert found.object.known == name
    assert found.kind == "resolved"


def test_r26_a_placeholder_under_resolved_is_no_value():
    [found] = parse_resolution("Fully Resolved Clue 1:\nSubject: A\nPredicate: b\nObject: ?")
    assert found.kind == "searchable"


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "None.",
        "- none",
        "N/A",
        "Resolved: none\nSearchable: none",
        "**Resolved:**\nNone\n**Searchable:**\nNone",
        "None of the triplets can be resolved from the evidence.",
        "No new triplets.",
        "Nothing",
    ],
)
def test_none_is_an_answer(text):
    assert parse_resolution(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "no",
        "I cannot answer.",
        "Resolved:\nSearchable:",
        "A is by C",
        "A | is by",
        "Subject: A\nPredicate: b",
        "Subject: A\nPredicate: b\nObject:",
        "<think>A | is by | C",
        "<think>none",
    ],
)
def test_r26_what_says_nothing_is_unreadable(text):
    with pytest.raises(Unreadable, match="neither a triplet"):
        parse_resolution(text)


def test_an_incomplete_block_lends_nothing_to_the_next():
    text = "Subject: A\nPredicate: b\nSubject: C\nPredicate: d\nObject: E"
    assert [str(found) for found in parse_resolution(text)] == ["C | d | E"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A | b | C\nD | e | Fre", ["A | b | C"]),
        ("A | b | C\nD | e | F\n", ["A | b | C", "D | e | F"]),
        ("A | b | C\nSubject: D\nPredicate: e\nObject: Fre", ["A | b | C"]),
    ],
)
def test_r01_the_last_line_of_a_cut_answer_is_left_out(text, found):
    assert [str(one) for one in parse_resolution(text, is_cut=True)] == found


def test_r01_an_answer_cut_in_its_first_line_is_unreadable():
    with pytest.raises(Unreadable):
        parse_resolution("A | b | Fre", is_cut=True)


@given(st.text(alphabet="AB?|:\n *-#subjectSresolvdRnone", max_size=80), st.booleans())
def test_r01_no_text_breaks_the_parser(text, is_cut):
    try:
        found = parse_resolution(text, is_cut=is_cut)
    except Unreadable:
        return
    assert all(isinstance(one, QueryTriplet) for one in found)


names = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=4, unique=True))
def test_blocks_and_lines_say_the_same(rows):
    rows = [tuple(f"x{part}" for part in row) for row in rows]
    lines = "\n".join(" | ".join(row) for row in rows)
    blocks = "\n".join("Subject: {}\nPredicate: {}\nObject: {}".format(*row) for row in rows)
    assert parse_resolution(lines) == parse_resolution(blocks)


QUESTION = Question("q", "Where was the director of Vertigo born?")
STATE = State.of(
    map(
        triplet, ["Vertigo | released in | 1958", "Vertigo | directed by | ?d", "?d | born in | ?c"]
    )
)
EVIDENCE = Evidence(
    (ScoredChunk(Chunk("a", "a", "Vertigo is a film by Hitchcock.", "Vertigo"), 1.0),),
    (
        Hit(
            Proposition("p", Triplet("Vertigo", "by", "Hitchcock"), "Vertigo by Hitchcock", ("a",)),
            1.0,
            ("a",),
        ),
    ),
)


def resolve(kind, answers, *states, **options):
    completer = ScriptedCompleter(answers)
    resolver = kind(completer, **options)
    assert isinstance(resolver, Resolver)
    tasks = [
        Task(Question(f"q{i}", QUESTION.text), state, EVIDENCE)
        for i, state in enumerate(states or [STATE])
    ]
    return asyncio.run(resolver.resolve(tasks)), completer


def shown(reply):
    return None if reply.value is None else [str(query) for query in reply.value]


class TestPrompted:
    def test_one_call_a_task(self):
        replies, completer = resolve(PromptedResolver, ["A | b | C", "none"], STATE, STATE)
        assert [shown(reply) for reply in replies] == [["A | b | C"], []]
        assert [(one.stage, one.question_id) for one in completer.requests] == [
            ("resolve", "q0"),
            ("resolve", "q1"),
        ]
        check_golden("resolve_lines", completer.requests[0].messages)

    def test_chunks_can_be_left_out(self):
        _, completer = resolve(PromptedResolver, ["none"], keeps_chunks=False)
        check_golden("resolve_lines_without_chunks", completer.requests[0].messages)

    def test_the_budget_holds(self):
        _, completer = resolve(PromptedResolver, ["none"], budget=Budget(0, None, 0), max_tokens=9)
        assert (
            completer.requests[0].messages[-1].content.startswith("Known:\nVertigo | released in")
        )
        assert completer.requests[0].max_tokens == 9

    def test_r26_an_unreadable_answer_is_asked_again(self):
        [reply], completer = resolve(PromptedResolver, ["hm", "A | b | C"])
        assert (shown(reply), reply.usage.calls) == (["A | b | C"], 2)
        assert completer.requests[1].messages[-2].content == "hm"

    def test_r29_no_value_after_two_unreadable_answers(self):
        [reply], _ = resolve(PromptedResolver, ["hm", "hm"])
        assert (reply.value, reply.is_failed) == (None, False)

    def test_no_tasks_make_no_call(self):
        completer = ScriptedCompleter([])
        assert asyncio.run(PromptedResolver(completer).resolve([])) == []
        assert completer.requests == []


TWO_OPEN = State.of(map(triplet, ["Vertigo | directed by | ?d", "Stalker | directed by | ?e"]))


class TestFilling:
    def test_one_call_a_searchable_triplet(self):
        replies, completer = resolve(FillingResolver, ["Hitchcock", "H", "T"], STATE, TWO_OPEN)
        assert shown(replies[0]) == ["Vertigo | directed by | Hitchcock"]
        assert shown(replies[1]) == ["Vertigo | directed by | H", "Stalker | directed by | T"]
        assert [reply.usage.calls for reply in replies] == [1, 2]
        assert [one.question_id for one in completer.requests] == ["q0", "q1", "q1"]
        check_golden("resolve_filling", completer.requests[0].messages)

    def test_chunks_can_be_left_out(self):
        _, completer = resolve(FillingResolver, ["x"], keeps_chunks=False)
        check_golden("resolve_filling_without_chunks", completer.requests[0].messages)

    @pytest.mark.parametrize(
        ("query", "gap"),
        [
            ("A | b | ?x", "A | b | ?"),
            ("?x | b | C", "? | b | C"),
            ("the director of ?film | is | H", "the director of ? | is | H"),
        ],
    )
    def test_the_gap_has_no_name(self, query, gap):
        _, completer = resolve(FillingResolver, ["x"], State.of([triplet(query)]))
        assert completer.requests[0].messages[-1].content.endswith(f"\n\n{gap}")

    @pytest.mark.parametrize(
        ("query", "answer", "filled"),
        [
            ("A | b | ?x", "C", "A | b | C"),
            ("A | b | ?", "C", "A | b | C"),
            ("?x | b | C", "A", "A | b | C"),
            ("A | b | ?x", '"C"\nbecause', "A | b | C"),
            ("A | b | ?x", "**C**", "A | b | C"),
            ("A | b | ?x", 'the "C"', 'A | b | the "C"'),
            ("A | b | ?x", "A | b | C", "A | b | C"),
            ("?x | b | C", "A | b | C", "A | b | C"),
            ("A | b | ?x", "| C", "A | b | C"),
            ("A | b | ?x", "<think>hm</think>C", "A | b | C"),
            ("A | b | ?x", "What's Up, Doc?", "A | b | What's Up, Doc?"),
            ("the director of ?f | is | H", "Vertigo", "the director of Vertigo | is | H"),
            ("?x | knows | ?x", "A", "A | knows | A"),
        ],
    )
    def test_the_value_goes_into_the_gap(self, query, answer, filled):
        [reply], _ = resolve(FillingResolver, [answer], State.of([triplet(query)]))
        assert shown(reply) == [filled]
        assert reply.value[0].kind == "resolved"

    @pytest.mark.parametrize(
        "answer",
        [
            "not found",
            "Not found.",
            "Not found in the facts.",
            "unknown",
            "None",
            "N/A",
            "I don't know",
            "?",
            "?x",
            "A | b | ?",
        ],
    )
    def test_nothing_found_is_no_fault_and_no_value(self, answer):
        [reply], _ = resolve(FillingResolver, [answer], State.of([triplet("A | b | ?x")]))
        assert (shown(reply), reply.error, reply.usage.calls) == ([], "", 1)

    @pytest.mark.parametrize("answer", ["", "\n", "**", "<think>hm"])
    def test_r26_an_empty_line_is_asked_again(self, answer):
        [reply], completer = resolve(
            FillingResolver, [answer, "C"], State.of([triplet("A | b | ?")])
        )
        assert (shown(reply), len(completer.requests)) == (["A | b | C"], 2)

    def test_r03_one_slot_that_fails_does_not_lose_the_others(self):
        [reply], _ = resolve(FillingResolver, ["__RAISE__: down", "T"], TWO_OPEN)
        assert (shown(reply), reply.error) == (["Stalker | directed by | T"], "down")
        assert reply.usage.calls == 2

    def test_r29_no_slot_answered_is_no_value(self):
        [reply], _ = resolve(FillingResolver, ["__RAISE__: down", "__RAISE__: too"], TWO_OPEN)
        assert (reply.value, reply.error, reply.is_failed) == (None, "down; too", True)
        [reply], _ = resolve(FillingResolver, ["", "", "", ""], TWO_OPEN)
        assert (reply.value, reply.is_failed) == (None, False)

    def test_fuzzy_triplets_are_not_asked(self):
        [reply], completer = resolve(FillingResolver, [], State.of([triplet("?x | b | ?y")]))
        assert (shown(reply), completer.requests) == ([], [])

    def test_the_grammar_is_made_from_the_evidence(self):
        texts = []

        def grammar(passages):
            texts.append(list(passages))
            return Grammar("regex", "x")

        _, completer = resolve(FillingResolver, ["x"], grammar=grammar)
        assert texts == [["Vertigo\nVertigo is a film by Hitchcock."]]
        assert completer.requests[0].grammar == Grammar("regex", "x")
