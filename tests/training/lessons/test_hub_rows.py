"""Rows of the hub's field layouts become rows that the lessons read."""

import gzip
import json

import pytest

from triax.reasoning.comparison import compare
from triax.training.lessons.decompositions import lesson_of
from triax.training.lessons.hub_rows import HUB_SETS, pooled, query_triplets
from triax.training.lessons.slots import read_slots, supporting_sentences

CONTEXT = {
    "title": ["Brand", "Ibsen"],
    "sentences": [["Brand is a play.", " Henrik Ibsen wrote it."], ["Ibsen was born in Skien."]],
}
HOTPOT = {
    "id": "h1",
    "question": "Where was the author of Brand born?",
    "answer": "Skien",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["Brand", "Ibsen"], "sent_id": [1, 0]},
    "context": CONTEXT,
}
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Skien", "paragraph_text": "A town in Norway.", "is_supporting": False},
        {"idx": 1, "title": "Brand", "paragraph_text": "A play by Ibsen.", "is_supporting": True},
        {"idx": 2, "title": "Ibsen", "paragraph_text": "Born in Skien.", "is_supporting": True},
    ],
    "question": "Where was the author of Brand born?",
    "question_decomposition": [
        {"id": 7, "question": "Brand >> author", "answer": "Ibsen", "paragraph_support_idx": 1},
        {"id": 8, "question": "#1 >> born in", "answer": "Skien", "paragraph_support_idx": 2},
    ],
    "answer": "Skien",
    "answer_aliases": ["Skien, Norway"],
    "answerable": True,
}
SQUAD = {
    "id": "s1",
    "title": "Henrik_Ibsen",
    "context": "Ibsen was born in Skien.",
    "question": "Where was Ibsen born?",
    "answers": {"text": ["Skien", "in Skien", "Skien"], "answer_start": [18, 15, 18]},
}
POPQA = {
    "id": 4,
    "subj": "George Rankin",
    "prop": "occupation",
    "obj": "politician",
    "question": "What is George Rankin's occupation?",
    "possible_answers": '["politician", "political leader"]',
}


def wiki(answer, facts, **more):
    return HOTPOT | {"answer": answer, "evidences": facts} | more


@pytest.fixture
def data(tmp_path):
    for name, row in (("hotpotqa", HOTPOT), ("musique", MUSIQUE), ("squad", SQUAD)):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "train.jsonl.gz", "wt") as stream:
            stream.write(json.dumps(HUB_SETS[name].read(row, compare)) + "\n")
    return tmp_path


def test_slots_are_made_of_them(data):
    first, second = read_slots(data, "musique")
    assert (first.query, first.answers, first.answered[0].title) == (
        "Brand | author | ?",
        ("Ibsen",),
        "Brand",
    )
    assert (second.query, second.answered[0].title) == ("Ibsen | born in | ?", "Ibsen")
    (asked,) = read_slots(data, "squad")
    assert asked.answers == ("Skien", "in Skien")
    assert asked.answered[0].shown == "Henrik Ibsen. Ibsen was born in Skien."
    (whole,) = read_slots(data, "hotpotqa")
    assert [one.title for one in whole.answered] == ["Ibsen"]


def test_sentences_are_found_again(data):
    row = HUB_SETS["hotpotqa"].read(HOTPOT, compare)
    assert list(supporting_sentences(row)) == [
        "Brand: Henrik Ibsen wrote it.",
        "Ibsen: Ibsen was born in Skien.",
    ]


def test_lessons_of_decomposition_are_made_of_them():
    lesson = lesson_of(HUB_SETS["musique"].read(MUSIQUE, compare))
    assert lesson.triplets == (("Brand", "author", "?1"), ("?1", "born in", "?2"))
    lesson = lesson_of(HUB_SETS["popqa"].read(POPQA, compare))
    assert lesson.triplets == (("George Rankin", "occupation", "?1"),)


def test_steps_in_words_are_no_query_triplets():
    steps = [one | {"question": "Who wrote Brand?"} for one in MUSIQUE["question_decomposition"]]
    row = HUB_SETS["musique"].read(MUSIQUE | {"question_decomposition": steps}, compare)
    assert row["query_triples"] == [] and len(row["decomposition"]) == 2


def test_the_operator_of_a_comparison_is_the_one_that_gives_the_answer():
    dates = [["Brand", "publication date", "1866"], ["Ghosts", "publication date", "1881"]]
    first = HUB_SETS["2wikimultihopqa"].read(wiki("Brand", dates), compare)
    assert first["query_op"] == "min"
    assert first["query_triples"] == [
        ["Brand", "publication date", "?1"],
        ["Ghosts", "publication date", "?2"],
    ]
    last = HUB_SETS["2wikimultihopqa"].read(wiki("Ghosts", dates), compare)
    assert last["query_op"] == "max"
    countries = [["A", "country", "Norway"], ["B", "country", "Norwegian"]]
    assert HUB_SETS["2wikimultihopqa"].read(wiki("yes", countries), compare)["query_op"] == "same"


def test_branches_of_two_steps_are_compared_by_their_ends():
    facts = [
        ("Brand", "author", "Ibsen"),
        ("Ibsen", "date of birth", "1828"),
        ("Faust", "author", "Goethe"),
        ("Goethe", "date of birth", "1749"),
    ]
    triplets, operator = query_triplets(facts, "Faust", compare)
    assert operator == "min"
    assert triplets == [
        ["Brand", "author", "?1"],
        ["?1", "date of birth", "?2"],
        ["Faust", "author", "?3"],
        ["?3", "date of birth", "?4"],
    ]


def test_an_answer_that_no_operator_gives_makes_no_query_triplets():
    facts = [("Brand", "genre", "play"), ("Ghosts", "genre", "novel")]
    assert query_triplets(facts, "Peer Gynt", compare) == ([], None)


def test_paragraphs_of_all_rows_are_a_corpus_once_each():
    rows = [HUB_SETS["hotpotqa"].read(HOTPOT, compare)] * 2
    assert [(one["id"], one["title"]) for one in pooled(rows)] == [("0", "Brand"), ("1", "Ibsen")]
