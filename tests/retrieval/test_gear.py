import numpy as np
import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.records.verbs import Retriever
from triax.retrieval.gear import GearRetriever
from triax.retrieval.proximal import Proximal
from triax.retrieval.triplet_beam import Beam

CHUNKS = {name: Chunk(name, name, f"text {name}", name) for name in "abcd"}
FACTS = {
    "a": ("Vertigo", "directed by", "Hitchcock"),
    "b": ("Hitchcock", "born in", "London"),
    "c": ("Stalker", "directed by", "Tarkovsky"),
    "d": ("Nile", "flows through", "Egypt"),
}
QUESTION = "Where was the one who directed Vertigo born?"


class Base:
    """Finds the same chunks for every question."""

    def __init__(self, names="ca"):
        self.names, self.asked = names, []

    def search(self, groups, num_chunks):
        self.asked.append(num_chunks)
        chunks = tuple(ScoredChunk(CHUNKS[name], 1.0) for name in self.names)
        return [Evidence(chunks, usage=Usage(1, 0, 5)) if group else Evidence() for group in groups]


class Says:
    def __init__(self, *texts, usage=Usage()):
        self.texts, self.usage = texts, usage

    def read(self, groups, evidences):
        return [Proximal(self.texts, self.usage) if group else Proximal(()) for group in groups]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    encoder = HashingEncoder(512)
    found = propositions(Extraction(name, (Triplet(*fact),)) for name, fact in FACTS.items())
    folder = tmp_path_factory.mktemp("gear") / "index"
    index = build_index(CHUNKS.values(), found, encoder, folder, extractor="t")
    return lambda base, proximal, **given: GearRetriever(index, encoder, base, proximal, **given)


def test_a_chain_leads_to_a_passage_that_the_question_does_not_reach(make):
    """Base: c, a. The proximal triplet is that of a; its neighbour is that of b."""
    base = Base()
    gear = make(base, Says("Vertigo directed by Hitchcock"), num_base=7, beam=Beam(3, 2), k=1)
    assert isinstance(gear, Retriever)
    [found, nothing] = gear.search([[QUESTION], []], 3)
    assert base.asked == [7] and nothing == Evidence()
    # Chain: a, b. Ranks of the base: c 1, a 2; of the chain: a 1, b 2. With k = 1:
    # a 1/3 + 1/2, c 1/2, b 1/3.
    assert [one.chunk.id for one in found.chunks] == ["a", "c", "b"]
    assert [one.score for one in found.chunks] == pytest.approx([5 / 6, 1 / 2, 1 / 3])
    assert [hit.proposition.text for hit in found.hits] == [
        "Vertigo directed by Hitchcock",
        "Hitchcock born in London",
    ]
    assert found.usage == Usage(1, 0, 5) and found.notes == ()


def test_what_a_model_wrote_is_a_note_and_on_the_bill(make):
    gear = make(Base(), Says("Vertigo directed by Hitchcock", usage=Usage(1, 0, 9, 4)))
    [found] = gear.search([[QUESTION]], 1)
    assert found.usage == Usage(2, 0, 14, 4)
    [note] = found.notes
    assert note.note.text == "Vertigo directed by Hitchcock"
    assert note.note.chunk_ids == ("c", "a")
    # A hit names the chunks that entered.
    assert [hit.chunk_ids for hit in found.hits][0] == ("a",)


def test_without_a_triplet_it_is_the_base(make):
    [found] = make(Base("da"), Says()).search([[QUESTION]], 2)
    assert [one.chunk.id for one in found.chunks] == ["d", "a"] and found.hits == ()


def test_a_gist_is_linked_to_passages(make):
    gear = make(Base(), Says())
    found = gear.passages(
        ["Nile flows through Sudan", "Hitchcock born in", "the Nile flows through"]
    )
    assert [(one.chunk.id, one.score) for one in found] == [("d", 1.0), ("b", 0.5)]
    assert gear.passages([]) == ()


def test_chains_can_be_encoded_as_texts(make):
    """The sum of word counts is the count of the joined text: both ways agree with this encoder."""
    says = Says("Vertigo directed by Hitchcock")
    one, two = (
        make(Base(), says, encodes_chains=chosen).search([[QUESTION]], 3)[0]
        for chosen in (False, True)
    )
    assert [hit.proposition.id for hit in one.hits] == [hit.proposition.id for hit in two.hits]
    np.testing.assert_allclose(
        [hit.score for hit in one.hits], [hit.score for hit in two.hits], atol=0.2
    )
