"""A small DeBERTa-v3 in torch, and rows for it."""

import numpy as np

SHAPE = {
    "model_type": "deberta-v2",
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 256,
    "max_relative_positions": -1,
    "pos_att_type": "p2c|c2p",
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}


def torch_config(**changes):
    import transformers

    shape = {**SHAPE, **changes}
    return transformers.DebertaV2Config(**{k: v for k, v in shape.items() if k != "model_type"})


def perturb(model):
    """Moves every parameter, biases and norms among them, off its default."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def padded_rows(length: int):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, SHAPE["vocab_size"], (3, length))
    mask = np.arange(length) < np.array([length, length // 2, 3])[:, None]
    return np.where(mask, ids, 0).astype(np.int32), mask
