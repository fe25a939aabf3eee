import gguf
import numpy as np
import pytest

from triax.models.gguf_file import GGUFFile


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_float_tensors_come_back_as_they_were(tmp_path, write_gguf, hf_weights, architecture):
    weights = hf_weights(architecture)
    file = GGUFFile(write_gguf(tmp_path / "m.gguf", weights, architecture))
    read = dict(file.tensors())
    assert read.keys() == weights.keys()
    for name, array in weights.items():
        assert read[name].dtype == np.float32
        np.testing.assert_array_equal(read[name], array)


def test_config_is_what_was_written(tmp_path, write_gguf, hf_weights):
    config = GGUFFile(write_gguf(tmp_path / "m.gguf", hf_weights("llama"))).config()
    expected = {
        "model_type": "llama",
        "vocab_size": 3 + 256 + 7,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rope_theta": 50_000.0,
        "tie_word_embeddings": True,
        "eos_token_id": 2,
    }
    assert {name: config[name] for name in expected} == expected
    assert config["rms_norm_eps"] == pytest.approx(1e-5)


def test_quantised_tensors_are_near_the_originals(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("llama")
    kinds = {name: gguf.GGMLQuantizationType.Q8_0 for name in weights if "proj" in name}
    read = dict(GGUFFile(write_gguf(tmp_path / "m.gguf", weights, quantised=kinds)).tensors())
    for name in kinds:
        # Q8_0 keeps 127 steps of the largest of 32 values either side, with a scale of 11 bits.
        step = np.abs(weights[name]).max() / 127
        assert 0 < np.abs(read[name] - weights[name]).max() <= 0.6 * step


def test_a_tied_matrix_stored_twice_is_tied_to_the_finer_copy(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("qwen2")
    shared = weights["model.embed_tokens.weight"]
    weights["lm_head.weight"] = shared
    kinds = {
        "model.embed_tokens.weight": gguf.GGMLQuantizationType.Q5_0,
        "lm_head.weight": gguf.GGMLQuantizationType.Q8_0,
    }
    file = GGUFFile(write_gguf(tmp_path / "m.gguf", weights, "qwen2", quantised=kinds))
    read = dict(file.tensors())
    assert file.config()["tie_word_embeddings"]
    assert "lm_head.weight" not in read
    packed = gguf.quants.quantize(shared, gguf.GGMLQuantizationType.Q8_0)
    finer = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(read["model.embed_tokens.weight"], finer)


def test_two_different_matrices_stay_untied(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("qwen2")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"][::-1].copy()
    file = GGUFFile(write_gguf(tmp_path / "m.gguf", weights, "qwen2"))
    assert not file.config()["tie_word_embeddings"]
    read = dict(file.tensors())
    np.testing.assert_array_equal(read["lm_head.weight"], weights["lm_head.weight"])


def test_vocabulary(tmp_path, write_gguf, hf_weights):
    vocabulary = GGUFFile(write_gguf(tmp_path / "m.gguf", hf_weights("llama"))).vocabulary()
    assert vocabulary.model == "gpt2" and vocabulary.pre == "smollm"
    assert vocabulary.tokens[:3] == ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    assert vocabulary.merges[0] == "t h"
    assert vocabulary.ids_of_type(gguf.TokenType.CONTROL) == (0, 1, 2)
    assert (vocabulary.bos_id, vocabulary.eos_ids, vocabulary.pad_id) == (1, (2,), 0)
    assert "assistant:" in vocabulary.chat_template


def test_what_cannot_be_computed_is_refused(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("llama")
    with pytest.raises(ValueError, match="'gemma3' model; llama"):
        GGUFFile(write_gguf(tmp_path / "a.gguf", weights, "gemma3"))
    scaled = write_gguf(tmp_path / "b.gguf", weights, llama__rope__scaling__type="yarn")
    with pytest.raises(ValueError, match="yarn.*safetensors"):
        GGUFFile(scaled)
    (tmp_path / "c.gguf").write_bytes(b"GGUF no more")
    with pytest.raises(ValueError, match="no whole GGUF"):
        GGUFFile(tmp_path / "c.gguf")


def test_an_unknown_tensor_is_named(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("llama")
    weights["model.layers.0.self_attn.o_proj.scales"] = np.ones(3, np.float32)
    file = GGUFFile(write_gguf(tmp_path / "m.gguf", weights))
    with pytest.raises(ValueError, match="attn_output.scales"):
        dict(file.tensors())
