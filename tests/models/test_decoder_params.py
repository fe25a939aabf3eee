import json
import math
import os

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from triax.models.adapters import AdapterError
from triax.models.decoder_params import apply_adapter, hf_name, load_decoder

CONFIG = {
    "model_type": "llama",
    "vocab_size": 266,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 50_000.0,
    "tie_word_embeddings": True,
}


def write_folder(folder, weights, config=CONFIG):
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: np.ascontiguousarray(array) for name, array in weights.items()},
        folder / "model.safetensors",
    )
    return folder


def test_names_follow_paths():
    path = ("layers", 3, "self_attn", "q_proj", "kernel")
    assert hf_name(path) == "model.layers.3.self_attn.q_proj.weight"
    assert hf_name(("norm", "scale")) == "model.norm.weight"
    assert hf_name(("lm_head", "kernel")) == "lm_head.weight"


def test_safetensors_and_gguf_of_one_model_agree(tmp_path, write_gguf, hf_weights):
    weights = hf_weights("llama")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, config = load_decoder(write_folder(tmp_path / "a", weights))
    write_gguf(tmp_path / "b" / "m.gguf", weights)
    second, other = load_decoder(tmp_path / "b")
    assert config.rope_theta == other.rope_theta and config.num_layers == other.num_layers
    for path, weight in nnx.to_flat_state(nnx.state(first)):
        name = hf_name(path)
        expected = weights[name].T if path[-1] == "kernel" else weights[name]
        np.testing.assert_array_equal(weight[...], expected)
        np.testing.assert_array_equal(
            dict(nnx.to_flat_state(nnx.state(second)))[path][...], expected
        )


def test_shards_and_bfloat16_are_read(tmp_path, hf_weights):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_torch

    weights = hf_weights("llama")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    names = sorted(weights)
    shards = {"model-1-of-2.safetensors": names[::2], "model-2-of-2.safetensors": names[1::2]}
    for shard, part in shards.items():
        tensors = {name: torch.tensor(weights[name], dtype=torch.bfloat16) for name in part}
        save_torch(tensors, tmp_path / shard)
    index = {name: shard for shard, part in shards.items() for name in part}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    decoder, _ = load_decoder(tmp_path, dtype=jnp.bfloat16)
    scale = decoder.norm.scale[...]
    assert scale.dtype == jnp.bfloat16
    expected = torch.tensor(weights["model.norm.weight"]).bfloat16().float().numpy()
    np.testing.assert_array_equal(np.asarray(scale, np.float32), expected)
    wide, _ = load_decoder(tmp_path)
    assert wide.norm.scale[...].dtype == jnp.float32
    np.testing.assert_array_equal(wide.norm.scale[...], expected)
    (tmp_path / "model-2-of-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model-2-of-2"):
        load_decoder(tmp_path)


def test_faults_are_named_together(tmp_path, hf_weights):
    weights = hf_weights("llama")
    del weights["model.layers.1.mlp.up_proj.weight"]
    weights["model.layers.0.self_attn.sinks"] = np.ones(4, np.float32)
    weights["model.norm.weight"] = np.ones(65, np.float32)
    with pytest.raises(ValueError) as caught:
        load_decoder(write_folder(tmp_path, weights))
    said = str(caught.value)
    assert "missing: model.layers.1.mlp.up_proj.weight" in said
    assert "not known: model.layers.0.self_attn.sinks" in said
    assert "of another shape: model.norm.weight (65,), expected (64,)" in said


def test_a_tied_head_and_rotary_buffers_are_let_pass(tmp_path, hf_weights):
    weights = hf_weights("llama")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(8, np.float32)
    load_decoder(write_folder(tmp_path, weights))
    untied = {**CONFIG, "tie_word_embeddings": False}
    decoder, _ = load_decoder(write_folder(tmp_path, weights, untied))
    np.testing.assert_array_equal(decoder.lm_head.kernel[...], weights["lm_head.weight"].T)


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="0 .gguf files"):
        load_decoder(tmp_path)


