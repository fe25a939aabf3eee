import hashlib

import numpy as np
import pytest

from triax.indexing.hashing import HashingEncoder
from triax.records.verbs import Encoder


def test_counts_words_in_hashed_components():
    def place(word):
        return int(hashlib.md5(word.encode()).hexdigest(), 16) % 512

    row = HashingEncoder().encode(["The cat, THE hat-Ж"])[0]
    expected = np.zeros(512)
    for word, count in {"the": 2, "cat": 1, "hat": 1, "ж": 1}.items():
        expected[place(word)] += count
    assert row.dtype == np.float32
    np.testing.assert_allclose(row, expected / np.sqrt(7), rtol=1e-6)


def test_agrees_with_a_score_that_the_released_code_printed():
    """Its run on a toy film corpus; without collisions 7 shared of 8 and 9 words."""
    query, proposition = HashingEncoder().encode(
        ["God's Gift To Women is directed by", "God's Gift to Women directed by Michael Curtiz"]
    )
    assert float(query @ proposition) == pytest.approx(0.8249579071998596, abs=1e-7)


def test_a_text_without_words_is_the_zero_vector():
    encoder = HashingEncoder(8)
    assert isinstance(encoder, Encoder)
    assert not encoder.encode(["", "?!"], "query").any()
    assert encoder.encode([]).shape == (0, 8)


def test_a_dimension_below_one_is_refused():
    with pytest.raises(ValueError, match="dimension is 0, expected at least 1"):
        HashingEncoder(0)
