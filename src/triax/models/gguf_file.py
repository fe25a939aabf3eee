"""GGUF files (llama.cpp's format) read as Hugging Face names, shapes and configuration.

Quantised tensors are widened to float32, the values that llama.cpp computes with.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, TokenType
from gguf.gguf_reader import ReaderTensor
from gguf.quants import dequantize

logger = logging.getLogger(__name__)

_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
# Two copies of one matrix, quantised apart, differ by a few per cent of its norm; two matrices
# that were trained apart by more than all of it.
_SAME_MATRIX = 0.25


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a GGUF says about its tokenizer; ids index `tokens`, -1 or () where it says nothing."""

    model: str
    pre: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[str, ...]
    bos_id: int
    eos_ids: tuple[int, ...]
    pad_id: int
    adds_bos: bool
    chat_template: str

    def ids_of_type(self, kind: TokenType) -> tuple[int, ...]:
        """The ids of one type: CONTROL tokens steer a model, USER_DEFINED ones are text."""
        return tuple(i for i, type_ in enumerate(self.types) if type_ == kind)


class GGUFFile:
    """One opened file; tensors are memory-mapped until they are asked for.

    Raises:
        ValueError: no GGUF, or of an architecture other than llama and qwen2, or of a kind of
            rotary scaling that the decoder does not compute.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._reader = GGUFReader(path)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path} is no whole GGUF file ({error}); fetch it again") from error
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.architecture = self._field("general.architecture")
        if self.architecture not in ("llama", "qwen2"):
            raise ValueError(
                f"{path} holds a {self.architecture!r} model; llama (SmolLM2 too), qwen2 are read"
            )
        scaling = self._own("rope.scaling.type", "none")
        if scaling != "none" or "rope_freqs.weight" in self._tensors:
            raise ValueError(
                f"{path} scales its rotary frequencies ({scaling}), which is not read from GGUF; "
                "use the model's safetensors"
            )

    def _field(self, key: str, default: Any = None) -> Any:
        field = self._reader.fields.get(key)
        return default if field is None else field.contents()

    def _own(self, key: str, default: Any = None) -> Any:
        """A field of the architecture's own section."""
        return self._field(f"{self.architecture}.{key}", default)

    def config(self) -> dict[str, Any]:
        """The config.json that this model would have."""
        vocab_size, hidden_size = _shape(self._tensors["token_embd.weight"])
        heads = self._own("attention.head_count")
        eos = self._field("tokenizer.ggml.eos_token_id")
        return {
            "model_type": self.architecture,
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "intermediate_size": self._own("feed_forward_length"),
            "num_hidden_layers": self._own("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self._own("attention.head_count_kv", heads),
            "head_dim": self._own("attention.key_length", hidden_size // heads),
            "rms_norm_eps": self._own("attention.layer_norm_rms_epsilon"),
            "rope_theta": self._own("rope.freq_base", 10_000.0),
            "max_position_embeddings": self._own("context_length"),
            "tie_word_embeddings": self.is_tied,
            "hidden_act": "silu",
            "bos_token_id": self._field("tokenizer.ggml.bos_token_id"),
            "eos_token_id": eos,
        }

    @cached_property
    def is_tied(self) -> bool:
        """Whether input and output embeddings are one matrix.

        Qwen2's converter stores the tied matrix twice, quantised apart; that is seen from a
        sample of rows.
        """
        if "output.weight" not in self._tensors:
            return True
        embedding, output = self._tensors["token_embd.weight"], self._tensors["output.weight"]
        rows = np.linspace(0, _shape(embedding)[0] - 1, 64).astype(int)
        first, second = _widen(embedding, rows), _widen(output, rows)
        return bool(np.linalg.norm(first - second) < _SAME_MATRIX * np.linalg.norm(second))

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields Hugging Face names and float32 arrays (linear weights [out, in]), one at a time.

        Of a tied matrix that is stored twice, the copy with more bits is taken.

        Raises:
            ValueError: a tensor has a name that is not known.
        """
        skipped = None
        if self.is_tied and "output.weight" in self._tensors:
            embedding, output = self._tensors["token_embd.weight"], self._tensors["output.weight"]
            finer = output if output.n_bytes > embedding.n_bytes else embedding
            skipped = embedding if finer is output else output
            logger.info("%s: embeddings are tied; %s is kept", self.path.name, finer.name)
        for name, tensor in self._tensors.items():
            if tensor is skipped:
                continue
            hf_name = self._hf_name(
                "token_embd.weight" if skipped and name == "output.weight" else name
            )
            yield hf_name, self._unpermuted(hf_name, _widen(tensor))

    def _hf_name(self, name: str) -> str:
        if name in _TOP_NAMES:
            return _TOP_NAMES[name]
        match = _BLOCK.fullmatch(name)
        if not match or match[2] not in _BLOCK_NAMES:
            raise ValueError(f"{self.path} holds a tensor {name!r}, which no decoder layer has")
        return f"model.layers.{match[1]}.{_BLOCK_NAMES[match[2]]}.{match[3]}"

    def _unpermuted(self, hf_name: str, array: np.ndarray) -> np.ndarray:
        """Undoes the order of query and key rows that llama.cpp's interleaved rotation needs.

        Only files of architecture llama are stored in that order.
        """
        if self.architecture != "llama" or ".q_proj." not in hf_name and ".k_proj." not in hf_name:
            return array
        heads = self._own("attention.head_count")
        if ".k_proj." in hf_name:
            heads = self._own("attention.head_count_kv", heads)
        halves = array.reshape(heads, -1, 2, *array.shape[1:])
        return halves.swapaxes(1, 2).reshape(array.shape)

    def vocabulary(self) -> Vocabulary:
        """The tokenizer's tables and the chat template.

        Raises:
            ValueError: the file has no token list.
        """
        tokens = self._field("tokenizer.ggml.tokens")
        if not tokens:
            raise ValueError(f"{self.path} holds no tokenizer; add a tokenizer.json beside it")
        enders = ("eos", "eot", "eom")
        ends = [self._field(f"tokenizer.ggml.{name}_token_id") for name in enders]
        return Vocabulary(
            model=self._field("tokenizer.ggml.model", ""),
            pre=self._field("tokenizer.ggml.pre", "default"),
            tokens=tuple(tokens),
            types=tuple(
                self._field("tokenizer.ggml.token_type") or [TokenType.NORMAL] * len(tokens)
            ),
            merges=tuple(self._field("tokenizer.ggml.merges") or ()),
            bos_id=self._field("tokenizer.ggml.bos_token_id", -1),
            eos_ids=tuple(dict.fromkeys(end for end in ends if end is not None)),
            pad_id=self._field("tokenizer.ggml.padding_token_id", -1),
            adds_bos=self._field("tokenizer.ggml.add_bos_token", False),
            chat_template=self._field("tokenizer.chat_template", ""),
        )


def _shape(tensor: ReaderTensor) -> tuple[int, ...]:
    """Shape in numpy's order; GGUF writes the fastest axis first."""
    return tuple(int(size) for size in reversed(tensor.shape))


def _widen(tensor: ReaderTensor, rows: np.ndarray | None = None) -> np.ndarray:
    """Float32 values of a tensor, or of some of its rows (blocks never cross rows)."""
    data = tensor.data if rows is None else tensor.data[rows]
    array = np.asarray(dequantize(data, tensor.tensor_type), dtype=np.float32)
    return array if rows is not None else array.reshape(_shape(tensor))
