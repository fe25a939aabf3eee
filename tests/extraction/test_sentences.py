import asyncio
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.extraction.sentences import SentenceExtractor, split_sentences
from triax.extraction.verbalize import sentence
from triax.records.documents import Chunk
from triax.records.text import clean
from triax.records.triplets import Extraction
from triax.records.verbs import Extractor

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


def read(text: str, title: str = "") -> list[str]:
    extraction = SentenceExtractor().read(Chunk("c", "d", text, title))
    return [" | ".join(triplet.fields) for triplet in extraction.triplets]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One ends. Two ends! Does three? Yes.", ["One ends", "Two ends!", "Does three?", "Yes"]),
        (
            "Dr. Who met Mr. J. R. R. Tolkien. He left.",
            ["Dr. Who met Mr. J. R. R. Tolkien", "He left"],
        ),
        ("It cost 1.5 million. 20 came.", ["It cost 1.5 million", "20 came"]),
        ("In the U.S. Army he rose. Then", ["In the U.S. Army he rose", "Then"]),
        ("Born in the U.S. He moved.", ["Born in the U.S", "He moved"]),
        ("Founded by Apple Inc. The firm grew.", ["Founded by Apple Inc", "The firm grew"]),
        ("Acme Inc. Europe grew.", ["Acme Inc. Europe grew"]),
        ("After World War I. It was late.", ["After World War I", "It was late"]),
        ("George A. A. Smith, No. 5, e.g. Vol. II.", ["George A. A. Smith, No. 5, e.g. Vol. II"]),
        (
            'He said "Go." Then "Stay!" (He left.) End',
            ['He said "Go."', 'Then "Stay!"', "(He left.)", "End"],
        ),
        ("first line\n\nsecond line\r\nthird", ["first line", "second line", "third"]),
        ("東京は首都です。人口は多い。", ["東京は首都です。", "人口は多い。"]),
        ("Москва. Столица России. Да", ["Москва", "Столица России", "Да"]),
        ("wait... what", ["wait... what"]),
        (" . ! \n --- \n", []),
    ],
)
def test_split_sentences(text: str, expected: list[str]) -> None:
    assert list(split_sentences(text)) == expected


def test_r08_long_sentences_are_cut_and_nothing_is_lost() -> None:
    words = [f"w{i}," if i % 7 == 0 else f"w{i}" for i in range(100)]
    pieces = list(split_sentences(" ".join(words), max_words=16))
    assert " ".join(pieces).split() == words
    assert all(len(piece.split()) <= 16 for piece in pieces)
    assert all(piece.endswith(",") for piece in pieces[:-1])
    assert [len(p.split()) for p in split_sentences("a " * 40, max_words=16)] == [16, 16, 8]


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Paris", "Paris is the capital of France.", "Paris | is | the capital of France"),
        ("Inception", "Inception was directed by X.", "Inception | was directed by | X"),
        ("Brad Pitt", "He was born in 1963.", "Brad Pitt | was born in | 1963"),
        ("Brad Pitt", "She first came to notice.", "Brad Pitt | first came to | notice"),
        ("Brad Pitt", "His father was William.", "Brad Pitt's father | was | William"),
        ("Brad Pitt", "Brad Pitt's father was William.", "Brad Pitt's father | was | William"),
        ("Inception (film)", "The film won an award.", "Inception (film) | won | an award"),
        ("Inception (film)", "Inception is a film.", "Inception (film) | is | a film"),
        ("Inception", "The film crew is large.", "Inception | : | The film crew is large"),
        ("Beatles", "The Beatles were a band.", "Beatles | were | a band"),
        ("X", "X (born 1950, based in Y) is Z.", "X | (born 1950, based in Y) is | Z"),
        ("Paris", "Parisians like bread.", "Paris | : | Parisians like bread"),
        ("Paris", "The Seine flows there.", "Paris | : | The Seine flows there"),
        ("Paris", "Paris grew.", "Paris | : | Paris grew"),
        ("Paris", "It grew.", "Paris | : | It grew"),
        ("東京", "東京は日本の首都です。", "東京 | : | 東京は日本の首都です。"),
        ("", "Paris is the capital.", "Paris | is | the capital"),
        ("", "The old town was built in 1200.", "The old town | was built in | 1200"),
        ("", "one two three four", "one | two | three four"),
        ("", "was is are", "was | is | are"),
    ],
)
def test_forms(title: str, text: str, expected: str) -> None:
    assert read(text, title) == [expected]


def test_a_heading_that_repeats_the_title_is_left_out() -> None:
    assert read("# Forth Bridge\n\nIt opened in 1890.", "Forth Bridge") == [
        "Forth Bridge | opened in | 1890"
    ]
    assert len(read("# Forth Bridge\n\n# History\n\nIt opened in 1890.", "Forth Bridge")) == 2


def test_what_is_left_out() -> None:
    assert read("Paris\nPARIS.\nIt is big. It is big.", "Paris") == ["Paris | is | big"]
    assert read("Too short. Yes.") == []


def test_r02_no_sentence_is_empty() -> None:
    assert isinstance(SentenceExtractor(), Extractor)
    chunks = [Chunk("a", "a", " \n", "Title"), Chunk("b", "b", "It is.", "T")]
    first, second = asyncio.run(SentenceExtractor().extract(chunks))
    assert (first.status, first.triplets) == ("empty", ())
    assert (second.status, second.chunk_id, second.entities) == ("ok", "b", ("T",))
    assert asyncio.run(SentenceExtractor().extract([])) == []
    with pytest.raises(ValueError, match="max_words is 3"):
        SentenceExtractor(max_words=3)


@given(st.text(max_size=60), st.text(max_size=12))
def test_r07_any_text(text: str, title: str) -> None:
    check(SentenceExtractor().read(Chunk("c", "d", text, title)), title)


WORDS = st.sampled_from(
    "He His The film is was born in Rome Rome's (x) its . ! The A J. Inc. 1.5 ' '".split()
)


@given(st.lists(WORDS, max_size=14).map(" ".join), st.sampled_from(["Rome", "The film", "x", ""]))
def test_any_words(text: str, title: str) -> None:
    check(SentenceExtractor().read(Chunk("c", "d", text, title)), title)


def check(extraction: Extraction, title: str) -> None:
    assert (extraction.status == "ok") == bool(extraction.triplets)
    title = " ".join(clean(title).split())
    for triplet in extraction.triplets:
        assert all(field and field == " ".join(field.split()) for field in triplet.fields)
        assert triplet.subject.startswith(title)


@pytest.mark.data
def test_propositions_hold_title_and_sentence() -> None:
    path = DATA / "musique" / "corpus.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(next(stream)) for _ in range(300)]
    for row in rows:
        extraction = SentenceExtractor().read(Chunk("c", "d", row["text"], row["title"]))
        texts = [sentence(triplet) for triplet in extraction.triplets]
        assert texts
        said = set(" ".join(texts).split())
        missing = [w for w in clean(row["text"]).split() if w not in said and w[:-1] not in said]
        # Pronouns and "The film" are replaced, the title's own words may be attached to a mark.
        allowed = {"he", "she", "it", "they", "his", "her", "its", "their", "the"}
        rest = [w for w in missing if w.casefold() not in allowed]
        assert len(rest) <= 0.02 * len(row["text"].split()) + 3, (row["title"], rest)
