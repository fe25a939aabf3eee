import gzip
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.records.query_triplets import Placeholder, QueryTriplet
from triax.records.text import clean, normalise
from triax.records.triplet_text import parse_query_triplets, parse_triplets
from triax.records.triplets import Triplet

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
Fields = tuple[str, str, str]

# A field as every form can carry it: words of letters, digits and marks that separate nothing.
LETTER = st.characters(categories=["Ll", "Lu", "Lo", "Nd"], exclude_characters="ªº")
WORD = st.tuples(LETTER, st.text(st.one_of(LETTER, st.sampled_from("+#&!?'’-.é")), max_size=5)).map(
    "".join
)
FIELD = (
    st.lists(WORD, min_size=1, max_size=3)
    .map(" ".join)
    .map(clean)
    .filter(lambda text: text[0].isalpha() and normalise(text) not in set("sproht") | {"none"})
)
ROWS = st.lists(
    st.tuples(FIELD, FIELD, FIELD),
    min_size=1,
    max_size=4,
    unique_by=lambda row: tuple(map(normalise, row)),
)


def lines(form: str) -> Callable[[Sequence[Fields]], str]:
    def render(rows: Sequence[Fields]) -> str:
        return "\n".join(form.format(*row, n=n) for n, row in enumerate(rows, 1)) + "\n"

    return render


def named(names: str) -> Callable[[Sequence[Fields]], str]:
    keys = names.split()
    return lambda rows: json.dumps({"triplets": [dict(zip(keys, row)) for row in rows]})


RENDERINGS: dict[str, Callable[[Sequence[Fields]], str]] = {
    "object of lists": lambda rows: json.dumps({"triples": rows}),
    "list, not ascii": lambda rows: json.dumps(rows, ensure_ascii=False),
    "indented": lambda rows: json.dumps({"triples": rows}, indent=2),
    "fenced": lambda rows: f"Sure.\n```json\n{json.dumps({'triples': rows})}\n```\nThat is all.",
    "list a line": lambda rows: "\n".join(map(json.dumps, rows)) + "\n",
    "subject predicate object": named("subject predicate object"),
    "head relation tail": named("head relation tail"),
    "s p o": named("s p o"),
    "pipes": lines("{} | {} | {}"),
    "tight pipes": lines("{}|{}|{}"),
    "angles": lines("<{}> | <{}> | <{}>"),
    "bullets": lines("- {} | {} | {}"),
    "stars": lines("* **{}** | {} | `{}`"),
    "numbers": lines("{n}. {} | {} | {}"),
    "quotes": lines('"{}" | "{}" | "{}"'),
    "table": lambda rows: (
        "| subject | predicate | object |\n|---|---|---|\n" + lines("| {} | {} | {} |")(rows)
    ),
    "header": lambda rows: "**Triples:** " + lines("{} | {} | {}")(rows),
    "piped groups": lines("({} | {} | {})"),
    "tabs": lines("{}\t{}\t{}"),
    "groups": lines("({}, {}, {})"),
    "numbered groups": lines("{n}) ({}, {}, {})"),
    "semicolons": lines("({}; {}; {})"),
    "brackets": lines("[{}, {}, {}]"),
}


def triplets(rows: Sequence[Fields]) -> tuple[Triplet, ...]:
    return tuple(Triplet(*row) for row in rows)


@pytest.mark.parametrize("form", RENDERINGS)
@given(rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_r01_round_trip(form: str, rows: list[Fields]) -> None:
    parsed = parse_triplets(RENDERINGS[form](rows))
    assert parsed.triplets == triplets(rows)
    assert (parsed.status, parsed.reason, parsed.dropped) == ("ok", "", 0)


@pytest.mark.parametrize("form", RENDERINGS)
@given(rows=ROWS)
@settings(max_examples=5, deadline=None)
def test_r01_a_text_cut_anywhere_gives_its_first_triplets(form: str, rows: list[Fields]) -> None:
    text = RENDERINGS[form](rows)
    before = -1
    for end in range(len(text) + 1):
        parsed = parse_triplets(text[:end], is_cut=True)
        assert parsed.triplets == triplets(rows)[: len(parsed.triplets)]
        assert len(parsed.triplets) >= before
        assert parsed.status == ("partial" if parsed.triplets else "failed")
        before = len(parsed.triplets)
    assert before == len(rows)


HARD = st.text(
    st.one_of(LETTER, st.sampled_from(' "\\[]{}(),:|;\n')), min_size=1, max_size=8
).filter(lambda text: any(c.isalpha() for c in text))


@given(st.lists(st.tuples(HARD, HARD, HARD), min_size=1, max_size=3), st.booleans())
@settings(deadline=None, max_examples=30)
def test_r01_cut_json_with_brackets_and_quotes_in_its_texts(rows: list[Fields], bare: bool) -> None:
    text = json.dumps(rows if bare else {"triples": rows})
    whole = parse_triplets(text).triplets
    for end in range(len(text)):
        found = parse_triplets(text[:end]).triplets
        assert found == whole[: len(found)]


@given(st.text(st.characters(exclude_categories=()), max_size=80), st.booleans())
def test_r01_any_text_is_judged(text: str, is_cut: bool) -> None:
    check(text, is_cut)


@given(st.text("AB |,;()[]{}<>\"'\\\t\n-*?.:1`", max_size=80), st.booleans())
@settings(max_examples=300)
def test_r01_any_text_of_marks_is_judged(text: str, is_cut: bool) -> None:
    check(text, is_cut)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(st.sampled_from("s p o triples subject confidence x".split()), inner)
        ),
        max_leaves=20,
    )
)
def test_r01_any_json_is_judged(value: object) -> None:
    check(json.dumps(value), False)


