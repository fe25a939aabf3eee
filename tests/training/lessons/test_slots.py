import gzip
import json
import os
from pathlib import Path

import pytest

from triax.training.lessons.slots import (
    SOURCES,
    Passage,
    filled_steps,
    holds,
    occurrences,
    read_slots,
    slot,
    supporting_sentences,
)

DATA = Path(os.environ.get("TRIAX_DATA", "../shared/data"))


def write(folder, name, rows):
    (folder / name).mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / name / "train.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("text", "answers", "spans"),
    [
        ("Rome, in Romania, is not rome", ["Rome"], [(0, 4), (25, 29)]),
        ("the United States of America", ["United States", "United States of America"], [(4, 28)]),
        ("308 points, not 1308", ["308"], [(0, 3)]),
        ("nothing here", ["Rome"], []),
        ("anything", [" "], []),
        ("İstanbul and Rome", ["Rome"], [(13, 17)]),
    ],
)
def test_answers_are_found_at_word_borders(text, answers, spans):
    assert occurrences(text, answers) == spans


def test_titles_count_as_text():
    assert holds(Passage("Rome", "A city."), ["rome"])
    assert not holds(Passage("", "A city."), ["rome"])


def test_steps_take_earlier_answers():
    row = {
        "decomposition": [
            {"question": "Brand >> author", "answer": "Henrik Ibsen", "support_idx": 1},
            {"question": "#1 >> country of citizenship", "answer": "Norway", "support_idx": 0},
            {"question": "What is the capital of #2 ?", "answer": "Oslo", "support_idx": None},
        ]
    }
    assert list(filled_steps(row)) == [
        ("Brand | author | ?", "Henrik Ibsen", 1),
        ("Henrik Ibsen | country of citizenship | ?", "Norway", 0),
        ("What is the capital of Norway ?", "Oslo", None),
    ]


def test_supporting_sentences_are_cut_where_they_start():
    row = {
        "paragraphs": [{"title": "A", "text": "One. Two. Three.", "sents": [0, 5, 10]}],
        "supporting_facts": [["A", 1], ["A", 7], ["B", 0], ["A", None]],
    }
    assert list(supporting_sentences(row)) == ["A: Two."]


def test_musique_distractors_hold_no_answer(tmp_path):
    paragraphs = [
        {"title": "Brand", "text": "A play by Henrik Ibsen."},
        {"title": "Ghosts", "text": "Also by Henrik Ibsen."},
        {"title": "Peer", "text": "By someone else."},
    ]
    step = {"question": "Brand >> author", "answer": "Henrik Ibsen", "support_idx": 0}
    write(tmp_path, "musique", [{"id": "m", "paragraphs": paragraphs, "decomposition": [step]}])
    (lesson,) = read_slots(tmp_path, "musique")
    assert lesson.query == "Brand | author | ?"
    assert [one.title for one in lesson.answered] == ["Brand"]
    assert [one.title for one in lesson.wrong] == ["Peer"]


def test_silver_asks_for_objects_and_has_strange_relations(tmp_path):
    rows = [
        {
            "id": str(n),
            "title": f"T{n}",
            "text": f"T{n} was born in Town{n}.",
            "triples": [{"s": f"T{n}", "p": f"was born in {n}", "o": f"Town{n}"}],
        }
        for n in range(2)
    ]
    write(tmp_path, "silver_openie", rows)
    lessons = read_slots(tmp_path, "silver_openie")
    none = [one for one in lessons if not one.answers]
    assert [one.query for one in none] == ["T0 | was born in 1 | ?", "T1 | was born in 0 | ?"]
    assert all(one.wrong and not one.answered for one in none)
    assert len(lessons) == 4


def test_an_unknown_source_is_named(tmp_path):
    with pytest.raises(ValueError, match="'squid'.*known"):
        read_slots(tmp_path, "squid")


def test_slots_ask_for_the_object_or_what_is_left_open():
    assert slot("A", "b") == "A | b | ?"
    assert slot("?", "b", "C") == "? | b | C"


@pytest.mark.data
@pytest.mark.parametrize("source", sorted(set(SOURCES) - {"squad"}))  # that one is on the hub
def test_every_positive_lesson_holds_its_answer(source):
    if not DATA.is_dir():
        pytest.skip("no shared data")
    lessons = read_slots(DATA, source)
    assert len(lessons) > 400
    for lesson in lessons:
        if lesson.verdict == "span":
            assert all(holds(passage, lesson.answers) for passage in lesson.answered)
        if lesson.answers:
            assert not any(holds(passage, lesson.answers) for passage in lesson.wrong)


def test_births_and_deaths_are_told_apart_by_their_place_in_the_brackets(tmp_path):
    pages = {
        "Ann Lee (poet)": "Ann Lee (Paris, 5 March 1934 – Rome, 11 October 2009) was a poet.",
        "Bo Ray": "Bo Ray (born May 10, 1996) is a player.",
        "Cy Fox": "Cy Fox (1934–2009) was a singer.",
        "Di Orr": "Di Orr (1 May 1901 - 2 June 1950) was a pilot.",
    }
    rows = [{"title": title, "text": text} for title, text in pages.items()]
    for name, kept in (("hotpotqa", rows), ("2wikimultihopqa", rows[3:])):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "corpus.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in kept)
    found = {one.query: one for one in read_slots(tmp_path, "lifespans")}
    # Years alone tell no date, and pages of a corpus that is reported on are left out.
    assert set(found) == {
        f"{name} | date of {what} | ?"
        for name in ("Ann Lee", "Bo Ray")
        for what in ("birth", "death")
    }
    assert found["Ann Lee | date of birth | ?"].answers == ("5 March 1934",)
    assert found["Ann Lee | date of death | ?"].answers == ("11 October 2009",)
    alive = found["Bo Ray | date of death | ?"]
    assert alive.answers == alive.answered == () and alive.wrong[0].title == "Bo Ray"
    assert read_slots(tmp_path, "lifespans", "dev") == []
