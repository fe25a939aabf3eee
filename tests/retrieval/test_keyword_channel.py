import numpy as np

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.records.documents import Chunk
from triax.records.triplets import Extraction, Triplet
from triax.retrieval.keyword_channel import KeywordChannel, word_vectors
from triax.retrieval.skeleton import word_table

# Words w0, w1, w2 of chunks 0..3.
HAS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32)
WORDS = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
CHUNKS = np.array([[0.6, 0.8], [1, 0], [0.8, 0.6], [0, 1]], np.float32)
QUERY = np.array([1, 0], np.float32)


def channel(tokens=(10, 10, 10, 10), num_words=1000):
    from scipy.sparse import csr_array

    return KeywordChannel(csr_array(HAS), WORDS, CHUNKS, tokens, num_words)


def rows(found):
    return [row for row, _ in found]


def test_words_lead_to_chunks_which_are_ranked_by_themselves():
    """All words fit into twice 40 tokens: every chunk is gathered, by nearness 1, 2, 0, 3."""
    found = channel().ranked(QUERY, 40)
    assert rows(found) == [1, 2, 0, 3]
    np.testing.assert_allclose([score for _, score in found], [1, 0.8, 0.6, 0], atol=1e-6)


def test_it_gathers_twice_the_budget_and_shows_the_budget():
    """20 tokens: w0 gathers 1 and 0, w1 then 2; 40 are reached only with w2's 3. Two are shown."""
    assert rows(channel().ranked(QUERY, 20)) == [1, 2]
    # 15 tokens: twice that are reached after chunks 1, 0 and 2; one chunk of 10 fits.
    assert rows(channel().ranked(QUERY, 15)) == [1]
    assert rows(channel(tokens=(5, 30, 5, 5)).ranked(QUERY, 20)) == []
    assert channel().ranked(QUERY, 0) == []


def test_only_so_many_words_are_walked():
    assert rows(channel(num_words=1).ranked(QUERY, 100)) == [1, 0]
    assert rows(channel(num_words=0).ranked(QUERY, 100)) == []


def test_a_word_is_the_mean_of_its_sentences(tmp_path):
    encoder = HashingEncoder(32)
    texts = ["Cats sleep. Dogs bark", "Cats play"]
    chunks = [Chunk(str(n), str(n), text) for n, text in enumerate(texts)]
    facts = propositions([Extraction("0", (Triplet("Cats", "do", "sleep"),))])
    index = build_index(chunks, facts, encoder, tmp_path / "index", extractor="t")
    vocabulary, _ = word_table(texts)
    found = dict(zip(vocabulary, word_vectors(index, encoder, vocabulary, texts)))
    sleep, bark, play = encoder.encode(["Cats sleep", "Dogs bark", "Cats play"], "passage")
    np.testing.assert_allclose(found["cats"], (sleep + play) / 2, atol=1e-6)
    np.testing.assert_allclose(found["bark"], bark, atol=1e-6)
