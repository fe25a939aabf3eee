import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.constraint import RowTables, compile_regex, stack_tables
from triax.models.decoder import Decoder, DecoderConfig, init_cache
from triax.models.decoding import Graph, Limits, Rows, choose, read_piece, spread_rows, write

WIDTH = 260
EOS = 256
TOKENS = [bytes([byte]) for byte in range(256)]


def limits(temperature, seeds, **more) -> Limits:
    batch = len(seeds)
    fields = {
        "key_mask": jnp.ones((batch, 64), bool),
        "max_tokens": jnp.full(batch, 5, jnp.int32),
        "temperature": jnp.broadcast_to(jnp.float32(temperature), batch),
        "seed": jnp.array(seeds, jnp.int32),
        "is_eos": jnp.zeros(WIDTH, bool).at[EOS].set(True),
        "start": jnp.int32(0),
    }
    return Limits(**fields | more)


def test_choice_follows_the_softmax():
    logits = jnp.array([0.0, 1.0, 2.0, -jnp.inf])
    rows = jnp.broadcast_to(logits, (2000, 4))
    for temperature in (0.5, 2.0):
        drawn = choose(rows, limits(temperature, range(2000)), jnp.int32(3))
        share = np.bincount(drawn, minlength=4) / 2000
        expected = np.exp(np.asarray(logits) / temperature)
        assert np.abs(share - expected / expected.sum()).max() < 0.04
    best = choose(rows, limits(0.0, range(2000)), jnp.int32(3))
    assert (best == 2).all()


def test_choice_depends_on_own_seed_and_step_only():
    rows = jnp.zeros((3, 1000))
    first = choose(rows, limits(1.0, [5, 6, 7]), jnp.int32(0))
    assert choose(rows[:1], limits(1.0, [6]), jnp.int32(0))[0] == first[1]
    assert len(set(first.tolist())) == 3
    assert choose(rows, limits(1.0, [5, 6, 7]), jnp.int32(1)).tolist() != first.tolist()
    mixed = limits(jnp.array([1.0, 0.0, 1.0]), [5, 6, 7])
    assert choose(rows, mixed, jnp.int32(0)).tolist() == [first[0], 0, first[2]]


@pytest.mark.parametrize("slots", [3, 8])
def test_rows_spread(slots):
    array = jnp.arange(5.0).reshape(1, 5, 1, 1)
    ((keys, values),) = spread_rows(((array, -array),), 2, slots)
    expected = [0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0][:slots]
    assert keys[:, :, 0, 0].tolist() == [expected] * 2
    assert (values == -keys).all()


def test_loop_equals_argmax_of_the_whole_text_step_by_step():
    config = DecoderConfig(WIDTH, 64, 128, 2, 4, 2, 16, tie_embeddings=True)
    decoder = nnx.jit(lambda: Decoder(config, rngs=nnx.Rngs(0)))()
    definition, weights = nnx.split(decoder)
    text = list(b"question")
    pattern = compile_regex("[a-z]{3,9}", TOKENS, WIDTH)
    tables = RowTables(*(jnp.asarray(array) for array in stack_tables([pattern])))
    graph, mask = Graph(definition), jnp.ones((1, 64), bool)
    ids, positions = jnp.array([text[:-1]]), jnp.arange(len(text) - 1)[None]
    cache = init_cache(config, 1, 64)
    cache = read_piece(graph, weights, ids, positions, mask, cache, jnp.int32(0))
    one = jnp.zeros(1, jnp.int32)
    rows = Rows(
        cache=cache,
        token=one + text[-1],
        position=one + len(text) - 1,
        state=one,
        is_done=one > 0,
        is_finished=one > 0,
        written=jnp.full((1, 64), -1, jnp.int32),
        step=jnp.int32(0),
    )
    rule = limits(0.0, [0], start=jnp.int32(len(text) - 1))
    rows = write(graph, weights, rows, rule, tables, jnp.int32(2))
    assert rows.step == 2 and not rows.is_done[0]
    rows = write(graph, weights, rows, rule, tables, jnp.int32(64))
    assert rows.step == 5 and rows.is_done[0]  # its limit, not the loop's

    for _ in range(5):
        whole = jnp.array([text + [0] * (16 - len(text))])
        logits = np.asarray(decoder(whole, jnp.arange(16)[None] < len(text)))[0, len(text) - 1]
        allowed = list(range(97, 123)) + ([EOS] if len(text) >= len("question") + 3 else [])
        text.append(max(allowed, key=lambda token: logits[token]))
    written = [token for token in rows.written[0].tolist() if token >= 0]
    expected = text[len("question") :]
    assert written == [*expected, EOS][: [*expected, EOS].index(EOS)]


def test_graphs_of_equal_modules_are_one_static_argument():
    def definition(layers):
        config = DecoderConfig(WIDTH, 64, 128, layers, 4, 2, 16)
        return nnx.split(nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0))))[0]

    assert Graph(definition(1)) == Graph(definition(1))
    assert hash(Graph(definition(1))) == hash(Graph(definition(1)))
    assert Graph(definition(1)) != Graph(definition(2))
