import json

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_deberta import SHAPE, padded_rows, perturb, torch_config

from triax.models.deberta import DebertaConfig, DebertaEncoder
from triax.models.deberta_params import hf_name, load_deberta
from triax.models.encoder_params import load_encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

IDS, MASK = padded_rows(12)
SMALL = {"num_hidden_layers": 1, "position_buckets": 8, "max_position_embeddings": 40}


def hidden(folder, load=load_deberta):
    encoder, _ = load(folder)
    return np.asarray(encoder(jnp.asarray(IDS), jnp.asarray(MASK)))[MASK]


def reference(model):
    with torch.no_grad():
        found = model(torch.tensor(IDS), torch.tensor(MASK).long())
    return found.last_hidden_state.numpy()[MASK]


@pytest.fixture(scope="module")
def model():
    return perturb(transformers.DebertaV2ForMaskedLM(torch_config(**SMALL)))


@pytest.fixture
def folder(model, tmp_path):
    """With the prefix `deberta.` and a head of pretraining."""
    model.save_pretrained(tmp_path)
    return tmp_path


def change(folder, edit):
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_load_encoder_takes_deberta_with_prefix_and_heads(model, folder):
    def edit(tensors):
        assert any(name.startswith("deberta.encoder.") for name in tensors)
        assert any(name.startswith("cls.") for name in tensors)
        # As the published checkpoint has them beside the encoder.
        for name in (
            "lm_predictions.lm_head.dense.weight",
            "mask_predictions.LayerNorm.weight",
            "mask_predictions.classifier.bias",
            "deberta.embeddings.position_embeddings.weight",
            "pooler.dense.weight",
            "classifier.bias",
        ):
            tensors[name] = np.zeros(3, np.float32)

    change(folder, edit)
    encoder, config = load_encoder(folder, "bfloat16")
    assert isinstance(encoder, DebertaEncoder) and isinstance(config, DebertaConfig)
    assert encoder.tokens.embedding[...].dtype == jnp.float32
    np.testing.assert_allclose(hidden(folder, load_encoder), reference(model.deberta), atol=1e-4)


def test_a_float16_torch_file_without_prefix(model, folder):
    (folder / "model.safetensors").unlink()
    half = {name: value.half() for name, value in model.deberta.state_dict().items()}
    torch.save(half, folder / "pytorch_model.bin")
    np.testing.assert_allclose(hidden(folder), reference(model.deberta), atol=2e-2)


def test_missing_left_over_and_misshaped_weights_are_all_named(folder):
    def edit(tensors):
        tensors["deberta.encoder.layer.7.output.dense.weight"] = np.zeros((2, 2), np.float32)
        del tensors["deberta.encoder.layer.0.attention.self.key_proj.bias"]
        tensors["deberta.encoder.rel_embeddings.weight"] = np.zeros((20, 32), np.float32)

    change(folder, edit)
    with pytest.raises(ValueError) as caught:
        load_deberta(folder)
    message = str(caught.value)
    assert "missing ['encoder.layer.0.attention.self.key_proj.bias']" in message
    assert "left over ['encoder.layer.7.output.dense.weight']" in message
    assert "encoder.rel_embeddings.weight (20, 32), expected (16, 32)" in message


def test_another_family_is_refused(folder):
    (folder / "config.json").write_text(json.dumps({**SHAPE, "model_type": "bert"}), "utf-8")
    with pytest.raises(ValueError, match="expected 'deberta-v2'"):
        load_deberta(folder)


def test_names_are_those_of_hugging_face():
    assert hf_name("layers.3.query.kernel") == "encoder.layer.3.attention.self.query_proj.weight"
    assert hf_name("relative_norm.scale") == "encoder.LayerNorm.weight"
