import asyncio

from triax.llm.ask import Reply
from triax.reasoning.reading_synthesizer import ReadingSynthesizer
from triax.reasoning.synthesize import Ending, Short, Synthesizer
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, ScoredChunk
from triax.records.questions import Question
from triax.records.state import Resolved, State
from triax.records.triplets import Proposition, Triplet
from triax.records.usage import Usage

KNOWN = Resolved(Triplet("Vertigo", "directed by", "Hitchcock", 0.5), ("a",), 1)
FOUND = Hit(Proposition("p", Triplet("x", "y", "z"), "x y z", ("a",)), 1.0, ("a",))
CHUNK = ScoredChunk(Chunk("a", "a", "text"), 1.0)
ENDING = Ending(Question("q", "Who?"), (), State((KNOWN,)), Evidence((CHUNK,), (FOUND,)))


class Sees:
    async def read(self, items):
        self.items = items
        return [Reply(Short("Hitchcock"), Usage(1)) for _ in items]


def seen(**switches):
    reader = Sees()
    synthesizer = ReadingSynthesizer(reader, **switches)
    assert isinstance(synthesizer, Synthesizer)
    [reply] = asyncio.run(synthesizer.synthesize([ENDING]))
    assert reply.value == Short("Hitchcock")
    [(question, evidence)] = reader.items
    assert question is ENDING.question
    return evidence


def test_what_is_resolved_stands_before_what_was_found():
    evidence = seen(keeps_hits=True)
    texts = [hit.proposition.text for hit in evidence.hits]
    assert texts == ["Vertigo directed by Hitchcock", "x y z"]
    assert (evidence.hits[0].score, evidence.hits[0].chunk_ids) == (0.5, ("a",))
    assert evidence.chunks == (CHUNK,)


def test_passages_and_propositions_can_be_left_out():
    evidence = seen(keeps_chunks=False)
    assert evidence.chunks == () and len(evidence.hits) == 1
