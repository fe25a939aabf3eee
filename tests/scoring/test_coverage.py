import doctest

import pytest

from triax.records.documents import Document
from triax.records.questions import Question, Step
from triax.records.triplets import Triplet
from triax.scoring import coverage as module
from triax.scoring.coverage import Normalised, bridging_entities, coverage, sought_answers

# MuSiQue has steps.
STEPS = (Step("Who directed Vertigo?", "Alfred Hitchcock"), Step("Where was #1 born?", "London"))
CHAIN = Question(
    "q", "Where was the director of Vertigo born?", ("London",), "2hop", ("v", "h"), steps=STEPS
)


def test_examples_in_the_docstrings():
    results = doctest.testmod(module)
    assert results.attempted >= 2 and results.failed == 0


@pytest.mark.parametrize(
    ("text", "wanted", "is_there"),
    [
        ("in the U.S.", "US", True),
        ("in the US", "U.S.", True),
        ("it was used", "US", False),
        ("Hitchcock’s wife", "Hitchcock", True),
        ("London-born", "london", True),
        ("London-born", "Londonborn", True),
        ("the year 1,000", "1000", True),
        ("CAFÉ de Flore", "Café", True),
        ("anything", "the", False),
        ("anything", "", False),
    ],
)
def test_a_text_is_found_as_whole_words(text, wanted, is_there):
    assert Normalised.of([text]).holds(wanted) is is_there


def test_nothing_is_found_across_two_texts():
    assert Normalised.of(["born in New York"]).holds("New York")
    assert not Normalised.of(["born in New", "York"]).holds("New York")
    assert not Normalised.of([]).holds("York")


@pytest.mark.parametrize(
    ("texts", "found", "m1", "m3"),
    [
        (["He is from London.", "Vertigo is by Alfred Hitchcock"], ["v"], True, True),
        (["He is from London."], ["v", "h"], True, False),  # the answer, without the way to it
        (["Alfred Hitchcock"], ["v", "h"], False, False),
        ([], [], False, False),
    ],
)
def test_m1_asks_for_the_answer_and_m3_for_all_on_the_way(texts, found, m1, m3):
    assert coverage(CHAIN, texts, found, {}) == {
        "m1": m1,
        "m1_by": "answer",
        "m3": m3,
        "m3_by": "steps",
        "answer_in_context": m1,
    }


def test_yes_and_no_stand_in_no_text():
    """The paper would say that "no" is covered here, and "yes" is not."""
    polar = Question("p", "Is it?", ("no",), gold_document_ids=("v", "h"))
    for documents, covered in ((["h", "v", "x"], True), (["v"], False)):
        found = coverage(polar, ["There is no such thing."], documents, {})
        assert (found["m1"], found["m1_by"]) == (covered, "documents")
        assert (found["m3"], found["m3_by"]) == (covered, "documents")
        assert found["answer_in_context"] is True
    unknown = coverage(Question("p", "Is it?", ("no",)), ["no"], [], {})
    assert (unknown["m1"], unknown["m1_by"], unknown["m3"]) == (None, "", None)


def test_the_answer_of_a_comparison_stands_in_its_question():
    older = Question("c", "Which is older, Vertigo or Psycho?", ("Vertigo",), "", ("v", "p"))
    assert sought_answers(older) == ()
    assert coverage(older, ["Vertigo is a film."], ["v"], {})["m1"] is False
    assert coverage(older, ["Vertigo is a film."], ["v", "p"], {})["m1"] is True
    shared = Question("d", "What nationality do both share?", ("British",), "comparison")
    assert sought_answers(shared) == ()
    assert sought_answers(CHAIN) == ("London",)


def test_any_form_of_the_answer_will_do():
    asked = Question("a", "Who?", ("Clemens", "Mark Twain"), steps=(Step("Who?", "Clemens"),))
    found = coverage(asked, ["It was Mark Twain."], [], {})
    assert (found["m1"], found["m3"]) == (True, True)


def test_entities_come_from_steps_or_triplets_or_titles():
    assert bridging_entities(CHAIN, {}) == (("Alfred Hitchcock", "London"), "steps")
    # 2WikiMultiHopQA has triplets; a name counts once.
    triplets = (Triplet("Vertigo", "by", "Hitchcock"), Triplet("hitchcock", "born in", "London"))
    asked = Question("t", "?", ("London",), gold_triplets=triplets, gold_document_ids=("v",))
    assert bridging_entities(asked, {}) == (("Vertigo", "Hitchcock", "London"), "triplets")
    found = coverage(asked, ["Vertigo, by Hitchcock of London"], [], {})
    assert (found["m3"], found["m3_by"]) == (True, "triplets")
    # HotpotQA has titles.
    documents = {"v": Document("v", "x", "Vertigo (1958 film)"), "h": Document("h", "x", "Hitch")}
    titled = Question("h", "?", ("London", "Londinium"), gold_document_ids=("v", "h"))
    assert bridging_entities(titled, documents) == (("Vertigo", "Hitch", "London"), "titles")
    polar = Question("h", "?", ("yes",), gold_document_ids=("v", "h"))
    assert bridging_entities(polar, documents) == (("Vertigo", "Hitch"), "titles")


def test_without_entities_the_gold_documents_tell():
    untitled = {"v": Document("v", "x")}
    asked = Question("n", "?", ("London",), gold_document_ids=("v",))
    assert bridging_entities(asked, untitled) == ((), "")
    assert coverage(asked, [], ["v"], untitled)["m3_by"] == "documents"
    assert coverage(asked, [], ["v"], untitled)["m3"] is True
    assert bridging_entities(Question("n", "?", steps=(Step("is it?", "yes"),)), {}) == ((), "")


def test_r19_gold_that_the_corpus_lacks_is_never_found():
    documents = {"v": Document("v", "x", "Vertigo")}
    lacking = Question("l", "?", ("yes",), "", ("v",), unmatched_gold=("lost",))
    found = coverage(lacking, ["Vertigo"], ["v"], documents)
    assert (found["m1"], found["m3"], found["m3_by"]) == (False, False, "documents")


def test_a_question_without_gold_is_not_measured():
    assert set(coverage(Question("b", "?"), ["text"], ["v"], {}).values()) == {None, ""}
