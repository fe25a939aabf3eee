import asyncio
from dataclasses import dataclass

import pytest

from triax.reasoning.synthesize import Ending
from triax.reasoning.trained_decompose import Writer
from triax.reasoning.trained_synthesize import (
    TrainedEvidenceReader,
    TrainedSynthesizer,
    bind,
    branches,
    is_polar,
)
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.readings import Reading
from triax.records.state import Resolved, State
from triax.records.triplets import Triplet

FILMS = (
    ("Vertigo", "director", "?1"),
    ("?1", "date of birth", "?2"),
    ("Stalker", "director", "?3"),
    ("?3", "date of birth", "?4"),
)
NOTHING = Evidence()
RESOLVED = (
    ("Vertigo", "director", "Alfred Hitchcock", 0.9),
    ("Stalker", "director", "Andrei Tarkovsky", 0.8),
    ("Alfred Hitchcock", "date of birth", "13 August 1899", 0.7),
    ("Andrei Tarkovsky", "date of birth", "4 April 1932", 0.95),
)


@dataclass(frozen=True)
class Written:
    operator: str
    triplets: tuple[QueryTriplet, ...]


class FakeWriter:
    def __init__(self, operator, queries):
        self.written = Written(operator, triplets(queries))

    def write(self, questions):
        return [self.written for _ in questions]


class FakeReader:
    name = "fake"

    def __init__(self, reading=None):
        self.reading = reading
        self.requests = []

    def read(self, requests, *, allows_verdicts=False):
        assert allows_verdicts
        self.requests += requests
        return [self.reading for _ in requests]


def triplets(queries):
    return tuple(QueryTriplet.parse(*one) for one in queries)


def resolved(rows):
    return tuple(Resolved(Triplet(*row[:3], confidence=row[3])) for row in rows)


def answer(writer, reader, rows, question="Which?", evidence=NOTHING, **more):
    state = State(resolved=resolved(rows))
    made = TrainedSynthesizer(writer, reader, **more)
    ending = Ending(Question("q", question), writer.written.triplets, state, evidence)
    (reply,) = asyncio.run(made.synthesize([ending]))
    return reply.value.text


def test_the_fakes_are_what_is_asked_for():
    assert isinstance(FakeWriter("none", FILMS), Writer)


def test_chains_are_bound_and_as_sure_as_their_weakest_triplet():
    bound = bind(triplets(FILMS), resolved(RESOLVED))
    assert bound.values == {
        "1": "Alfred Hitchcock",
        "2": "13 August 1899",
        "3": "Andrei Tarkovsky",
        "4": "4 April 1932",
    }
    assert bound.confidence == {"1": 0.9, "2": 0.7, "3": 0.8, "4": 0.8}


def test_what_is_compared_are_the_starts_of_the_chains():
    assert branches(triplets(FILMS)) == {"Vertigo": ["2"], "Stalker": ["4"]}
    lives = [("A", "birth", "?1"), ("A", "death", "?2"), ("B", "birth", "?3")]
    assert branches(triplets(lives)) == {"A": ["1", "2"], "B": ["3"]}


def test_a_comparison_is_computed():
    assert answer(FakeWriter("min", FILMS), FakeReader(), RESOLVED) == "Vertigo"
    assert answer(FakeWriter("max", FILMS), FakeReader(), RESOLVED) == "Stalker"


def test_a_missing_value_goes_to_the_name_that_the_reader_says():
    said = Reading("the film Stalker", 0, 0, 0, 1.0, 0.4, 0.6)
    assert answer(FakeWriter("min", FILMS), FakeReader(said), RESOLVED[:3]) == "Stalker"


POLAR = "Are A and B both films?"
BOTH = (("A", "is a film", "?1"), ("B", "is a film", "?2"))
YES = Reading("yes", 0, 0, 0, 1.0, 0.4, 0.6, "yes")


def chunks(*rows):
    return Evidence(
        tuple(ScoredChunk(Chunk(str(n), "d", text, title=title), 1.0) for n, (title, text) in rows)
    )


@pytest.mark.parametrize(
    ("question", "polar"),
    [
        ("Are A and B both films?", True),
        ("Did A win?", True),
        ("Is A or B a film?", False),
        ("Which of them is a film?", False),
        ("Island of whom?", False),
    ],
)
def test_questions_that_want_yes_or_no(question, polar):
    assert is_polar(question) is polar