@pytest.mark.parametrize(("architecture", "pre"), [("llama", "smollm"), ("qwen2", "qwen2")])
def test_log_probabilities_equal_llama_cpp(
    tmp_path, write_gguf, hf_weights, llama_cpp, architecture, pre
):
    path = write_gguf(tmp_path / "m.gguf", hf_weights(architecture), architecture, pre)
    ids = [70, 5, 200, 33, 140, 71, 99, 18]
    with llama_cpp(path) as post:
        asked = {"prompt": ids, "n_predict": 1, "temperature": 0, "n_probs": 20}
        answer = post("/completion", asked)["completion_probabilities"][0]["top_logprobs"]
    decoder, _ = load_decoder(tmp_path)
    logits = np.asarray(decoder(jnp.asarray([ids]), jnp.ones((1, len(ids)), bool)))[0, -1]
    log_probs = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
    expected = {entry["id"]: entry["logprob"] for entry in answer}
    # llama.cpp keeps keys and values in half precision.
    found = {id_: float(log_probs[id_]) for id_ in expected}
    assert found == pytest.approx(expected, abs=2e-2)
    assert int(logits.argmax()) == answer[0]["id"]


@pytest.mark.weights
def test_smollm2_logits_equal_torch():
    torch = pytest.importorskip("torch")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    from triax.models.gguf_file import GGUFFile
    from triax.models.tokenizer import load_tokenizer
    from triax.models.weights import WeightsError, locate

    try:
        folder = locate("HuggingFaceTB/SmolLM2-135M-Instruct")
    except WeightsError as error:
        pytest.skip(str(error))
    files = sorted(folder.glob("*.gguf"))
    if files:
        file = GGUFFile(files[0])
        config, tensors = file.config(), dict(file.tensors())
    else:
        config = json.loads((folder / "config.json").read_text())
        tensors = load_file(folder / "model.safetensors")
    config.pop("model_type")
    with torch.device("meta"):
        oracle = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    weights = {name: torch.tensor(array) for name, array in tensors.items()}
    oracle = oracle.to_empty(device="cpu").float().eval()
    missing, extra = oracle.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not extra
    oracle.tie_weights()
    rotary = type(oracle.model.rotary_emb)(oracle.config)
    oracle.model.rotary_emb = rotary
    decoder, _ = load_decoder(folder)
    tokenizer = load_tokenizer(folder)
    forward = nnx.jit(lambda decoder, ids, mask: decoder(ids, mask))
    prompts = ("The capital of France is the city of", "Marie Curie was born in Warsaw, in the")
    for ids in tokenizer.encode_batch(prompts):
        with torch.no_grad():
            expected = oracle(torch.tensor([ids])).logits.numpy()
        found = forward(decoder, jnp.asarray([ids]), jnp.ones((1, len(ids)), bool))
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_an_adapter_becomes_part_of_the_weights(tmp_path, hf_weights):
    weights = hf_weights("llama")
    decoder, _ = load_decoder(write_folder(tmp_path, weights))
    generator = np.random.default_rng(0)
    parts = {}
    for name in ("q_proj", "o_proj"):
        for n in range(2):
            path = f"layers.{n}.self_attn.{name}"
            parts[f"{path}.lora_a"] = generator.normal(size=(64, 3)).astype(np.float16)
            parts[f"{path}.lora_b"] = generator.normal(size=(3, 64)).astype(np.float16)
    place = tmp_path / "adapter"
    place.mkdir()
    save_file(parts, place / "adapter.safetensors")
    config = {"part": "decoder", "base": "b", "rank": 3, "layers": ["q_proj", "o_proj"]}
    (place / "config.json").write_text(json.dumps(config))
    assert apply_adapter(decoder, place) == config
    for path, weight in nnx.to_flat_state(nnx.state(decoder)):
        *modules, leaf = map(str, path)
        expected = weights[hf_name(path)].T if leaf == "kernel" else weights[hf_name(path)]
        name = ".".join(modules)
        if f"{name}.lora_a" in parts:
            a, b = (parts[f"{name}.lora_{x}"].astype(np.float32) for x in "ab")
            expected = expected + a @ b
        np.testing.assert_allclose(weight[...], expected, rtol=1e-5, atol=1e-5)


def test_an_adapter_of_another_part_is_refused(tmp_path, hf_weights):
    decoder, _ = load_decoder(write_folder(tmp_path, hf_weights("llama")))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text(json.dumps({"part": "reader"}))
    with pytest.raises(AdapterError, match="holds the part 'reader', expected 'decoder'"):
        apply_adapter(decoder, tmp_path / "a")
