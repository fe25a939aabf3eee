"""Small real model files, and llama.cpp as a reference for what is read from them."""

import json
import urllib.request
from contextlib import contextmanager

import gguf
import numpy as np
import pytest

HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS = 64, 96, 2, 4, 2
HEAD_DIM = HIDDEN // HEADS
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "i n", "a n", "Ġ th", "Ġth e", "1 2"]
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def byte_alphabet() -> list[str]:
    """GPT-2's characters for the bytes 0 to 255, as its encoder.py makes them."""
    shown = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    chars = {byte: chr(byte) for byte in shown}
    for n, byte in enumerate(byte for byte in range(256) if byte not in shown):
        chars[byte] = chr(256 + n)
    return [chars[byte] for byte in range(256)]


TOKENS = SPECIAL + byte_alphabet() + [merge.replace(" ", "") for merge in MERGES]


def random_weights(architecture: str) -> dict[str, np.ndarray]:
    """Weights under Hugging Face names, of a tied model."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) * 0.2).astype(np.float32)

    weights = {
        "model.embed_tokens.weight": draw(len(TOKENS), HIDDEN),
        "model.norm.weight": 1 + draw(HIDDEN),
    }
    sizes = {"q": HEADS * HEAD_DIM, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM}
    for layer in range(LAYERS):
        start = f"model.layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{start}{name}.weight"] = 1 + draw(HIDDEN)
        for name, size in sizes.items():
            weights[f"{start}self_attn.{name}_proj.weight"] = draw(size, HIDDEN)
            if architecture == "qwen2":
                weights[f"{start}self_attn.{name}_proj.bias"] = draw(size)
        weights[f"{start}self_attn.o_proj.weight"] = draw(HIDDEN, HEADS * HEAD_DIM)
        weights[f"{start}mlp.gate_proj.weight"] = draw(INTERMEDIATE, HIDDEN)
        weights[f"{start}mlp.up_proj.weight"] = draw(INTERMEDIATE, HIDDEN)
        weights[f"{start}mlp.down_proj.weight"] = draw(HIDDEN, INTERMEDIATE)
    return weights


# As llama.cpp's convert_hf_to_gguf.py writes them.
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    module, leaf = name.rsplit(".", 1)
    if module in GGUF_NAMES:
        return f"{GGUF_NAMES[module]}.{leaf}"
    _, _, layer, part = module.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[part]}.{leaf}"


def permute(array: np.ndarray, heads: int) -> np.ndarray:
    """The converter's reordering of query and key rows for interleaved rotation."""
    rows = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
    return rows.swapaxes(1, 2).reshape(array.shape)


@pytest.fixture(scope="session")
def write_gguf():
    """A writer of small GGUF files: write(path, weights, architecture, pre, quantised)."""

    def write(path, weights, architecture="llama", pre="smollm", quantised=None, **extra):
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_context_length(256)
        writer.add_embedding_length(HIDDEN)
        writer.add_block_count(LAYERS)
        writer.add_feed_forward_length(INTERMEDIATE)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(50_000.0)
        writer.add_rope_dimension_count(HEAD_DIM)
        writer.add_vocab_size(len(TOKENS))
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(TOKENS)
        kinds = [gguf.TokenType.CONTROL] * len(SPECIAL)
        writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (len(TOKENS) - len(SPECIAL)))
        writer.add_token_merges(MERGES)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_pad_token_id(0)
        writer.add_add_bos_token(False)
        writer.add_chat_template(TEMPLATE)
        for key, value in extra.items():
            writer.add_string(key.replace("__", "."), value)
        for name, array in weights.items():
            if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
                array = permute(array, HEADS if "q_proj" in name else KV_HEADS)
            kind = (quantised or {}).get(name)
            if kind is None:
                writer.add_tensor(gguf_name(name), array)
            else:
                packed = gguf.quants.quantize(array, kind)
                writer.add_tensor(gguf_name(name), packed, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


@pytest.fixture(scope="session")
def hf_weights():
    """random_weights(architecture) under Hugging Face names."""
    return random_weights


@contextmanager
def _llama_cpp(path):
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = 512
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.port = 0
    server = xllamacpp.Server(parameters)

    def post(route, body):
        request = urllib.request.Request(
            server.listening_address + route,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request) as answer:
            return json.load(answer)

    yield post
    del server


@pytest.fixture(scope="session")
def llama_cpp():
    """with llama_cpp(path) as post: post(route, body) asks llama.cpp's own server."""
    return _llama_cpp
