"""One small index that every retriever searches, and the smallest ones."""

import pytest

from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet

CHUNKS = [
    Chunk("ada", "ada", "Ada Lovelace wrote the first program in London.", "Ada Lovelace"),
    Chunk("babbage", "babbage", "Charles Babbage was born in London.", "Charles Babbage"),
    Chunk("curie", "curie", "Marie Curie was born in Warsaw.", "Marie Curie"),
    Chunk("kyiv", "kyiv", "Київ стоїть на Дніпрі.", "Київ"),
]
FACTS = [
    (("Ada Lovelace", "wrote", "the first program"), "ada"),
    (("Ada Lovelace", "lived in", "London"), "ada"),
    (("Charles Babbage", "was born in", "London"), "babbage"),
    (("Charles Babbage", "was born in", "London"), "ada"),
    (("Marie Curie", "was born in", "Warsaw"), "curie"),
    (("Київ", "стоїть на", "Дніпрі"), "kyiv"),
]


def proposition(fields: tuple[str, str, str], *sources: str) -> Proposition:
    return Proposition("|".join(fields), Triplet(*fields), " ".join(fields), sources)


@pytest.fixture
def propositions():
    return [proposition(fields, source) for fields, source in FACTS]


@pytest.fixture
def encoder():
    return HashingEncoder(256)


@pytest.fixture
def index(tmp_path, propositions, encoder):
    return build_index(CHUNKS, propositions, encoder, tmp_path / "index")


@pytest.fixture
def build(tmp_path, encoder):
    """An index of a few chunks of one word each, every one with a proposition of that word."""

    def build_words(*words, **options):
        chunks = [Chunk(f"c{i}", f"c{i}", word) for i, word in enumerate(words)]
        facts = [
            Proposition(f"p{i}", Triplet(word, word, word), word, (f"c{i}",))
            for i, word in enumerate(words)
        ]
        folder = tmp_path / f"words-{len(words)}"
        return build_index(chunks, facts, encoder, folder, **options)

    return build_words


@pytest.fixture
def chunks():
    return list(CHUNKS)


@pytest.fixture
def ids():
    """The chunk ids of an evidence, in order."""
    return lambda evidence: [scored.chunk.id for scored in evidence.chunks]
