import asyncio
from dataclasses import dataclass

from triax.reasoning.synthesize import Ending
from triax.reasoning.trained_decompose import Writer
from triax.reasoning.trained_synthesize import (
    TrainedEvidenceReader,
    TrainedSynthesizer,
    bind,
    branches,
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


def answer(writer, reader, rows, **more):
    state = State(resolved=resolved(rows))
    made = TrainedSynthesizer(writer, reader, **more)
    ending = Ending(Question("q", "Which?"), writer.written.triplets, state, Evidence())
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


def test_same_without_values_is_what_the_reader_says():
    both = (("A", "country", "?1"), ("B", "country", "?2"))
    said = Reading("yes", 0, 0, 0, 1.0, 0.4, 0.6, "yes")
    assert answer(FakeWriter("same", both), FakeReader(said), ()) == "yes"
    assert answer(FakeWriter("same", both), FakeReader(), ()) == "no"


def test_judgements_are_read():
    both = (("A", "is a film", "?1"), ("B", "is a film", "?2"))
    rows = (("A", "is a film", "drama", 0.9), ("B", "is a film", "comedy", 0.9))
    verdict = Reading("yes", 0, 0, 0, 1.0, 0.4, 0.6, "yes")
    assert answer(FakeWriter("both", both), FakeReader(verdict), rows) == "yes"
    name = Reading("film B", 0, 0, 0, 1.0, 0.4, 0.6)
    assert answer(FakeWriter("which", both), FakeReader(name), rows) == "B"


def test_the_last_placeholder_answers():
    chain = FILMS[:2]
    assert answer(FakeWriter("none", chain), FakeReader(), RESOLVED) == "13 August 1899"


def test_a_surer_reading_of_the_question_goes_before_it():
    said = Reading("1900", 0, 0, 4, 3.0, 0.75, 0.9)
    chain = FakeWriter("none", FILMS[:2])
    assert answer(chain, FakeReader(said), RESOLVED) == "1900"  # 0.75 against 0.7
    assert answer(chain, FakeReader(said), RESOLVED, trusts_slots=1.2) == "13 August 1899"


def test_an_open_question_is_read_or_left():
    said = Reading("1900", 0, 0, 4, 3.0, 0.2, 0.9)
    chain = FakeWriter("none", FILMS[:2])
    assert answer(chain, FakeReader(said), ()) == "1900"
    assert answer(chain, FakeReader(), ()) is None


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
    unsure = asyncio.run(TrainedEvidenceReader(reader, min_here=0.8).read(items))
    assert [reply.value.text for reply in unsure] == [None, None]
