import gzip

import numpy as np
import pytest

from triax.records.files import json_line
from triax.records.triplets import Triplet
from triax.training.lessons.extractions import ExtractionLesson, OpenTriplet, Predicate, Relation
from triax.training.task import Task
from triax.training.tasks.extract import (
    ExtractTask,
    best_threshold,
    gold_fields,
    supporting_passages,
)

TITLE, TEXT = "Marie Curie", "She was born in Warsaw."
LESSON = ExtractionLesson(
    "x",
    "silver_openie",
    TITLE,
    TEXT,
    triplets=(
        OpenTriplet((0, 11), (28, 34), Predicate("", (16, 27), "")),
        OpenTriplet((0, 11), (12, 15), None),
    ),
    is_open=True,
)


def write_gz(path, rows):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(map(json_line, rows))


def test_lessons_as_texts():
    assert gold_fields(LESSON) == [[("Marie Curie", "was born in", "Warsaw")]]
    related = ExtractionLesson(
        "y", "redocred", TITLE, TEXT, relations=(Relation((0, 11), (28, 34), "place of birth"),)
    )
    assert gold_fields(related) == [[("Marie Curie", "place of birth", "Warsaw")]]


def test_the_threshold_that_gives_the_best_f():
    said = [
        Triplet("Marie Curie", "was born in", "Warsaw", 0.62),
        Triplet("x", "y", "z", 0.42),
        Triplet("Marie Curie", "place of birth", "Warsaw", 0.99),  # named: not scored here
    ]
    score, threshold = best_threshold([(said, LESSON)], {"place of birth"}, 1.0)
    assert score == pytest.approx(1.0) and threshold == 0.6


def test_supporting_passages_are_kept_out(tmp_path):
    paragraphs = [
        {"title": "Marie  Curie", "text": TEXT, "is_supporting": True},
        {"title": "Other", "text": "x", "is_supporting": False},
    ]
    write_gz(tmp_path / "dev.jsonl.gz", [{"paragraphs": paragraphs}])
    assert supporting_passages(tmp_path) == {(TITLE, TEXT)}
    assert supporting_passages(tmp_path / "none") == set()


def test_an_unknown_source_is_named(tmp_path):
    with pytest.raises(ValueError, match="no lessons are made of 'squad'; known: .*redocred"):
        ExtractTask(str(tmp_path), {"squad": 1.0}).describe()


@pytest.mark.weights
def test_a_batch_is_a_function_of_step_and_seed(tmp_path):
    rows = [
        {
            "id": f"r{n}",
            "dataset": "silver_openie",
            "title": TITLE,
            "text": f"{TEXT} Paper {n}.",
            "triples": [{"s": TITLE, "p": "was born in", "o": "Warsaw"}],
        }
        for n in range(40)
    ]
    write_gz(tmp_path / "silver_openie" / "train.jsonl.gz", rows)
    task = ExtractTask(str(tmp_path), {"silver_openie": 1.0}, batch_tokens=512)
    assert isinstance(task, Task)
    one, again, other = task.batch(3, 0), task.batch(3, 0), task.batch(3, 1)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["ids"], other["ids"])
    figures = task.describe()
    assert figures["rows"] + figures["held_out"] == 40 and figures["held_out"] > 0
    assert figures["datasets"]["silver_openie"]["with_predicate"] == 1.0
