import asyncio

from triax.reasoning.resolve import Task
from triax.reasoning.trained_resolve import TrainedResolver
from triax.reasoning.update import update
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.readings import Reading
from triax.records.state import State
from triax.records.triplets import Proposition, Triplet


class FakeReader:
    name = "fake"

    def __init__(self, found):
        self.found = found
        self.requests = []

    def read(self, requests, *, allows_verdicts=False):
        self.requests += requests
        return [self.found.get(request.query) for request in requests]


def reading(text, p_right=0.9, p_here=0.9):
    return Reading(text, 0, 0, len(text), 3.0, p_right, p_here)


def task(*queries, hits=()):
    chunk = Chunk("c1", "d1", "It was directed by Hitchcock.", title="Vertigo")
    evidence = Evidence((ScoredChunk(chunk, 1.0),), hits)
    return Task(Question("q", "?"), State.of(QueryTriplet.parse(*one) for one in queries), evidence)


def run(resolver, tasks):
    return asyncio.run(resolver.resolve(tasks))


def test_slots_are_asked_as_in_the_lessons():
    reader = FakeReader({})
    run(TrainedResolver(reader), [task(("Vertigo", "director", "?1"), ("?x", "wrote", "Emma"))])
    assert [one.query for one in reader.requests] == ["Vertigo | director | ?", "? | wrote | Emma"]
    assert reader.requests[0].passages == ("Vertigo. It was directed by Hitchcock.",)


def test_a_question_in_words_is_asked_alone():
    reader = FakeReader({})
    run(TrainedResolver(reader), [task(("Who directed Vertigo?", "answer", "?1"))])
    assert [one.query for one in reader.requests] == ["Who directed Vertigo?"]


def test_a_found_value_fills_its_placeholder_with_its_confidence():
    reader = FakeReader({"Vertigo | director | ?": reading("Hitchcock", p_right=0.8)})
    queries = [("Vertigo", "director", "?1"), ("?1", "date of birth", "?2")]
    (reply,) = run(TrainedResolver(reader), [task(*queries)])
    assert [str(one) for one in reply.value] == ["Vertigo | director | Hitchcock"]
    assert reply.value[0].confidence == 0.8
    moved = update(task(*queries).state, reply.value, 1).state
    assert moved.resolved[0].triplet.confidence == 0.8
    assert [str(one) for one in moved.searchable] == ["Hitchcock | date of birth | ?2"]


def test_what_is_not_here_stays_open():
    reader = FakeReader({"Vertigo | director | ?": reading("Hitchcock", p_here=0.4)})
    (reply,) = run(TrainedResolver(reader), [task(("Vertigo", "director", "?1"))])
    assert reply.value == ()
    assert reply.error == ""


def test_fuzzy_triplets_are_not_asked():
    reader = FakeReader({})
    (reply,) = run(TrainedResolver(reader), [task(("?x", "directed", "?y"))])
    assert reader.requests == []
    assert reply.value == ()


def test_propositions_are_one_more_passage():
    proposition = Proposition("p", Triplet("Vertigo", "directed by", "Hitchcock"), "V by H", ())
    hit = Hit(proposition, 0.9, ("c1",))
    reader = FakeReader({})
    asked = task(("Vertigo", "director", "?1"), hits=(hit,))
    run(TrainedResolver(reader, reads_propositions=True), [asked])
    assert reader.requests[0].passages[-1] == "V by H"


def test_each_task_gets_its_own_answers():
    found = {"A | b | ?": reading("one"), "C | d | ?": reading("two")}
    tasks = [task(("A", "b", "?1")), task(("C", "d", "?1")), task(("E", "f", "?1"))]
    replies = run(TrainedResolver(FakeReader(found)), tasks)
    assert [[str(q.object) for q in reply.value] for reply in replies] == [["one"], ["two"], []]
