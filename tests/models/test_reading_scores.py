import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.reading_scores import NUM_SPANS, WindowScorer, pad_windows
from triax.models.reading_windows import Window
from triax.models.span_reader import SpanReader

CONFIG = EncoderConfig("bert", 20, 16, 1, 2, 24, 40)


def window(*passage):
    ids = [2, 5, 3, *passage, 3]
    return Window(ids, 3, [(n, n + 1) for n in range(len(passage))])


def test_padding_and_token_types():
    ids, mask, types = pad_windows([window(7, 8)], 2, 8, 0)
    assert ids.tolist() == [[2, 5, 3, 7, 8, 3, 0, 0], [0] * 8]
    assert mask.sum(1).tolist() == [6, 0]
    assert types[0].tolist() == [0, 0, 0, 1, 1, 1, 0, 0]


def test_scores_do_not_depend_on_the_batch_and_come_in_order():
    model = SpanReader(TransformerEncoder(CONFIG, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    graph, state = nnx.split(model)
    rows = [window(7), window(*range(6, 18)), window(9, 8, 7), window(10, 11)]
    done = []
    found = WindowScorer(graph, 20, batch_tokens=96)(state, rows, done.append)
    assert done[-1] == len(rows)
    for row, scores in zip(rows, found):
        ids, mask, types = pad_windows([row], 1, row.length, 0)
        alone = model(*map(jnp.asarray, (ids, mask, types)))
        assert np.abs(scores.verdicts - np.asarray(alone.verdicts)[0]).max() < 1e-5
        spans = np.asarray(alone.spans)[0]
        best = np.sort(spans[spans > -1e30])[::-1][:NUM_SPANS]
        assert np.abs(scores.spans - best).max() < 1e-5
        places = spans[scores.starts, scores.ends - scores.starts]
        assert np.abs(scores.spans - places).max() < 1e-5


def test_nothing_to_score():
    graph, state = nnx.split(
        SpanReader(TransformerEncoder(CONFIG, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    )
    assert WindowScorer(graph, 20)(state, []) == []
