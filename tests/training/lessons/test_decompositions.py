import os
from pathlib import Path

import pytest

from triax.records.files import read_jsonl
from triax.training.lessons.decompositions import (
    Lesson,
    comparison,
    flat_steps,
    is_sound,
    lesson_of,
    lessons_of,
    operator_of,
    triplets_of_steps,
)

SHARED = Path(__file__).parents[4] / "shared" / "data"
DATA = Path(os.environ.get("TRIAX_DATA") or SHARED)


def row(question, dataset="musique", steps=(), **more):
    return {
        "question": question,
        "dataset": dataset,
        "decomposition": [{"question": step} for step in steps],
        **more,
    }


def test_gold_triplets_are_taken_as_they_are():
    gold = [["Vertigo", "director", "?1"], ["?1", "place of birth", "?2"]]
    found = lesson_of(row("Where was X born? ", "2wiki", query_triples=gold, query_op="loose"))
    assert found == Lesson("Where was X born?", "none", tuple(map(tuple, gold)), "2wiki")
    assert lesson_of(row("q", query_triples=gold[:1], query_op="min")).operator == "min"


# Questions and sub-questions of MuSiQue's train part; the triplets were written by hand.
MUSIQUE = [
    (
        "What team was Anna Benson's husband on?",
        ["Anna Benson >> spouse", "#1 >> member of sports team"],
        "Anna Benson | spouse | ?1 ; ?1 | member of sports team | ?2",
    ),
    (
        "Whose sister played Susie in miracle on 34th street?",
        ["who played susie in miracle on 34th street", "#1 >> sibling"],
        None,
    ),
    (
        "Who was the first president of Damerjog's country?",
        ["Damerjog >> country", "Who was the first president of #1 ?"],
        "Damerjog | country | ?1 ; ?1 | first president of | ?2",
    ),
    (
        "What worldwide ranking is held by Mario Pani's alma mater?",
        ["Mario Pani >> educated at", "What worldwide ranking does #1 hold?"],
        "Mario Pani | educated at | ?1 ; ?1 | worldwide ranking hold | ?2",
    ),
    (
        "When is the opening day of the league that Jim Wilson plays for?",
        ["Jim Wilson >> member of sports team", "when is opening day of #1"],
        "Jim Wilson | member of sports team | ?1 ; ?1 | when opening day of | ?2",
    ),
]


@pytest.mark.parametrize(("question", "steps", "expected"), MUSIQUE)
def test_sub_questions_become_triplets(question, steps, expected):
    found = triplets_of_steps(question, steps)
    shown = " ; ".join(" | ".join(one) for one in found)
    assert expected is None or shown == expected
    assert is_sound(found)


def test_a_second_reference_goes_into_the_predicate():
    found = triplets_of_steps(
        "Who played the dad in the movie of Beyonce 's first concert and Joe Jackson?",
        [
            "what was Beyonce 's first concert",
            "Joe Jackson >> genre",
            "who played #2 in the #1 movie",
        ],
    )
    assert found[2] == ("?2", "who played in the ?1 movie", "?3")


def test_a_step_that_refers_to_a_later_one_gives_nothing():
    assert triplets_of_steps("Where was A born?", ["where was #2 born", "A >> spouse"]) is None


def test_trees_are_flattened_with_their_references():
    """ProbTree counts references among siblings; a leaf's number is its place in the whole."""
    leaf = {"children": []}
    tree = {
        "question": "Which film has the younger director, Vertigo or Stalker?",
        "children": [
            {
                "question": "When was the director of Vertigo born?",
                "children": [
                    leaf | {"question": "Who is the director of Vertigo?"},
                    leaf | {"question": "When was #1 born?"},
                ],
            },
            {
                "question": "When was the director of Stalker born?",
                "children": [
                    leaf | {"question": "Who is the director of Stalker?"},
                    leaf | {"question": "When was <1> born?"},
                ],
            },
            leaf | {"question": "Is <1> before <2>?"},
        ],
    }
    assert flat_steps({"tree": tree}) == [
        "Who is the director of Vertigo?",
        "When was #1 born?",
        "Who is the director of Stalker?",
        "When was #3 born?",
        "Is #2 before #4?",
    ]


