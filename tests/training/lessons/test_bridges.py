"""Questions of HotpotQA's train part with passages in short; the chains were written by hand."""

import pytest

from triax.training.lessons.bridges import bridge


def row(question, answer, *passages, kind="bridge"):
    """Each passage as title and sentences, of which those that end with * are supporting."""
    paragraphs, facts = [], []
    for title, *sentences in passages:
        text, starts = "", []
        for number, sentence in enumerate(sentences):
            starts.append(len(text))
            text += sentence.rstrip("*") + " "
            if sentence.endswith("*"):
                facts.append([title, number])
        paragraphs.append({"title": title, "text": text, "sents": starts})
    return {
        "question": question,
        "answer": answer,
        "type": kind,
        "paragraphs": paragraphs,
        "supporting_facts": facts,
    }


GOSLING = (
    ("Deirdre Quinn", "Quinn is an actress.", "She played Miss Texas in Miss Congeniality.*"),
    ("Miss Congeniality (film)", "It is a comedy.", "Sandra Bullock is its star.*"),
)
BOARD = (
    ("William Ticknor", "He served on the board of Monsanto Company.*"),
    ("Monsanto Company", "A chemical company, created in 1901 by John Queeny.*"),
)
SINGLE = (
    ("Dawn Lake", "She described Lucille Ball as our greatest comedienne.*"),
    ("Lucille Ball", "Ball was the star of I Love Lucy.*"),
)


def test_an_inner_span_asks_the_named_passage():
    question = "Who was the star of the movie in which Deirdre Quinn played Miss Texas?"
    assert bridge(row(question, "Sandra Bullock", *GOSLING)) == (
        ("Deirdre Quinn", "played Miss Texas", "?1"),
        ("?1", "star of the movie", "?2"),
    )


def test_the_order_of_the_passages_does_not_matter():
    question = "Who was the star of the movie in which Deirdre Quinn played Miss Texas?"
    one, two = (bridge(row(question, "Sandra Bullock", *p)) for p in (GOSLING, GOSLING[::-1]))
    assert one == two


def test_the_named_passage_may_come_first():
    question = "William Ticknor served on the board of a chemical company created in what year?"
    assert bridge(row(question, "1901", *BOARD)) == (
        ("William Ticknor", "served on the board", "?1"),
        ("?1", "a chemical company created in what year", "?2"),
    )


def test_an_answer_in_the_named_passage_is_one_hop():
    question = "Dawn Lake described the star of I Love Lucy as what?"
    assert bridge(row(question, "our greatest comedienne", *SINGLE)) == (
        ("Dawn Lake", "described the star of I Love Lucy as", "?1"),
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who was the star of the movie in which she played?", "Sandra Bullock"),
        ("Is Sandra Bullock the star of the movie with Deirdre Quinn?", "Sandra Bullock"),
        ("Who starred beside Deirdre Quinn?", "an answer of nobody"),
    ],
)
def test_what_the_passages_do_not_tell(question, answer):
    assert bridge(row(question, answer, *GOSLING)) is None


def test_a_piece_of_a_longer_name_and_a_date_are_no_subjects():
    passages = (
        ("Tommy Lee Jones", "On April 2 he won an award with Lee in Texas.*"),
        ("Bertrand Tavernier", "He directed films with Tommy Lee Jones.*"),
    )
    question = "Who directed the film that starred Anna Lee Smith on April 2?"
    assert bridge(row(question, "Tavernier", *passages)) is None


def test_other_rows_give_nothing():
    question = "Who was the star of the movie in which Deirdre Quinn played Miss Texas?"
    assert bridge(row(question, "Sandra Bullock", *GOSLING, kind="comparison")) is None
    assert bridge(row(question, "Sandra Bullock", GOSLING[0])) is None
    assert bridge({"question": question, "answer": "Sandra Bullock", "type": "bridge"}) is None
