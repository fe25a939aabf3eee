"""One chain, worked by hand: Vertigo -> its director -> where he was born."""

import pytest

from triax.records.documents import Chunk, Document
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question, Step
from triax.records.triplets import Triplet
from triax.scoring.error_classes import (
    CLASSES,
    Bound,
    Fact,
    bound_values,
    error_class,
    gold_facts,
    is_resolved,
)

TEXTS = {
    "v": ("Vertigo", "Vertigo is a film by Alfred Hitchcock. Its music is by Bernard Herrmann."),
    "h": ("Alfred Hitchcock", "He was born in London and had a house in Paris."),
    "x": ("Psycho", "Psycho is a film of 1960."),
}
CHUNKS = {key: Chunk(key, key, text, title) for key, (title, text) in TEXTS.items()}
DOCUMENTS = {key: Document(key, text, title) for key, (title, text) in TEXTS.items()}
ASKED = "Where was the director of Vertigo born?"
TRIPLETS = (
    Triplet("Vertigo", "director", "Alfred Hitchcock"),
    Triplet("Alfred Hitchcock", "place of birth", "London"),
)
# As 2WikiMultiHopQA says it, and as MuSiQue does.
QUESTION = Question("q", ASKED, ("London",), "compositional", ("v", "h"), gold_triplets=TRIPLETS)
STEPPED = Question(
    "s",
    ASKED,
    ("London",),
    "2hop",
    ("v", "h"),
    steps=(
        Step("Vertigo >> director", "Alfred Hitchcock", "v"),
        Step("#1 >> birthplace", "London", "h"),
    ),
)
WRITTEN = (("Vertigo", "directed by", "?d"), ("?d", "born in", "?p"))
OPEN_BIRTH = ["Alfred Hitchcock", "born in", "?p"]


def resolved(*fields, sources=(), number=1):
    return {"triplet": list(fields), "chunk_ids": list(sources), "round": number}


def trace(*known, found=("v", "h"), searchable=(), fuzzy=(), error=None, written=WRITTEN):
    """One round, which found all; a value without sources is looked for in what that found."""
    return {
        "error": error,
        "decomposition": [list(one) for one in written],
        "rounds": [{"number": 1, "chunks": [{"id": one} for one in found], "propositions": []}],
        "final": {"resolved": list(known), "searchable": list(searchable), "fuzzy": list(fuzzy)},
        "chunk_ids": list(found),
    }


BY = resolved("Vertigo", "directed by", "Alfred Hitchcock", sources=["v"])
BORN = resolved("Alfred Hitchcock", "born in", "London", sources=["h"])
PARIS = resolved("Alfred Hitchcock", "born in", "Paris", sources=["h"])
ROME = resolved("Alfred Hitchcock", "born in", "Rome")
HERRMANN = resolved("Vertigo", "directed by", "Bernard Herrmann", sources=["v"])


def classed(question, *known, **fields):
    return error_class(question, trace(*known, **fields), CHUNKS, DOCUMENTS)


