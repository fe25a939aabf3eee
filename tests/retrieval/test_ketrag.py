import numpy as np
import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.tables import TripletTables
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.triplets import Extraction, Triplet
from triax.records.verbs import Retriever
from triax.retrieval.ketrag import KetBudget, open_ketrag, restricted

TEXTS = {
    "a": "Vertigo is a film that Hitchcock directed.",
    "b": "Hitchcock was born in London.",
    "c": "Stalker is a film that Tarkovsky directed.",
    "d": "The Nile flows through Egypt.",
}
FACTS = {
    "a": [("Vertigo", "directed by", "Hitchcock"), ("Hitchcock", "is", "director")],
    "b": [("Hitchcock", "born in", "London"), ("Hitchcock", "is", "director")],
    "c": [("Stalker", "directed by", "Tarkovsky")],
    "d": [("Nile", "flows through", "Egypt")],
}
CHUNKS = [Chunk(name, name, text) for name, text in TEXTS.items()]
FOUND = [Extraction(name, tuple(Triplet(*one) for one in facts)) for name, facts in FACTS.items()]


class Words:
    """A token is a word."""

    def count(self, texts):
        return [len(text.split()) for text in texts]

    def cut(self, text, max_tokens):
        return " ".join(text.split()[:max_tokens])


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ketrag") / "index"
    return build_index(CHUNKS, propositions(FOUND), HashingEncoder(256), folder, extractor="t")


def search(index, question, num_chunks=4, **given):
    retriever = open_ketrag(index, HashingEncoder(256), Words(), **given)
    assert isinstance(retriever, Retriever)
    return retriever.search([question] if question else [[]], num_chunks)[0]


def test_the_tables_of_some_chunks_keep_what_they_state():
    tables = restricted(TripletTables.of(CHUNKS, propositions(FOUND)), np.array([1, 2]))
    assert [chunk.id for chunk in tables.all_chunks()] == ["b", "c"]
    said = {one.text: one.chunk_ids for one in tables.all_propositions()}
    assert said == {
        "Hitchcock born in London": ("b",),
        "Hitchcock is director": ("b",),
        "Stalker directed by Tarkovsky": ("c",),
    }


def test_both_channels_bring_their_chunks(index):
    found = search(index, ["Where was Hitchcock born?"], share=1.0)
    assert {"a", "b"} <= {one.chunk.id for one in found.chunks[:2]}
    assert "Hitchcock born in London" in [hit.proposition.text for hit in found.hits]
    assert [one.score for one in found.chunks] == sorted(
        (one.score for one in found.chunks), reverse=True
    )


def test_theta_shuts_a_channel(index):
    """Keywords alone give no triplet; the skeleton alone gives chunks of its entities only."""
    keywords = search(index, ["Where was Hitchcock born?"], skeleton_share=0.0)
    assert keywords.hits == () and len(keywords.chunks) == 4
    skeleton = search(index, ["Nile flows through Egypt"], share=1.0, skeleton_share=1.0)
    assert [one.chunk.id for one in skeleton.chunks][0] == "d"
    assert len(skeleton.hits) >= 1


def test_what_lies_outside_the_skeleton_gives_no_triplet(index):
    one = search(index, ["Where was Hitchcock born?"], share=0.25)
    all_of_it = search(index, ["Where was Hitchcock born?"], share=1.0)
    assert len(one.hits) < len(all_of_it.hits)
    assert {"a", "b"} <= {found.chunk.id for found in one.chunks}


def test_r09_an_empty_group_finds_nothing_and_the_budget_binds(index):
    assert search(index, []) == Evidence()
    assert search(index, ["Hitchcock"], max_tokens=0) == Evidence()
    assert len(search(index, ["Hitchcock"], num_chunks=1).chunks) == 1


def test_shares_out_of_range_are_refused():
    with pytest.raises(ValueError, match="skeleton_share is 2.0"):
        KetBudget(skeleton_share=2.0)
