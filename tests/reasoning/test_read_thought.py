import asyncio

from triax.llm.ask import Reply
from triax.reasoning.read_thought import ReadingThinker
from triax.reasoning.synthesize import Short
from triax.reasoning.thought import Thinker, Thought, Thread, next_query
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question
from triax.records.usage import Usage

QUESTION = Question("q", "Where was its director born?", search="director of Vertigo born")
EVIDENCE = Evidence((ScoredChunk(Chunk("v", "v", "text"), 0.5),))


class Says:
    """A reader that gives the replies that it was told to, and remembers what it was shown."""

    def __init__(self, *replies):
        self.replies = replies
        self.items = []

    async def read(self, items):
        self.items += items
        return list(self.replies)


def think(reply, *thoughts):
    reader = Says(reply)
    thinker = ReadingThinker(reader)
    assert isinstance(thinker, Thinker)
    [said] = asyncio.run(thinker.think([Thread(QUESTION, EVIDENCE, thoughts)]))
    assert reader.items == [(QUESTION, EVIDENCE)]
    return said


def test_the_answer_stands_behind_the_question_in_the_next_query():
    reply = think(Reply(Short("Hitchcock"), Usage(calls=1), "Hitchcock."))
    query = "director of Vertigo born Hitchcock"
    assert reply.value == Thought("Hitchcock", query, Short("Hitchcock"), False)
    assert (reply.usage, reply.text) == (Usage(calls=1), "Hitchcock.")
    assert next_query(QUESTION, [reply.value]) == query


def test_an_answer_that_comes_again_is_the_last():
    before = Thought("Leytonstone", "x"), Thought("Hitchcock", "x")
    thought = think(Reply(Short("leytonstone"), Usage()), *before).value
    assert (thought.answer, thought.is_last) == (Short("leytonstone"), True)


def test_an_abstention_is_an_empty_thought():
    assert think(Reply(Short(None), Usage())).value == Thought("")


def test_r03_a_failed_reading_stays_failed():
    failed = Reply(None, Usage(calls=1), error="down", is_failed=True)
    assert think(failed) == failed
