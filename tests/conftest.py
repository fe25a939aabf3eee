"""A random text encoder in a folder, for all rooms that stand on one."""

import json

import numpy as np
import pytest
from flax import nnx
from hypothesis import settings
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.encoder_params import hf_name

# The first example of a test pays for imports, and a slow machine says nothing about any.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def make_base(tmp_path_factory):
    """Writes a BERT over whole words: `[PAD] [UNK] [CLS] [SEP]` come before the given ones."""

    def make(words, width=16, layers=1, inner=24, positions=32, noise=0.2):
        folder = tmp_path_factory.mktemp("base")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]
        config = {
            "model_type": "bert",
            "vocab_size": len(words),
            "hidden_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": 2,
            "intermediate_size": inner,
            "max_position_embeddings": positions,
        }
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        shape = EncoderConfig.from_hf(config)
        model = nnx.jit(lambda: TransformerEncoder(shape, rngs=nnx.Rngs(0)))()
        rng = np.random.default_rng(0)
        tensors = {}
        for path, variable in nnx.to_flat_state(nnx.state(model)):
            value = np.asarray(variable.get_value())
            value = value + noise * rng.standard_normal(value.shape).astype(np.float32)
            value = value.T if path[-1] == "kernel" else value
            tensors[hf_name(".".join(map(str, path)), "bert")] = np.ascontiguousarray(value)
        save_file(tensors, folder / "model.safetensors")
        backend = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        backend.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        backend.save(str(folder / "tokenizer.json"))
        return folder

    return make
