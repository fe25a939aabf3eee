import json

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from triax.models.encoder_params import load_encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SHAPE = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
IDS = np.arange(5, 29, dtype=np.int32).reshape(2, 12)


def hidden(folder):
    encoder, _ = load_encoder(folder)
    return np.asarray(encoder(jnp.asarray(IDS), jnp.ones(IDS.shape, bool)))


def reference(model):
    with torch.no_grad():
        return model(torch.tensor(IDS)).last_hidden_state.numpy()


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(1)
    return transformers.BertModel(transformers.BertConfig(**SHAPE)).eval()


@pytest.fixture
def folder(bert, tmp_path):
    bert.save_pretrained(tmp_path)
    return tmp_path


def change(folder, edit):
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize("kind", ["Bert", "MPNet", "Roberta"])
def test_prefixes_and_pretraining_heads_are_accepted(tmp_path, kind):
    torch.manual_seed(2)
    config = getattr(transformers, f"{kind}Config")(**SHAPE)
    model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    model.save_pretrained(tmp_path)
    body = getattr(model, model.base_model_prefix)
    names = load_file(tmp_path / "model.safetensors")
    assert any(name.startswith(f"{model.base_model_prefix}.") for name in names)
    np.testing.assert_allclose(hidden(tmp_path), reference(body), atol=1e-4)


def test_several_files_with_an_index(bert, tmp_path):
    bert.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    np.testing.assert_allclose(hidden(tmp_path), reference(bert), atol=1e-4)


def test_a_folder_with_only_a_torch_file(bert, folder):
    (folder / "model.safetensors").unlink()
    torch.save(bert.state_dict(), folder / "pytorch_model.bin")
    np.testing.assert_allclose(hidden(folder), reference(bert), atol=1e-4)


def test_float16_weights_and_norms_with_tensorflow_names(bert, folder):
    def edit(tensors):
        for name in list(tensors):
            value = tensors.pop(name).astype(np.float16)
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            tensors[name.replace("LayerNorm.bias", "LayerNorm.beta")] = value

    change(folder, edit)
    np.testing.assert_allclose(hidden(folder), reference(bert), atol=2e-2)


def test_missing_left_over_and_misshaped_weights_are_all_named(folder):
    def edit(tensors):
        tensors["encoder.layer.7.output.dense.weight"] = np.zeros((2, 2), np.float32)
        del tensors["encoder.layer.1.attention.self.key.bias"]
        tensors["embeddings.LayerNorm.bias"] = np.zeros(5, np.float32)

    change(folder, edit)
    with pytest.raises(ValueError) as caught:
        load_encoder(folder)
    message = str(caught.value)
    assert "missing ['encoder.layer.1.attention.self.key.bias']" in message
    assert "left over ['encoder.layer.7.output.dense.weight']" in message
    assert "embeddings.LayerNorm.bias (5,), expected (32,)" in message


def test_pooler_and_position_ids_are_ignored(bert, folder):
    def edit(tensors):
        assert "pooler.dense.weight" in tensors
        tensors["embeddings.position_ids"] = np.arange(40)[None]

    change(folder, edit)
    np.testing.assert_allclose(hidden(folder), reference(bert), atol=1e-4)


def test_a_folder_without_weights_is_named(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="neither model.safetensors nor pytorch_model.bin"):
        load_encoder(folder)


def test_weights_of_another_family_are_refused(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mpnet"}), "utf-8")
    with pytest.raises(ValueError, match="missing .*attention.attn.q"):
        load_encoder(folder)
