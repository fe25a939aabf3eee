import json

import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.adapters import AdapterError, save_adapter
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.encoder_params import hf_name
from triax.models.trained_tagger import TRAINABLE, TrainedTagger, build_tagger
from triax.models.triplet_tagger import TaggerConfig

WORDS = "[UNK] [CLS] [SEP] marie curie she was born in warsaw . won a prize paris died".split()
SHAPE = EncoderConfig("bert", len(WORDS), 16, 1, 2, 16, 64)
SIZES = TaggerConfig(3, 2, 2, 16, 8, 8, 4, 3, 4, 3, 6)


def write_base(folder):
    """A model folder as a hub gives it, with random weights."""
    folder.mkdir()
    encoder = TransformerEncoder(SHAPE, rngs=nnx.Rngs(0))
    tensors = {}
    for path, variable in nnx.to_flat_state(nnx.state(encoder)):
        value = np.asarray(variable[...])
        name = hf_name(".".join(map(str, path)), "bert")
        tensors[name] = np.ascontiguousarray(value.T if path[-1] == "kernel" else value)
    save_file(tensors, folder / "model.safetensors")
    config = {
        "model_type": "bert",
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
    }
    (folder / "config.json").write_text(json.dumps(config))
    backend = Tokenizer(models.WordPiece({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    backend.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    write_base(folder / "base")
    tagger = build_tagger(folder / "base", SIZES, rank=2)
    tagger.head.pair_score.bias[...] = np.zeros(1)  # so that an untrained tagger says something
    config = {
        "part": "extract",
        "base": str(folder / "base"),
        "rank": 2,
        "max_length": 24,
        "tagger": SIZES.to_json(),
        "phrases": {"prefixes": ["", "is", "has"], "suffixes": ["", "of"], "relations": ["a", "b"]},
        "thresholds": {"pair": 0.4, "relation": 0.9, "rescue": 0.1},
    }
    return save_adapter(folder / "adapter", tagger, TRAINABLE, config)


TEXTS = [
    ("Marie Curie", "She was born in Warsaw."),
    ("", "Curie won a prize in Paris."),
    ("Marie Curie", "She was born in Warsaw. She won a prize in Paris. She died in Paris. " * 2),
    ("Nothing", ""),
]


def test_a_passage_is_read_alike_alone_and_among_others(adapter):
    tagger = TrainedTagger(str(adapter))
    together = tagger.read(TEXTS)
    alone = [tagger.read([one])[0] for one in TEXTS]
    assert [[t.fields for t in one] for one in together] == [[t.fields for t in o] for o in alone]
    assert together[0] and together[1] and together[2]
    assert together[3] == ()
    for (title, text), triplets in zip(TEXTS, together):
        given = f"{title} {text}".lower()
        assert all(t.subject.lower() in given and t.object.lower() in given for t in triplets)
        confidences = [t.confidence for t in triplets]
        assert confidences == sorted(confidences, reverse=True)
        assert all(0.1 <= one <= 1.0 for one in confidences)


def test_a_higher_threshold_says_less_and_has_another_fingerprint(adapter):
    usual = TrainedTagger(str(adapter))
    strict = TrainedTagger(str(adapter), pair_threshold=1.0, relation_threshold=1.0)
    assert usual.thresholds.pair == 0.4 and strict.thresholds.pair == 1.0
    assert usual.fingerprint != strict.fingerprint
    assert usual.fingerprint["adapter_sha256"] == strict.fingerprint["adapter_sha256"]


def test_an_adapter_of_another_part_is_refused(adapter, tmp_path):
    for path in adapter.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"part": "resolve"}))
    with pytest.raises(AdapterError, match="holds the part 'resolve'"):
        TrainedTagger(str(tmp_path)).read([("", "She won.")])
