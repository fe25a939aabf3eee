"""References: the tokenizer's own encoding, one text at a time; whole words of a small base."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from triax.models import weights
from triax.models.token_counter import ModelTokenCounter, WordCounter, shared_token_counter
from triax.records.verbs import TokenCounter


@pytest.fixture(scope="module")
def words(make_base):
    return ModelTokenCounter(str(make_base(["the", "red", "fox"])))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A byte-level BPE, in which a beginning can fall into other tokens than the whole does."""
    folder = tmp_path_factory.mktemp("bpe")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(["abc abcd bcd cd the red fox, the réd føx"] * 5, trainer)
    backend.save(str(folder / "tokenizer.json"))
    return ModelTokenCounter(str(folder)), backend


def test_counts_by_hand_and_without_special_tokens(words):
    assert isinstance(words, TokenCounter)
    # Words of the base one by one, a full stop, and unknown words as one each.
    assert words.count(["the red fox.", "", "a wolf", "the red fox."]) == [4, 0, 2, 4]
    assert words.count([]) == []


def test_a_cut_by_hand(words):
    text = "the red, red fox"
    assert words.cut(text, 5) == text
    assert [words.cut(text, n) for n in (4, 3, 1, 0, -1)] == [
        "the red, red",
        "the red,",
        "the",
        "",
        "",
    ]


@given(st.text("abcd thé🙂\n", max_size=30), st.integers(-1, 12))
def test_a_cut_is_the_longest_beginning_that_fits(pieces, text, max_tokens):
    counter, backend = pieces
    encoded = backend.encode(text)
    assert counter.count([text]) == [len(encoded.ids)]
    cut = counter.cut(text, max_tokens)
    assert text.startswith(cut)
    assert len(backend.encode(cut).ids) <= max(0, max_tokens)
    if cut != text:
        ends = [end for _, end in encoded.offsets if end > len(cut.rstrip())]
        longer = [text[:end] for end in ends[:1]]
        assert all(
            len(backend.encode(one).ids) > max_tokens or one.rstrip() == cut.rstrip()
            for one in longer
        )


def test_one_counter_a_model(monkeypatch, make_base):
    folder = str(make_base(["red"]))
    counter = shared_token_counter(folder)
    assert counter is shared_token_counter(folder)
    assert counter.count(["red fox"]) == [2]
    # What was counted is not tokenised again.
    monkeypatch.setattr(counter._tokenizer, "encode_batch", None)
    assert counter.count(["red fox", "red fox"]) == [2, 2]


@given(st.lists(st.sampled_from(["a", "bc", "d\n", " "]), max_size=20), st.integers(-1, 20))
def test_words_at_a_rate(parts, max_tokens):
    counter = WordCounter(1.3)
    assert isinstance(counter, TokenCounter)
    text = " ".join(parts)
    num_words = len(text.split())
    assert counter.count([text]) == [math.ceil(num_words * 13 / 10)]
    cut = counter.cut(text, max_tokens)
    assert text.startswith(cut)
    fitting = max(n for n in range(num_words + 1) if n == 0 or math.ceil(n * 13 / 10) <= max_tokens)
    assert len(cut.split()) == fitting


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="expected more than 0"):
        WordCounter(0.0)


@pytest.mark.weights
def test_the_base_of_the_trained_reader_counts_as_transformers_does():
    from transformers import AutoTokenizer

    counter = shared_token_counter()
    reference = AutoTokenizer.from_pretrained(str(weights.locate(counter.model)))
    texts = ["A passage [7] of Zürich, 東京", "don't\n\nhyper-parametrisation", ""]
    expected = [len(ids) for ids in reference(texts, add_special_tokens=False)["input_ids"]]
    assert counter.count(texts) == expected
