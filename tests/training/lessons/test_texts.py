"""Lessons from rows of the shape that the data sets have, read as a person would read them."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from triax.records.lesson_prompts import NOT_FOUND
from triax.training.lessons.texts import (
    Lesson,
    canonical_names,
    mixed,
    passage_text,
    read_lessons,
)

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared data folder; set TRIAX_DATA")


def write(folder, name, rows, split="train"):
    (folder / name).mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / name / f"{split}.jsonl.gz", "wt", encoding="utf8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def row(id_, question, answer, **more):
    empty = {"answer_aliases": [], "paragraphs": [], "decomposition": [], "supporting_facts": []}
    named = {"id": id_, "question": question, "answer": answer, "dataset": "d", "source": "s"}
    return empty | named | more


def compared(id_, question, answer, operation, predicate, first="Vertigo", second="Stalker"):
    triplets = [[first, predicate, "?1"], [second, predicate, "?2"]]
    return row(id_, question, answer, query_op=operation, query_triples=triplets)


def test_placeholders_are_named_in_the_order_of_reading():
    written = [("?7", "film", "?2"), ("?2", "born in ?7", "?x?")]
    assert canonical_names(written) == [("?a", "film", "?b"), ("?b", "born in ?a", "?x?")]


def test_a_decomposition(tmp_path):
    triplets = [["Brand", "author", "?1"], ["?1", "place of birth", "?2"]]
    write(
        tmp_path,
        "musique",
        [row("m", "Where was Brand's author born?", "S", query_triples=triplets)],
    )
    assert read_lessons(tmp_path, "train", "decompose") == [
        Lesson(
            "decompose",
            "Question: Where was Brand's author born?",
            "Brand | author | ?a\n?a | place of birth | ?b",
            "musique",
            "Where was Brand's author born?",
        )
    ]


def test_a_value_is_found_in_its_passage_or_not_at_all(tmp_path):
    def popqa(n):
        passage = {"title": f"Person {n}", "text": f"Person {n} works as kind{n}."}
        query = [[f"Person {n}", "occupation", "?1"]]
        return row(f"p{n}", "?", f"kind{n}", query_triples=query, paragraphs=[passage])

    write(tmp_path, "popqa", [popqa(n) for n in range(10, 60)])
    lessons = read_lessons(tmp_path, "train", "resolve")
    asked = [one for one in lessons if one.prompt.rsplit("\n\n", 1)[1].endswith("| occupation | ?")]
    assert asked == lessons and len(lessons) == 50
    absent = [one for one in lessons if one.target == NOT_FOUND]
    # Each is absent with the chance of a quarter: 50 draws give 4 to 22 but once in a thousand.
    assert 4 <= len(absent) <= 22
    for one in lessons:
        name = one.prompt.rsplit("\n\n", 1)[1].split(" | ")[0]
        assert one.prompt.startswith("Passages:\n[1] Person ")
        assert one.prompt.count(" works as ") == 3
        assert (f"{name}\n" in one.prompt) == (one.target != NOT_FOUND)
        assert one.target in (NOT_FOUND, f"kind{name.split()[1]}")


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("answer", ["Vertigo", "Stalker"])
def test_drawn_dates_make_the_gold_answer_true(tmp_path, operation, answer):
    rows = [compared(f"c{n}", "Which?", answer, operation, "publication date") for n in range(20)]
    write(tmp_path, "2wikimultihopqa_qa", rows)
    lessons = read_lessons(tmp_path, "train", "answer")
    assert len(lessons) == 20
    for one in lessons:
        first, second = (int(year) for year in re.findall(r"\b(\d{4})$", one.prompt, re.MULTILINE))
        chosen = "Vertigo" if (first < second) == (operation == "min") else "Stalker"
        assert one.target == answer == chosen


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_drawn_countries_are_the_same_where_the_answer_is_yes(tmp_path, answer):
    write(tmp_path, "2wikimultihopqa_qa", [compared("c", "Same?", answer, "same", "country")])
    (lesson,) = read_lessons(tmp_path, "train", "answer")
    facts = lesson.prompt.removeprefix("Facts:\n").split("\n\n")[0].split("\n")
    values = [fact.split(" | ")[2] for fact in facts]
    assert (values[0] == values[1]) == (answer == "yes")
    assert lesson.prompt.endswith("\n\nQuestion: Same?")


def test_a_bridge_has_its_name_in_both_triplets(tmp_path):
    triplets = [
        ["Vertigo", "director", "?1"],
        ["?1", "date of birth", "?2"],
        ["Stalker", "director", "?3"],
        ["?3", "date of birth", "?4"],
    ]
    bridge = row("b", "Which?", "Stalker", query_op="max", query_triples=triplets)
    write(tmp_path, "2wikimultihopqa_qa", [bridge])
    (lesson,) = read_lessons(tmp_path, "train", "answer")
    facts = [line.split(" | ") for line in lesson.prompt.split("\n\n")[0].split("\n")[1:]]
    assert facts[0][2] == facts[1][0] and facts[2][2] == facts[3][0]
    assert facts[0][2] != facts[2][2] and "?" not in lesson.prompt.split("\n\n")[0]


def test_answers_are_read_from_the_supporting_passages(tmp_path):
    paragraphs = [
        {"title": "A", "text": "Not here. " * 50, "is_supporting": False},
        {"title": "Brand", "text": "By Henrik Ibsen.", "is_supporting": True},
    ]
    rows = [
        row("h1", "Who wrote Brand?", "Henrik Ibsen", paragraphs=paragraphs),
        row("h2", "Who printed Brand?", "Nobody", paragraphs=paragraphs),
    ]
    write(tmp_path, "hotpotqa", rows)
    (lesson,) = read_lessons(tmp_path, "train", "answer")
    assert lesson.id == "h1" and lesson.target == "Henrik Ibsen"
    assert "\nBy Henrik Ibsen." in lesson.prompt and lesson.prompt.endswith("Who wrote Brand?")


def test_triplets_stand_in_the_order_of_the_text_and_within_what_is_shown(tmp_path):
    triples = [
        {"s": "Brand", "p": "set in", "o": "Norway"},
        {"s": "Brand", "p": "by", "o": "Ibsen"},
        {"s": "Brand", "p": "seen by", "o": "nobody"},
        {"s": "Brand", "p": "ends", "o": "THE END"},
        {"s": "a|b", "p": "x", "o": "Ibsen"},
    ]
    text = "Brand by Ibsen is set in Norway. " + "word " * 100 + "THE END a|b"
    extraction = {"id": "e", "dataset": "carb", "title": None, "text": text, "triples": triples}
    write(tmp_path, "carb", [extraction])
    (lesson,) = read_lessons(tmp_path, "train", "extract")
    assert lesson.target == "Brand | by | Ibsen\nBrand | set in | Norway"
    assert lesson.prompt.startswith("Passage: Brand by") and len(lesson.prompt.split()) == 91


def test_a_mix_repeats_and_leaves_out():
    lessons = [Lesson("extract", "", "", source, f"{n}") for n in range(8) for source in "ab"]
    chosen = [(one.source, one.id) for one in mixed(lessons, {"a": 0.5, "b": 2.0})]
    assert (
        sum(source == "a" for source, _ in chosen) == 4 == len({c for c in chosen if c[0] == "a"})
    )
    assert [chosen.count(("b", f"{n}")) for n in range(8)] == [2] * 8
    with pytest.raises(ValueError, match=r"no lessons come from \['c'\]; there are \['a', 'b'\]"):
        mixed(lessons, {"c": 1.0})


def test_a_title_counts_among_the_words():
    assert passage_text("A b", "c d e", 4) == "A b c d …"
    assert passage_text("A b", "c d", 4) == "A b\nc d"
    assert passage_text(None, "c d", 4) == "c d"


def test_a_folder_without_lessons_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no train.jsonl.gz with lessons for 'extract'"):
        read_lessons(tmp_path, "train", "extract")


@pytest.mark.data
@needs_data
def test_train_and_dev_share_no_prompt():
    train = {one.prompt for one in read_lessons(DATA, "train", "answer")}
    dev = {one.prompt for one in read_lessons(DATA, "dev", "answer", max_each=200)}
    assert len(train) > 500 and dev and not train & dev
