import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.route_head import HEADS, TRAINABLE, build_router

CONFIG = EncoderConfig("bert", 20, 16, 1, 2, 24, 16)
IDS = jnp.array([[2, 5, 6, 3, 0], [2, 7, 3, 0, 0]])


def encoder():
    return TransformerEncoder(CONFIG, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_logits_by_hand(pooling):
    model = build_router(encoder(), pooling)
    hidden = np.asarray(model.encoder(IDS, IDS > 0))
    rows = (
        hidden[:, 0]
        if pooling == "cls"
        else np.stack([hidden[0, :4].mean(0), hidden[1, :3].mean(0)])
    )

    def linear(layer, x):
        return x @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])

    wanted = linear(model.classifier, jax.nn.gelu(linear(model.pooler, rows), approximate=False))
    assert np.abs(np.asarray(model(IDS, IDS > 0)) - np.asarray(wanted)).max() < 1e-5


def test_padding_changes_nothing():
    model = build_router(encoder())
    wide = jnp.pad(IDS, ((0, 0), (0, 4)))
    assert np.abs(np.asarray(model(IDS, IDS > 0) - model(wide, wide > 0))).max() < 1e-5


def test_dropout_needs_a_key():
    model = build_router(encoder(), rate=0.5)
    one, two = (model(IDS, IDS > 0, jax.random.key(n)) for n in (1, 2))
    assert np.abs(np.asarray(one - two)).max() > 1e-6
    assert np.array_equal(model(IDS, IDS > 0), model(IDS, IDS > 0))


def test_what_is_trained():
    adapted, whole = build_router(encoder(), rank=2), build_router(encoder())
    names = {
        ".".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(adapted, TRAINABLE))
    }
    assert {"pooler.kernel", "classifier.bias", "encoder.layers.0.query.lora_a"} <= names
    assert not any(name.endswith("base_module.kernel") for name in names)
    assert len(nnx.to_flat_state(nnx.state(whole, HEADS))) == 4
