"""Toy corpora, written by hand."""

from collections.abc import Callable, Sequence

import pytest

from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet

SENTENCES = {
    "ada": [("Ada Lovelace", "wrote", "the first program"), ("Ada", "born in", "London")],
    "babbage": [("Charles Babbage", "designed", "the engine"), ("Babbage", "born in", "London")],
    "curie": [("Marie Curie", "born in", "Warsaw"), ("Мария Кюри", "родилась в", "Варшаве")],
    "london": [("Ada", "born in", "London"), ("London", "lies on", "the Thames")],
    "empty": [],
}


def corpus(names: Sequence[str]) -> tuple[list[Chunk], list[Proposition]]:
    """Chunks and unmerged propositions of some documents of SENTENCES."""
    chunks = [Chunk(f"{name}-0", name, f"All about {name}.", name.title()) for name in names]
    propositions = [
        Proposition("|".join(fields), Triplet(*fields), " ".join(fields), (f"{name}-0",))
        for name in names
        for fields in SENTENCES[name]
    ]
    return chunks, propositions


@pytest.fixture
def toy() -> Callable[[Sequence[str]], tuple[list[Chunk], list[Proposition]]]:
    return corpus
