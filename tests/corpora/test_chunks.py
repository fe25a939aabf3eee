"""Tests of triax.corpora.chunks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from triax.corpora.chunks import chunk_documents, word_spans
from triax.records.documents import Chunk, Document


def words(text):
    return [text[start:end] for start, end in word_spans(text)]


def byte_tokenizer():
    """Every byte of UTF-8 is a token, so that one character has up to four."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({sign: n for n, sign in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def test_windows_by_hand():
    document = Document("d", "  a b c d, e f  ", "T")
    assert chunk_documents([document], size=3, overlap=1) == [
        Chunk("d#0", "d", "a b c", "T", 2),
        Chunk("d#1", "d", "c d,", "T", 6),
        Chunk("d#2", "d", ", e f", "T", 9),
    ]


def test_a_document_that_fits_keeps_its_id_and_text():
    document = Document("d", " a b c ", "T")
    assert chunk_documents([document], size=3, overlap=1) == [Chunk("d", "d", " a b c ", "T", 0)]
    assert [one.id for one in chunk_documents([document], size=2, overlap=1)] == ["d#0", "d#1"]


def test_default_tokens():
    assert words("Mr. O'Neil, 1887") == ["Mr", ".", "O", "'", "Neil", ",", "1887"]
    assert words("x" * 40) == ["x" * 16, "x" * 16, "x" * 8]
    assert words("東京 tower") == ["東", "京", "tower"]
    assert words("Привет_café") == ["Привет_café"]
    assert words(" \n\u00a0") == []


def test_r08_a_giant_word_is_split_and_blank_documents_give_nothing():
    chunks = chunk_documents([Document("d", "x" * 1000), Document("e", " \n")], size=10, overlap=2)
    assert max(len(words(one.text)) for one in chunks) == 10
    assert {one.document_id for one in chunks} == {"d"}
    assert chunk_documents([Document("e", "")]) == []


TEXTS = st.text(
    st.sampled_from("ab  .\n東é\u0301🙂\u200b") | st.characters(codec="utf-8"), max_size=80
)
SIZES = st.integers(1, 9).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(TEXTS, SIZES)
@settings(max_examples=200, deadline=None)
def test_windows_cover_the_text_are_bounded_and_share_the_overlap(text, sizes):
    size, overlap = sizes
    chunks = chunk_documents([Document("d", text)], None, size, overlap)
    tokens = [text[start:end] for start, end in word_spans(text)]
    covered = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        assert 0 < len(words(chunk.text)) <= size
        covered.update(range(chunk.start, chunk.start + len(chunk.text)))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    joined = words(chunks[0].text) if chunks else []
    for left, right in zip(chunks, chunks[1:]):
        if overlap:
            assert words(left.text)[-overlap:] == words(right.text)[:overlap]
        joined += words(right.text)[overlap:]
    assert joined == tokens


@given(TEXTS, SIZES)
@settings(max_examples=100, deadline=None)
def test_a_tokenizer_of_bytes_loses_no_character(text, sizes):
    size, overlap = sizes
    chunks = chunk_documents([Document("d", text)], byte_tokenizer(), size, overlap)
    covered = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        covered.update(range(chunk.start, chunk.start + len(chunk.text)))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)


def test_a_tokenizer_that_truncates_reads_the_whole_document_and_keeps_its_setting():
    tokenizer = byte_tokenizer()
    tokenizer.enable_truncation(4)
    chunks = chunk_documents([Document("d", "abcdefghij")], tokenizer, size=4, overlap=1)
    assert [one.text for one in chunks] == ["abcd", "defg", "ghij"]
    assert tokenizer.truncation["max_length"] == 4


def test_a_function_of_spans_is_taken():
    chunks = chunk_documents(
        [Document("d", "abcd")], lambda text: [(n, n + 1) for n in range(len(text))], 3, 0
    )
    assert [(one.text, one.start) for one in chunks] == [("abc", 0), ("d", 3)]


def test_refusals():
    with pytest.raises(ValueError, match="0 <= overlap < size"):
        chunk_documents([], size=5, overlap=5)
    with pytest.raises(ValueError, match="two chunks have the id 'd#0'"):
        chunk_documents([Document("d#0", "x"), Document("d", "a b c")], size=2, overlap=0)
