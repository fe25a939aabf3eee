import asyncio
from dataclasses import replace

from triax.reasoning.gold_resolve import GoldResolver, gold_queries
from triax.reasoning.resolve import Task
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State
from triax.records.triplets import Triplet

QUESTION = Question(
    "q",
    "Where was the director of Thomas Jefferson (Film) born?",
    gold_triplets=(
        Triplet("Thomas Jefferson", "director", "Ken Burns"),
        Triplet("Ken Burns", "place of birth", "Brooklyn"),
    ),
)


def resolve(query, text, **more):
    chunk = Chunk("c", "d", text, title="Thomas Jefferson (film)")
    state = State.of([QueryTriplet.parse(*query)])
    task = Task(QUESTION, state, Evidence((ScoredChunk(chunk, 1.0),)))
    (reply,) = asyncio.run(GoldResolver(**more).resolve([task]))
    return [str(one) for one in reply.value]


def test_a_gold_value_in_the_evidence_fills_the_slot():
    query = ("Ken Burns", "place of birth", "?2")
    assert resolve(query, "Born in Brooklyn.") == ["Ken Burns | place of birth | Brooklyn"]


def test_brackets_in_the_name_do_not_matter_and_the_query_keeps_its_own():
    query = ("Thomas Jefferson (Film)", "director", "?1")
    found = resolve(query, "Directed by Ken Burns.")
    assert found == ["Thomas Jefferson (Film) | director | Ken Burns"]


def test_what_was_not_retrieved_stays_open():
    query = ("Ken Burns", "place of birth", "?2")
    assert resolve(query, "Nothing.") == []
    assert resolve(query, "Nothing.", needs_evidence=False) != []


def test_another_relation_stays_open():
    assert resolve(("Ken Burns", "spouse", "?2"), "Brooklyn") == []


STEPS = (
    QueryTriplet.parse("Thomas Jefferson (Film)", "director", "?1"),
    QueryTriplet.parse("?1", "place of birth", "?2"),
)


def test_gold_queries_leave_out_what_is_sought_and_fill_what_comes_before():
    question = replace(QUESTION, gold_query_triplets=STEPS)
    assert gold_queries(question) == (
        ("Thomas Jefferson (Film) director", "place of birth"),
        ("Thomas Jefferson (Film) director", "Ken Burns place of birth"),
    )


def test_gold_queries_are_not_filled_by_half():
    question = replace(
        QUESTION, gold_query_triplets=STEPS, gold_triplets=QUESTION.gold_triplets[:1]
    )
    assert gold_queries(question) == (("Thomas Jefferson (Film) director", "place of birth"), ())