def check(text: str, is_cut: bool) -> None:
    parsed = parse_triplets(text, is_cut=is_cut)
    assert (parsed.status in ("ok", "partial")) == bool(parsed.triplets)
    assert (parsed.status == "ok") == (not parsed.reason)
    assert not (parsed.status in ("ok", "empty") and (parsed.dropped or is_cut))
    for triplet in parsed.triplets:
        assert all(field and field == clean(field).strip() for field in triplet.fields)
    queries = parse_query_triplets(text, is_cut=is_cut)
    assert (queries.status, queries.dropped) == (parsed.status, parsed.dropped)


@pytest.mark.parametrize(
    ("text", "is_cut", "status"),
    [
        ("", False, "empty"),
        ("", True, "failed"),
        ("NONE", False, "empty"),
        ("Triples: none.", False, "empty"),
        ('{"triples": []}', False, "empty"),
        ('{"triples": []}', True, "failed"),
        ("There is nothing to say about this.", False, "failed"),
        ("???", False, "failed"),
        ("A | b", False, "failed"),
        ("A | b | C\nD | e", False, "partial"),
        ("A | b | C\n", True, "partial"),
        ('[["A", "b", "C"], ["D"', False, "partial"),
        ("<think>A | b | C", False, "failed"),
        ("<think>X | y | Z</think>\nA | b | C", False, "ok"),
    ],
)
def test_r02_status(text: str, is_cut: bool, status: str) -> None:
    parsed = parse_triplets(text, is_cut=is_cut)
    assert parsed.status == status
    assert parsed.triplets == ((Triplet("A", "b", "C"),) if status in ("ok", "partial") else ())


def test_r01_equal_triplets_are_one() -> None:
    parsed = parse_triplets("Émile | IS | X [0.5]\némile | is | x\nÉMILE | is | Y")
    assert parsed.triplets == (Triplet("Émile", "IS", "X", 0.5), Triplet("ÉMILE", "is", "Y"))
    assert parsed.status == "ok"


def test_r24_nothing_is_evaluated() -> None:
    text = '{"triples": [["A", __import__("os").getcwd(), "C"], ["D", "e", "F"]]}'
    assert Triplet("D", "e", "F") in parse_triplets(text).triplets
    assert os.getcwd() not in str(parse_triplets(text))


def test_r01_what_t2rag_loses_or_bends() -> None:
    # Answers on which the released parser was measured to lose triplets or to bend their subjects.
    for text, subject in [
        ("Triples:\n- A | b | ?", "A"),
        ("Triples:\n1. C | d | ?", "C"),
        ("Triples: A | b | ?", "A"),
        ("**Triples:**\n- Dr. Who | b | ?", "Dr. Who"),
        ("Triples:\nsubject | predicate | object\nA | b | ?", "A"),
    ]:
        (query,) = parse_query_triplets(text).triplets
        assert query == QueryTriplet.parse(subject, query.predicate.known, "?")


def test_r25_placeholders_of_queries() -> None:
    text = """Reasoning: one film, one director.
    Triples:
    1. "What's Up, Doc?" | directed by | ?director
    2. ?director | born in | ?
    """
    first, second = parse_query_triplets(text).triplets
    assert (first.kind, second.kind) == ("searchable", "fuzzy")
    assert first.subject.known == "What's Up, Doc?"
    assert second.subject.placeholders == (Placeholder("director"),)


def test_r25_described_unknowns() -> None:
    author = "<the author of 'The Republic'>"
    text = f"[{author}, wrote, 'The Republic']\n[?, taught, {author}]"
    first, second = parse_query_triplets(text).triplets
    assert first.kind == "searchable"
    assert first.subject == second.object
    assert parse_query_triplets("<A> | <b> | <?x>").triplets == (
        QueryTriplet.parse("A", "b", "?x"),
    )


@pytest.mark.data
def test_r01_recorded_answers_of_gpt() -> None:
    path = DATA / "musique" / "openie_gpt35.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    assert len(rows) == 1890
    dropped = 0
    for row in rows:
        text = json.dumps({"named_entities": row["entities"], "triples": row["triples"]})
        parsed = parse_triplets(text)
        wanted = {
            tuple(normalise(field) for field in fields): None
            for fields in row["triples"]
            if len(fields) == 3
        }
        found = [tuple(normalise(field) for field in t.fields) for t in parsed.triplets]
        assert [fields for fields in found if fields in wanted] == list(wanted)
        assert parsed.dropped == sum(len(fields) < 3 for fields in row["triples"])
        if not row["triples"]:
            assert parsed.status == "empty"
        dropped += parsed.dropped
    assert dropped == 70