CASES = {
    "failed": trace(BY, error="resolution: down"),
    # Hitchcock and London are both bound, and the answer is another.
    "synthesis": trace(BY, BORN),
    # The birthplace is not asked for; all that was asked for is right.
    "decomposition": trace(BY, written=WRITTEN[:1]),
    # London is open, and h tells it.
    "missing_retrieval": trace(BY, found=("v", "x"), searchable=[OPEN_BIRTH]),
    # Rome is in neither passage.
    "hallucination": trace(BY, ROME),
    # Paris is, and is not the birthplace.
    "wrong_resolution": trace(BY, PARIS),
    # The passages of both are there.
    "unresolved": trace(BY, searchable=[OPEN_BIRTH]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("question", [QUESTION, STEPPED], ids=["triplets", "steps"])
def test_each_class_by_hand(question, name):
    assert error_class(question, CASES[name], CHUNKS, DOCUMENTS) == name
    assert name in CLASSES


@pytest.mark.parametrize("question", [QUESTION, STEPPED], ids=["triplets", "steps"])
def test_an_earlier_class_wins(question):
    # The document of what was made up, or was bound to another value, was not found.
    assert classed(question, BY, ROME, found=["v"]) == "missing_retrieval"
    assert classed(question, BY, PARIS, found=["v"]) == "missing_retrieval"
    # Of two other values one is made up.
    assert classed(question, HERRMANN, ROME) == "hallucination"
    # A first step that went wrong leaves the second open.
    assert classed(question, HERRMANN, searchable=[["?d", "born in", "?p"]]) == "wrong_resolution"
    # Another value beside all the right ones does no harm.
    assert classed(question, BY, BORN, PARIS) == "synthesis"


def test_only_the_document_of_a_missing_fact_counts():
    assert classed(QUESTION, BY, found=["h"], searchable=[OPEN_BIRTH]) == "unresolved"
    assert classed(STEPPED, BY, found=["h"], searchable=[OPEN_BIRTH]) == "unresolved"


def test_a_decomposition_is_compared_with_a_gold_one():
    gold = tuple(QueryTriplet.parse(*one) for one in WRITTEN)
    asked = Question("g", ASKED, ("London",), "", ("v", "h"), (), TRIPLETS, gold)
    left = {"searchable": [["?d", "born in", "?p"]], "found": ["x"]}
    assert classed(asked, **left) == "missing_retrieval"
    # Other words for the predicate, and more words around the name, are the same.
    same = (("film Vertigo", "director", "?1"), ("?1", "birthplace", "?2"))
    assert classed(asked, **left, written=same) == "missing_retrieval"
    for other in (
        WRITTEN[:1],
        (("Vertigo", "directed by", "?d"), ("?e", "born in", "?p")),
        (("Psycho", "directed by", "?d"), ("?d", "born in", "?p")),
        (),
    ):
        assert classed(asked, **left, written=other) == "decomposition"
    # It is to blame for nothing where all was found in spite of it.
    assert classed(asked, BY, BORN, written=WRITTEN[:1]) == "synthesis"
    # Gold steps have no names to compare, only links.
    assert classed(STEPPED, **left, written=WRITTEN[:1]) == "decomposition"
    assert classed(STEPPED, **left, written=same) == "missing_retrieval"


def test_hotpotqa_knows_the_answer_and_the_titles():
    asked = Question("h", ASKED, ("London",), "bridge", ("v", "h"))
    assert gold_facts(asked, DOCUMENTS) == (Fact((("London",),), frozenset({"h"})),)
    assert classed(asked, BY, BORN) == "synthesis"
    assert classed(asked, BY, PARIS) == "wrong_resolution"
    assert classed(asked, BY, searchable=[OPEN_BIRTH]) == "unresolved"
    assert classed(asked, BY, found=["v"], searchable=[OPEN_BIRTH]) == "missing_retrieval"


def test_where_the_data_does_not_say_enough():
    polar = Question("p", "Was Vertigo shot in London?", ("no",), "", ("v", "h"))
    assert gold_facts(polar, DOCUMENTS) == ()
    assert classed(polar, BY) == "other"
    assert classed(polar, BY, found=["v"]) == "missing_retrieval"
    assert classed(polar, BY, fuzzy=[OPEN_BIRTH]) == "unresolved"
    lost = Question("p", "Was it?", ("no",), "", ("v",), ("lost",))
    assert classed(lost, BY) == "missing_retrieval"


def test_facts_are_what_the_question_does_not_name():
    """`Vertigo` stands in the question; of a gold document, v has Hitchcock, h has both."""
    assert gold_facts(QUESTION, DOCUMENTS) == (
        Fact((("Alfred Hitchcock",),), frozenset({"v", "h"})),
        Fact((("Alfred Hitchcock",), ("London",)), frozenset({"h"})),
    )
    assert gold_facts(STEPPED, DOCUMENTS) == (
        Fact((("Alfred Hitchcock",),), frozenset({"v"})),
        Fact((("London",),), frozenset({"h"})),
    )
    # Where no gold document has it, each of them may tell it in other words.
    other = Question("o", "?", ("Leyton",), "", ("v", "h"))
    assert gold_facts(other, DOCUMENTS) == (Fact((("Leyton",),), frozenset({"v", "h"})),)


def test_names_agree_where_one_holds_the_other():
    longer = resolved("Vertigo", "directed by", "Sir Alfred Hitchcock", sources=["v"])
    assert classed(STEPPED, longer, BORN) == "synthesis"
    # Not by one short word.
    short = Question("u", "Where?", ("US Virgin Islands",), "", ("h",))
    us = resolved("?x", "is in", "US", sources=["h"])
    assert classed(short, us) == "wrong_resolution"


def test_bound_values_are_those_of_placeholders():
    known = resolved("Alfred Hitchcock", "is", "a director", number=0)  # of the decomposition
    assert bound_values(QUESTION, trace(known, BY, ROME), CHUNKS) == [
        Bound("Alfred Hitchcock", True),
        Bound("Rome", False),
    ]
    # The source is empty where no text has both ends; the value may stand there all the same.
    apart = resolved("Alfred Hitchcock", "born in", "Paris")
    assert bound_values(QUESTION, trace(apart), CHUNKS)[1] == Bound("Paris", True)
    # Found later, so not read then.
    later = trace(apart, found=["v"])
    later["rounds"].append({"number": 2, "chunks": [{"id": "h"}], "propositions": []})
    assert bound_values(QUESTION, later, CHUNKS)[1] == Bound("Paris", False)
    # A proposition is read too.
    later["rounds"][0]["propositions"] = [{"text": "Hitchcock lived in Paris"}]
    assert bound_values(QUESTION, later, CHUNKS)[1] == Bound("Paris", True)
    # A triplet of no query triplet: its ends that nothing has named.
    free = resolved("Vertigo", "music by", "Bernard Herrmann", sources=["v"])
    assert bound_values(QUESTION, trace(free), CHUNKS) == [Bound("Bernard Herrmann", True)]
    # What the question names is not made up, however wrong.
    itself = resolved("Vertigo", "directed by", "Vertigo")
    assert bound_values(QUESTION, trace(itself), CHUNKS) == [Bound("Vertigo", True)]
    assert classed(STEPPED, itself) == "wrong_resolution"


def test_without_a_state_there_is_no_class():
    vanilla = {"error": None, "final": None, "decomposition": [], "chunk_ids": ["v"], "rounds": []}
    for error in (None, "reading: down"):
        found = vanilla | {"error": error}
        assert error_class(QUESTION, found, CHUNKS, DOCUMENTS) is None
        assert is_resolved(found) is None


def test_resolved_is_with_nothing_open():
    assert is_resolved(trace(BY)) is True
    assert is_resolved(trace(BY, searchable=[OPEN_BIRTH])) is False
    assert is_resolved(trace(fuzzy=[OPEN_BIRTH])) is False
    # Nothing is open either where the decomposition failed.
    assert is_resolved(trace(error="decomposition: down")) is None


def test_a_chunk_of_another_corpus_is_refused():
    with pytest.raises(KeyError, match="lost"):
        classed(QUESTION, BY, found=["lost"], searchable=[OPEN_BIRTH])