def test_steps_of_break_that_are_only_names():
    found = lesson_of(
        row(
            "where is the wife of bruce lee?",
            "break_qdmr",
            ["bruce lee", "wife of #1", "where is #2"],
        )
    )
    assert found.triplets == (("bruce lee", "wife of", "?1"), ("?1", "where", "?2"))
    assert lesson_of(row("x of bruce lee", "break_qdmr", ["bruce lee", "#1 that sing"])) is None


# Questions of HotpotQA's train part.
COMPARISONS = [
    (
        "Which band formed first, Swervedriver or Incubus?",
        ("min", "Swervedriver | when formed | ?1 ; Incubus | when formed | ?2"),
    ),
    (
        "Which genus has more species, Salvia or Arachis?",
        ("max", "Salvia | how many species | ?1 ; Arachis | how many species | ?2"),
    ),
    (
        "Were Halldór Laxness and Timothy Leary from the same country?",
        ("same", "Halldór Laxness | country | ?1 ; Timothy Leary | country | ?2"),
    ),
    (
        "Are The Datsuns and The Black Crowes both rock bands?",
        ("both", "The Datsuns | rock bands | ?1 ; The Black Crowes | rock bands | ?2"),
    ),
    (
        "Which film director is younger, Manoel de Oliveira or Alfonso Cuarón?",
        ("max", "Manoel de Oliveira | date of birth | ?1 ; Alfonso Cuarón | date of birth | ?2"),
    ),
    (
        "Which school is older, Dartmouth College or Cornell University?",
        ("min", "Dartmouth College | when founded | ?1 ; Cornell University | when founded | ?2"),
    ),
    ("Where are Catcha Lake and Hedley Mascot Mine located?", None),
]


@pytest.mark.parametrize(("question", "expected"), COMPARISONS)
def test_comparisons(question, expected):
    found = comparison(question)
    if found:
        found = found[0], " ; ".join(" | ".join(one) for one in found[1])
    assert found == expected


def test_operators_by_their_words():
    assert operator_of("Who lived longer, A or B?") == "longest"
    assert operator_of("Which is older, A or B?") == "min"
    assert operator_of("Who was born later, A or B?") == "max"
    assert operator_of("Who is the mother of A?") == "none"


@pytest.mark.parametrize(
    "triplets",
    [
        (),
        (("A", "b", "?2"),),
        (("A", "", "?1"),),
        (("A", "b", "C"),),
        (("A", "?1", "?2"),),
        (("A", "b", "?1"), ("?1", "c", "?1")),
        tuple(("A", "b", f"?{n}") for n in range(1, 8)),
    ],
)
def test_unsound_triplets(triplets):
    assert not is_sound(triplets)


def test_a_bridge_is_told_by_its_passages():
    question = "Who is the mother of the director of Vertigo?"
    film = {"title": "Vertigo", "text": "Vertigo is by director Alf Ho.", "sents": [0]}
    person = {"title": "Alf Ho", "text": "Alf Ho is a son of Emma, his mother.", "sents": [0]}
    given = {
        "type": "bridge",
        "answer": "Emma",
        "paragraphs": [person, film],
        "supporting_facts": [["Alf Ho", 0], ["Vertigo", 0]],
    }
    found = lesson_of(row(question, "hotpotqa", **given))
    assert found.triplets == (("Vertigo", "director of", "?1"), ("?1", "mother of", "?2"))
    assert found.operator == "none"
    assert lesson_of(row(question, "hotpotqa")) is None


def test_a_question_is_taken_once():
    rows = [row("Who is X?", query_triples=[["X", "a", "?1"]]) for _ in range(2)]
    assert len(lessons_of(rows)) == 1


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="no shared data folder; set TRIAX_DATA")
@pytest.mark.parametrize(
    ("name", "share"),
    [("musique", 0.95), ("2wikimultihopqa_qa", 0.98), ("popqa", 1.0), ("hotpotqa", 0.6)],
)
def test_most_rows_give_a_lesson(name, share):
    rows = list(read_jsonl(DATA / name / "train.jsonl.gz"))
    found = lessons_of(rows)
    assert len(found) >= share * len({one["question"].casefold() for one in rows})
    assert all(is_sound(lesson.triplets) for lesson in found)
