"""The demo is checked against itself: each question against its passages and their triplets."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest

from triax.corpora.demo_corpus import load_demo, load_demo_corpus
from triax.records.query_triplets import Placeholder, QueryTriplet, Term
from triax.records.questions import Question
from triax.records.text import normalise
from triax.records.triplets import Triplet

DEMO = load_demo()
PASSAGES = {one.id: normalise(f"{one.title}\n{one.text}") for one in DEMO.documents}
TRIPLETS = {one.chunk_id: one.triplets for one in DEMO.extractions}
CHAINS = ("bridge", "compositional", "inference")
PAIRS = ("comparison", "yes_no")

Bindings = dict[str, str]


def each(*kinds: str) -> pytest.MarkDecorator:
    """One test for each question of these kinds; of every kind if none is named."""
    found = [one for one in DEMO.questions if not kinds or one.kind in kinds]
    return pytest.mark.parametrize("question", found, ids=lambda question: question.id)


def unify(query: QueryTriplet, triplet: Triplet, bindings: Mapping[str, str]) -> Bindings | None:
    """The bindings, extended so that the query says what the triplet says; None if it cannot."""
    extended = dict(bindings)
    for term, value in zip(query.terms, map(normalise, triplet.fields)):
        match term:
            case Term(parts=(Placeholder(name=name),)):
                if extended.setdefault(name, value) != value:
                    return None
            case _:
                if term.placeholders or normalise(term.known) != value:
                    return None
    return extended


def solutions(
    queries: tuple[QueryTriplet, ...], triplets: Iterable[Triplet], bindings: Mapping[str, str]
) -> Iterator[Bindings]:
    """Every consistent way to find each query triplet among the triplets."""
    if not queries:
        yield dict(bindings)
        return
    for triplet in triplets:
        extended = unify(queries[0], triplet, bindings)
        if extended is not None:
            yield from solutions(queries[1:], triplets, extended)


def every_triplet() -> list[Triplet]:
    """The triplets of all passages, each once."""
    return list(dict.fromkeys(one for triplets in TRIPLETS.values() for one in triplets))


def test_unifier_binds_a_name_once_and_compares_without_case() -> None:
    facts = [Triplet("A Film?", "directed by", "Ann"), Triplet("Ann", "was born in", "Rome")]
    chain = (
        QueryTriplet.parse("a film?", "Directed by", "?x"),
        QueryTriplet.parse("?x", "was born in", "?y"),
    )
    assert list(solutions(chain, facts, {})) == [{"x": "ann", "y": "rome"}]
    assert not list(solutions((QueryTriplet.parse("?x", "was born in", "?x"),), facts, {}))
    assert not list(solutions(chain[:1], facts[1:], {}))


def test_counts() -> None:
    assert 110 <= len(DEMO.documents) <= 130
    assert Counter(one.kind for one in DEMO.questions) == dict.fromkeys((*CHAINS, *PAIRS), 12)
    for split, number in (("dev", 4), ("test", 8)):
        part = load_demo(split)
        assert Counter(one.kind for one in part.questions) == dict.fromkeys(
            (*CHAINS, *PAIRS), number
        )
        assert part.documents == DEMO.documents and part.extractions == DEMO.extractions


def test_splits_are_disjoint_and_complete() -> None:
    parts = [one.id for split in ("dev", "test") for one in load_demo(split).questions]
    assert sorted(parts) == sorted(one.id for one in DEMO.questions)


def test_another_split_is_refused() -> None:
    with pytest.raises(ValueError, match="train"):
        load_demo("train")


def test_nothing_stands_twice() -> None:
    for values in (
        [one.id for one in DEMO.documents],
        [normalise(one.title) for one in DEMO.documents],
        [normalise(one.text) for one in DEMO.documents],
        [one.id for one in DEMO.questions],
        [normalise(one.text) for one in DEMO.questions],
        [one.chunk_id for one in DEMO.extractions],
    ):
        assert len(set(values)) == len(values)


def test_lengths() -> None:
    for document in DEMO.documents:
        assert 40 <= len(document.text.split()) <= 90, document.id
        for sentence in re.split(r"(?<=[.!?])\s+", document.text):
            assert len(sentence.split()) <= 60, sentence


def test_every_passage_has_its_extraction() -> None:
    assert [one.chunk_id for one in DEMO.extractions] == [one.id for one in DEMO.documents]
    for extraction in DEMO.extractions:
        assert extraction.status == "ok"
        assert 4 <= len(extraction.triplets) <= 9, extraction.chunk_id
        assert len(set(extraction.triplets)) == len(extraction.triplets), extraction.chunk_id


def test_triplets_and_entities_are_spans_of_their_passage() -> None:
    for extraction in DEMO.extractions:
        ends = {end for one in extraction.triplets for end in (one.subject, one.object)}
        assert set(extraction.entities) <= ends and extraction.entities
        for end in ends:
            # As whole words: "Nine" is no span of "nineteen".
            pattern = rf"(?<!\w){re.escape(normalise(end))}(?!\w)"
            assert re.search(pattern, PASSAGES[extraction.chunk_id]), (extraction.chunk_id, end)


def test_harder_realities_are_there() -> None:
    titles = {one.title for one in DEMO.documents}
    assert {"What's Up, Doc?", "Krzysztof Kieślowski", "São Paulo", "8½"} <= titles
    assert sum(title.startswith("Martin ") for title in titles) == 3
    assert "лев толстой" in PASSAGES["demo-p041"]
    stated = Counter(one for triplets in TRIPLETS.values() for one in triplets)
    assert sum(number > 1 for number in stated.values()) >= 5
    used = {gold for one in DEMO.questions for gold in one.gold_document_ids}
    assert len(titles) - len(used) >= 20  # passages that answer nothing


@each()
def test_gold_passages_exist_and_each_is_needed(question: Question) -> None:
    gold = question.gold_document_ids
    assert 2 <= len(set(gold)) == len(gold) <= 4
    assert set(gold) <= set(PASSAGES)
    for document_id in gold:
        assert set(TRIPLETS[document_id]) & set(question.gold_triplets), document_id


@each()
def test_gold_triplets_are_recorded_in_gold_passages(question: Question) -> None:
    recorded = {one for gold in question.gold_document_ids for one in TRIPLETS[gold]}
    assert question.gold_triplets and set(question.gold_triplets) <= recorded


@each(*CHAINS)
def test_answer_of_a_chain_is_in_a_gold_passage(question: Question) -> None:
    answer = normalise(question.answers[0])
    assert any(answer in PASSAGES[gold] for gold in question.gold_document_ids)
    assert answer not in normalise(question.text)


@each("comparison")
def test_answer_of_a_comparison_is_named(question: Question) -> None:
    answer = normalise(question.answers[0])
    golds = (PASSAGES[gold] for gold in question.gold_document_ids)
    assert answer in normalise(question.text) or all(answer in gold for gold in golds)


@each()
def test_no_passage_records_all_gold_triplets(question: Question) -> None:
    assert not [key for key, own in TRIPLETS.items() if set(question.gold_triplets) <= set(own)]


@each(*CHAINS)
def test_no_passage_names_both_what_is_known_and_the_answer(question: Question) -> None:
    wanted = {normalise(question.answers[0])}
    for query in question.gold_query_triplets:
        wanted |= {normalise(term.known) for term in (query.subject, query.object) if term.known}
    assert len(wanted) >= 2
    assert not [key for key, text in PASSAGES.items() if all(one in text for one in wanted)]


@each()
def test_query_triplets_unify_with_gold_triplets(question: Question) -> None:
    queries = question.gold_query_triplets
    assert len(queries) == len(question.gold_triplets)
    (found,) = solutions(queries, question.gold_triplets, {})
    filled = {tuple(map(normalise, one.fill(found).as_triplet().fields)) for one in queries}
    assert filled == {tuple(map(normalise, one.fields)) for one in question.gold_triplets}


@each()
def test_known_parts_of_query_triplets_come_from_the_question(question: Question) -> None:
    # A decomposition may only name what the question names: no film, person or place besides.
    asked = set(re.findall(r"\w+", normalise(question.text)))
    for query in question.gold_query_triplets:
        for term in (query.subject, query.object):
            words = set(re.findall(r"\w+", normalise(term.known)))
            assert words <= asked, (term.known, question.text)


@each(*CHAINS)
def test_query_triplets_have_one_answer_among_all_triplets(question: Question) -> None:
    queries = question.gold_query_triplets
    (asked,) = queries[-1].object.placeholders
    found = {one[asked.name] for one in solutions(queries, every_triplet(), {})}
    assert found == {normalise(question.answers[0])}


MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
QUANTITY = re.compile(rf"(?:(?:(\d+) )?({'|'.join(MONTHS)}) )?([\d,]+)(?: kilometres)?")


def quantity(value: str) -> tuple[int, int, int]:
    """A date as (year, month, day) with 0 where it says nothing; a year or length as (n, 0, 0)."""
    found = QUANTITY.fullmatch(value)
    assert found, value
    day, month, number = found.groups()
    return (
        int(number.replace(",", "")),
        MONTHS.index(month) + 1 if month else 0,
        int(day) if day else 0,
    )


def compared(question: Question) -> tuple[dict[str, str], bool]:
    """What each of the two compared things comes to, and whether both share one unknown."""
    (found,) = solutions(question.gold_query_triplets, question.gold_triplets, {})
    ends: dict[str, str] = {}
    for query in question.gold_query_triplets:
        if query.subject.known:
            thing = normalise(query.subject.known)
        ends[thing] = query.object.placeholders[0].name
    assert len(ends) == 2
    return {thing: found[end] for thing, end in ends.items()}, len(set(ends.values())) == 1


def test_quantities_are_ordered() -> None:
    assert quantity("13 march 1781") == (1781, 3, 13) < quantity("july 1898") < quantity("3,530")


@each("comparison")
def test_comparison_comes_out_as_its_answer(question: Question) -> None:
    values, is_shared = compared(question)
    if is_shared:
        (answer,) = set(values.values())
    else:
        wants_most = bool(re.search(r"\b(later|longer)\b", question.text))
        assert wants_most != bool(re.search(r"\b(first|earlier|older)\b", question.text))
        ranked = sorted(values, key=lambda thing: quantity(values[thing]), reverse=wants_most)
        assert quantity(values[ranked[0]]) != quantity(values[ranked[1]])
        answer = ranked[0]
    assert answer == normalise(question.answers[0])


@each("yes_no")
def test_yes_or_no_comes_out_as_its_answer(question: Question) -> None:
    values, _ = compared(question)
    left, right = values.values()
    if re.search(r"\b(before|older)\b", question.text):
        holds = quantity(left) < quantity(right)
    else:
        assert re.search(r"\b(same|share)\b", question.text)
        holds = left == right
    assert question.answers == (("yes",) if holds else ("no",))


def test_yes_and_no_are_balanced() -> None:
    counts = Counter(one.answers[0] for one in DEMO.questions if one.kind == "yes_no")
    assert counts == {"yes": 6, "no": 6}


def test_corpus_form_keeps_everything() -> None:
    corpus = load_demo_corpus()
    assert corpus.name == "demo"
    assert tuple(corpus.documents) == DEMO.documents
    assert tuple(corpus.questions) == DEMO.questions
    assert not any(one.unmatched_gold for one in corpus.questions)
    assert tuple(load_demo_corpus("dev", limit=3).questions) == load_demo("dev").questions[:3]