@pytest.mark.parametrize("operator", ["same", "both", "none"])
def test_yes_and_no_are_what_the_reader_says(operator):
    reader = FakeReader(YES)
    assert answer(FakeWriter(operator, BOTH), reader, (), POLAR) == "yes"
    assert reader.requests[0].kinds == "verdict"


def test_equal_values_are_computed_and_nothing_read_is_no():
    rows = (("A", "is a film", "drama", 0.9), ("B", "is a film", "drama", 0.9))
    assert answer(FakeWriter("same", BOTH), FakeReader(), rows, POLAR) == "yes"
    assert answer(FakeWriter("same", BOTH), FakeReader(), (), POLAR) == "no"


def test_a_verdict_is_read_from_the_starts_of_both_passages_together():
    reader = FakeReader(YES)
    evidence = chunks(
        *enumerate([("X", "Of B."), ("C", "Other."), ("B (film)", "It."), ("A", "w " * 70)])
    )
    answer(FakeWriter("both", BOTH), reader, (), POLAR, evidence)
    assert reader.requests[0].passages == ("A: " + "w " * 60 + "B (film): It.",)


def test_what_both_share_is_the_value_that_stands_twice_or_the_surest():
    question = "What do A and B have in common?"
    said = Reading("song", 0, 0, 4, 1.0, 0.5, 0.6)
    same = (("A", "is a film", "Drama", 0.2), ("B", "is a film", "drama", 0.3))
    assert answer(FakeWriter("same", BOTH), FakeReader(said), same, question) == "drama"
    other = (same[0], ("B", "is a film", "comedy", 0.4))
    assert answer(FakeWriter("same", BOTH), FakeReader(said), other, question) == "song"
    assert answer(FakeWriter("same", BOTH), FakeReader(), other, question) == "comedy"
    assert answer(FakeWriter("same", BOTH), FakeReader(), (), question) is None


def test_which_name_is_read():
    rows = (("A", "is a film", "drama", 0.9), ("B", "is a film", "comedy", 0.9))
    name = Reading("film B", 0, 0, 0, 1.0, 0.4, 0.6)
    reader = FakeReader(name)
    assert answer(FakeWriter("which", BOTH), reader, rows) == "B"
    assert reader.requests[0].kinds == "span"


def test_the_last_placeholder_answers():
    chain = FILMS[:2]
    assert answer(FakeWriter("none", chain), FakeReader(), RESOLVED) == "13 August 1899"


def test_a_bound_value_goes_before_a_surer_reading_of_the_question():
    said = Reading("1900", 0, 0, 4, 3.0, 0.99, 0.99)
    chain = FakeWriter("none", FILMS[:2])
    assert answer(chain, FakeReader(said), RESOLVED) == "13 August 1899"


def test_an_open_question_is_read_or_left():
    said = Reading("1900", 0, 0, 4, 3.0, 0.2, 0.9)
    chain = FakeWriter("none", FILMS[:2])
    assert answer(chain, FakeReader(said), ()) == "1900"
    assert answer(chain, FakeReader(), ()) is None
    assert answer(chain, FakeReader(said), (), min_here=0.95) is None


def test_resolved_triplets_are_read_too():
    reader = FakeReader()
    answer(FakeWriter("none", FILMS[:1]), reader, RESOLVED[:1])
    assert reader.requests[0].passages == ("Vertigo director Alfred Hitchcock",)


def test_vanilla_reads_chunks_or_else_the_question():
    reader = FakeReader(Reading("Hitchcock", 0, 0, 0, 1.0, 0.6, 0.7))
    evidence = Evidence((ScoredChunk(Chunk("c", "d", "By Hitchcock.", title="Vertigo"), 1.0),))
    items = [(Question("q", "Who?"), evidence), (Question("r", "A or B?"), Evidence())]
    replies = asyncio.run(TrainedEvidenceReader(reader).read(items))
    assert [reply.value.text for reply in replies] == ["Hitchcock", "Hitchcock"]
    assert [one.passages for one in reader.requests] == [("Vertigo. By Hitchcock.",), ("A or B?",)]
    assert [one.kinds for one in reader.requests] == ["span", "span"]
    asked = [(Question("q", "Is it by Hitchcock?"), evidence)]
    asyncio.run(TrainedEvidenceReader(reader).read(asked))
    assert reader.requests[-1].kinds == "any"
    unsure = asyncio.run(TrainedEvidenceReader(reader, min_here=0.8).read(items))
    assert [reply.value.text for reply in unsure] == [None, None]
