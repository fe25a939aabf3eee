import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_questions import VOCABULARY, tiny_reader, tiny_writer

from triax.models.query_decoding import QueryDecoder, pad_sources
from triax.models.query_vocabulary import QueryVocabulary, WritingRules

QUESTIONS = [
    "Who is the mother of the director of Vertigo?",
    "Stalker or Vertigo?",
    "When was Who's Afraid?, Film (1950) born?",
]


def test_it_takes_the_best_of_what_is_allowed():
    """Against a plain loop that scores the whole output anew at each step."""
    model = tiny_writer(1, scale=8.0)
    [source] = tiny_reader().read(QUESTIONS[2:])
    arrays = pad_sources([source], 1, (24,))
    ids, mask, copyable, _ = (jnp.asarray(one) for one in arrays)
    score = nnx.jit(lambda model, given: model(model.read(ids, mask, copyable), given))
    rules = WritingRules(VOCABULARY.kinds, VOCABULARY.placeholder_numbers, np)
    state, outputs = rules.start(1, 24), []
    given = np.zeros((1, 24), np.int32)
    for n in range(24):
        logits = np.asarray(score(model, jnp.asarray(given)))[:, n]
        allowed = rules.allowed(state, arrays[3], arrays[2], 24 - n)
        outputs.append(int(np.where(allowed, logits, -np.inf)[0].argmax()))
        state = rules.step(state, np.array(outputs[-1:]))
        if n < 23:
            given[0, n + 1] = outputs[-1]
    [written] = QueryDecoder(model, VOCABULARY, 24).write([source])
    assert written == VOCABULARY.read(outputs, source)


def test_whatever_the_weights_are_it_parses_and_rows_do_not_mix():
    decoder = QueryDecoder(tiny_writer(3, scale=8.0), VOCABULARY, 24)
    sources = tiny_reader().read(QUESTIONS[:2])
    together = decoder.write(sources)
    assert [decoder.write([source])[0] for source in sources] == together
    assert all(triplet.placeholders for one in together for triplet in one.triplets)
    assert decoder.write([]) == []


def test_settings_that_do_not_fit():
    model = tiny_writer()
    with pytest.raises(ValueError, match="expected 8 to 128"):
        QueryDecoder(model, VOCABULARY, 200)
    with pytest.raises(ValueError, match="the vocabulary has 12 tokens, the model 19"):
        QueryDecoder(model, QueryVocabulary(("none", "max"), ("a",)))
    with pytest.raises(ValueError, match="at most 8 are read"):
        pad_sources(tiny_reader().read(QUESTIONS), 3, (8,))
