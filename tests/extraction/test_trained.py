import asyncio

from triax.extraction.trained import TrainedExtractor
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.records.verbs import Extractor

BORN = Triplet("Marie Curie", "was born in", "Warsaw", 0.9)


def test_chunks_become_extractions(monkeypatch):
    asked = []

    def read(tagger, passages, progress=None):
        asked.extend(passages)
        return [(BORN,) if "Warsaw" in text else () for _, text in passages]

    monkeypatch.setattr("triax.models.trained_tagger.TrainedTagger.read", read)
    extractor = TrainedExtractor()
    assert isinstance(extractor, Extractor)
    chunks = [Chunk("a", "d", "She was born in Warsaw.", "Marie Curie"), Chunk("b", "d", "...")]
    first, second = asyncio.run(extractor.extract(chunks))
    assert first == Extraction("a", (BORN,))
    assert (second.chunk_id, second.status, second.triplets) == ("b", "empty", ())
    assert asked == [("Marie Curie", "She was born in Warsaw."), ("", "...")]


def test_making_one_loads_nothing():
    assert TrainedExtractor(adapter="not/there").name == "trained"
