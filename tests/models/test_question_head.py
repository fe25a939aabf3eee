import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_deberta import SHAPE, perturb, torch_config

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.question_head import HEADS, TRAINABLE, ContextPooler, build_classifier

CONFIG = EncoderConfig("bert", 20, 16, 1, 2, 24, 16)
IDS = jnp.array([[2, 5, 6, 3, 0], [2, 7, 3, 0, 0]])


def encoder():
    return TransformerEncoder(CONFIG, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_logits_by_hand(pooling):
    model = build_classifier(encoder(), pooling)
    hidden = np.asarray(model.encoder(IDS, IDS > 0))
    rows = (
        hidden[:, 0]
        if pooling == "cls"
        else np.stack([hidden[0, :4].mean(0), hidden[1, :3].mean(0)])
    )

    def linear(layer, x):
        return x @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])

    wanted = linear(
        model.classifier, jax.nn.gelu(linear(model.pooler.dense, rows), approximate=False)
    )
    assert np.abs(np.asarray(model(IDS, IDS > 0)) - np.asarray(wanted)).max() < 1e-5


def test_the_pooler_equals_that_of_deberta_in_torch():
    torch = pytest.importorskip("torch")
    from transformers.models.deberta_v2.modeling_deberta_v2 import ContextPooler as Reference

    reference = perturb(Reference(torch_config()))
    pooler = ContextPooler(SHAPE["hidden_size"], 0.5, rngs=nnx.Rngs(0))
    pooler.dense.kernel[...] = jnp.asarray(reference.dense.weight.detach().numpy().T)
    pooler.dense.bias[...] = jnp.asarray(reference.dense.bias.detach().numpy())
    hidden = np.random.default_rng(0).standard_normal((3, 5, 32)).astype(np.float32)
    with torch.no_grad():
        expected = reference(torch.tensor(hidden)).numpy()
    first = jnp.asarray(hidden[:, 0])
    np.testing.assert_allclose(pooler(first), expected, atol=1e-5)
    assert np.abs(np.asarray(pooler(first, jax.random.key(0))) - expected).max() > 1e-2


def test_padding_changes_nothing():
    model = build_classifier(encoder())
    wide = jnp.pad(IDS, ((0, 0), (0, 4)))
    assert np.abs(np.asarray(model(IDS, IDS > 0) - model(wide, wide > 0))).max() < 1e-5


def test_dropout_needs_a_key():
    model = build_classifier(encoder(), rate=0.5)
    one, two = (model(IDS, IDS > 0, jax.random.key(n)) for n in (1, 2))
    assert np.abs(np.asarray(one - two)).max() > 1e-6
    assert np.array_equal(model(IDS, IDS > 0), model(IDS, IDS > 0))


def test_what_is_trained():
    adapted, whole = build_classifier(encoder(), rank=2), build_classifier(encoder())
    names = {
        ".".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(adapted, TRAINABLE))
    }
    assert {"pooler.dense.kernel", "classifier.bias", "encoder.layers.0.query.lora_a"} <= names
    assert not any(name.endswith("base_module.kernel") for name in names)
    assert len(nnx.to_flat_state(nnx.state(whole, HEADS))) == 4
