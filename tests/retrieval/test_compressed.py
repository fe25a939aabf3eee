from functools import partial

from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter
from triax.pipelines.assembly import Parts, assemble
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.usage import Usage
from triax.records.verbs import Retriever
from triax.retrieval.compressed import CompressedRetriever
from triax.retrieval.dense import DenseRetriever
from triax.retrieval.graph_walk import GraphWalkCompressor
from triax.retrieval.nearest_chunks import NearestChunks
from triax.retrieval.shown import ShownTokens
from triax.retrieval.truncation import Truncation


class Ranked:
    """As many chunks of one word as are asked for, and a cost."""

    def __init__(self):
        self.asked = []

    def search(self, groups, num_chunks):
        self.asked.append(num_chunks)
        chunks = [ScoredChunk(Chunk(f"c{n}", "d", "word"), -float(n)) for n in range(num_chunks)]
        return [Evidence(tuple(chunks), usage=Usage(calls=2)) for _ in groups]


def test_the_budget_takes_the_place_of_k():
    retriever = Ranked()
    # The heading and two chunks of two words each.
    compressor = Truncation(ShownTokens(WordCounter(1.0)), 5)
    compressed = CompressedRetriever(retriever, compressor, num_fetched=50)
    assert isinstance(compressed, Retriever)
    first, second = compressed.search([["a"], ["b"]], 5)
    assert [one.chunk.id for one in first.chunks] == ["c0", "c1"]
    assert first == second and first.usage == Usage(calls=2)
    compressed.search([["a"]], 80)
    assert retriever.asked == [50, 80]


def test_it_is_assembled_and_says_whether_triplets_are_read(index, encoder, chunks, ids):
    shown = ShownTokens(WordCounter(1.0))

    def made(compressor):
        parts = Parts(ScriptedCompleter([]), encoder, chunks, lambda: index, tuple)
        part = partial(CompressedRetriever, partial(DenseRetriever), compressor)
        return assemble(part, parts), parts.reads_triplets

    walked, reads = made(partial(GraphWalkCompressor, shown=shown))
    assert reads
    (found,) = walked.search([["Where was Marie Curie born?"]], 2)
    assert ids(found)[0] == "curie" and len(found.chunks) == 4
    assert "Marie Curie was born in Warsaw" in [hit.proposition.text for hit in found.hits]
    assert not made(partial(NearestChunks, shown=shown))[1]
    assert not made(partial(Truncation, shown=shown))[1]
