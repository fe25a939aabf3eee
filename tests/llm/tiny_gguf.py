"""A random model of 0.1 million weights with a byte vocabulary, as a file that llama.cpp serves."""

from pathlib import Path

import gguf
import numpy as np

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 64, 128, 2, 4, 2
HEAD_WIDTH = WIDTH // HEADS
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def byte_symbols() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, in order of the bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (256 + n for n in range(256))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def write_tiny_gguf(path: Path | str, seed: int = 0) -> Path:
    """Writes the model; the weights are normal with deviation 0.2."""
    merges = ["t h", "i n", "e r", "a n", "o n"]
    tokens = ["<s>", "</s>", "<pad>", *byte_symbols(), *(m.replace(" ", "") for m in merges)]
    kinds = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD_WIDTH)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_chat_template(CHAT_TEMPLATE)
    _add_weights(writer, len(tokens), np.random.default_rng(seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Path(path)


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int, rng: np.random.Generator) -> None:
    def add(name: str, *shape: int) -> None:
        writer.add_tensor(f"{name}.weight", (rng.standard_normal(shape) * 0.2).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))

    add("token_embd", vocabulary, WIDTH)
    add("output", vocabulary, WIDTH)
    ones("output_norm")
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm")
        ones(f"{block}.ffn_norm")
        add(f"{block}.attn_q", HEADS * HEAD_WIDTH, WIDTH)
        add(f"{block}.attn_k", KV_HEADS * HEAD_WIDTH, WIDTH)
        add(f"{block}.attn_v", KV_HEADS * HEAD_WIDTH, WIDTH)
        add(f"{block}.attn_output", WIDTH, HEADS * HEAD_WIDTH)
        add(f"{block}.ffn_gate", HIDDEN, WIDTH)
        add(f"{block}.ffn_up", HIDDEN, WIDTH)
        add(f"{block}.ffn_down", WIDTH, HIDDEN)
