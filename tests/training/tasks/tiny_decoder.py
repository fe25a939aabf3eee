"""A random Llama of two layers with a byte-level vocabulary, in files as published models lie."""

import json

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_tiny_decoder(path):
    """Writes the folder and returns torch's model."""
    import torch
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={t: n for n, t in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(n, special=True, normalized=False) for n in SPECIAL])
    backend.save(str(path / "tokenizer.json"))
    # The end of a text is another token than the end of a turn.
    config = {"eos_token": "<|endoftext|>", "chat_template": TEMPLATE}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    ends = [backend.token_to_id(name) for name in ("<|endoftext|>", "<|im_end|>")]
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=backend.get_vocab_size(),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            eos_token_id=ends[0],
            bos_token_id=None,
            initializer_range=0.1,
        )
    )
    model.save_pretrained(path)
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    return model.eval()
