import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import save_file
from tiny_deberta import perturb, torch_config
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models import weights
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.encoder_params import hf_name
from triax.models.text_encoder import TextEncoder, clean, is_blank, read_pooling
from triax.records.verbs import Encoder

WORDS = [f"w{n}" for n in range(20)] + list("abcdefghij") + ["query", ":", "Ω"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
CONFIG = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
TEXTS = ["w1 w2", "a b c d e f g h i j", "w3", "w1 w2 w4 w5 w6", "j j j j j j j", "w19 a", "unseen"]


def write_model(folder, kind="bert"):
    """A random encoder with a word tokenizer; the file asks for padding, as MiniLM's does."""
    config = {**CONFIG, "model_type": kind, "pad_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    model = nnx.jit(lambda: TransformerEncoder(EncoderConfig.from_hf(config), rngs=nnx.Rngs(0)))()
    rng = np.random.default_rng(0)
    tensors = {}
    for path, variable in nnx.to_flat_state(nnx.state(model)):
        value = np.asarray(variable.get_value())
        value = value + 0.2 * rng.standard_normal(value.shape).astype(np.float32)
        value = value.T if path[-1] == "kernel" else value
        tensors[hf_name(".".join(map(str, path)), kind)] = np.ascontiguousarray(value)
    save_file(tensors, folder / "model.safetensors")
    vocabulary = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=12)
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny-bert"))


@pytest.fixture(scope="module")
def encoder(folder):
    return TextEncoder(str(folder), max_length=20, batch_tokens=32)


def torch_vectors(folder, texts, pooling, max_length=20):
    """One text at a time through transformers: no padding, no batching."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    rows = []
    for text in texts:
        with torch.no_grad():
            hidden = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        row = hidden[0] if pooling == "cls" else hidden.mean(0)
        rows.append((row / row.norm()).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_equal_torch(folder, pooling):
    long = " ".join(WORDS)
    encoder = TextEncoder(str(folder), pooling, max_length=20, batch_tokens=32)
    expected = torch_vectors(folder, [*TEXTS, long], pooling)
    np.testing.assert_allclose(encoder.encode([*TEXTS, long]), expected, atol=1e-4)


def test_deberta_vectors_equal_torch(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    write_model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    config = torch_config(vocab_size=CONFIG["vocab_size"], num_hidden_layers=1, position_buckets=8)
    perturb(transformers.DebertaV2Model(config)).save_pretrained(tmp_path)
    encoder = TextEncoder(str(tmp_path), max_length=20, batch_tokens=256)
    assert encoder.dimension == 32
    expected = torch_vectors(tmp_path, TEXTS, "mean")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-4)


def test_it_is_an_encoder_with_unit_float32_rows(encoder):
    assert isinstance(encoder, Encoder)
    rows = encoder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), encoder.dimension) == (7, 32)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert encoder.encode([]).shape == (0, 32)


def test_normalize_off_gives_the_same_directions(folder, encoder):
    rows = TextEncoder(str(folder), normalize=False, max_length=20).encode(TEXTS)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(lengths - 1).max() > 0.1
    np.testing.assert_allclose(rows / lengths, encoder.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_r18_order_and_company_do_not_matter(encoder, seed):
    rng = np.random.default_rng(seed)
    alone = {text: encoder.encode([text])[0] for text in TEXTS}
    others = [" ".join(rng.choice(WORDS, rng.integers(1, 30))) for _ in range(20)]
    mixed = list(rng.permutation([*TEXTS, *others, *TEXTS]))
    rows = encoder.encode(mixed)
    for text, row in zip(mixed, rows):
        if text in alone:
            np.testing.assert_allclose(row, alone[text], atol=1e-6)


def test_r18_the_same_call_gives_the_same_bytes(folder, encoder):
    again = TextEncoder(str(folder), max_length=20, batch_tokens=32)
    assert encoder.encode(TEXTS).tobytes() == again.encode(TEXTS).tobytes()


def test_duplicates_are_encoded_once(encoder):
    done = []
    rows = encoder.encode(["w1", "w2", "w1", "w1"], progress=done.append)
    assert done[-1] == 2
    np.testing.assert_array_equal(rows[[0, 0]], rows[[2, 3]])


def test_r08_long_texts_are_cut_and_counted(folder, caplog):
    encoder = TextEncoder(str(folder), max_length=6, batch_tokens=32)
    rows = encoder.encode(["a b c d", "a b c d e", "a b c d j i h"])
    assert encoder.truncated == 2
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-6)
    np.testing.assert_allclose(rows[2], rows[0], atol=1e-6)
    encoder.encode(["a b c d e f"])
    assert encoder.truncated == 3
    assert sum("were cut" in record.message for record in caplog.records) == 1


def test_r08_max_length_is_bounded_by_the_positions(folder):
    encoder = TextEncoder(str(folder), max_length=256)
    assert encoder.max_length == 40
    assert np.isfinite(encoder.encode(["a " * 500])).all()


@pytest.mark.parametrize("text", ["", "  \n\t ", "\x00\x07", "\u200b", "\u00a0"])
@pytest.mark.parametrize("prefix", ["", "query: "])
def test_r08_texts_without_tokens_are_zero(folder, text, prefix):
    encoder = TextEncoder(str(folder), query_prefix=prefix, max_length=20, batch_tokens=32)
    done = []
    rows = encoder.encode([text, "w1", text], "query", done.append)
    np.testing.assert_array_equal(rows[[0, 2]], 0)
    np.testing.assert_allclose(np.linalg.norm(rows[1]), 1, atol=1e-6)
    assert done[-1] == 2
    np.testing.assert_array_equal(encoder.encode([text], "query"), 0)


def test_r07_lone_surrogates_do_not_crash(encoder):
    rows = encoder.encode(["w1 \ud800 w2", "w1 w2", "\udcff w1"])
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(["\ud83d"]), 0)
    assert clean("\ud83d\ude00") == "\U0001f600"
    assert clean("a\udcffb\ud83d") == "a\ufffdb\ufffd"


def test_is_blank_keeps_letters_and_marks_of_any_script():
    assert not any(map(is_blank, ["a", "Ω", "中", "?", "+", "é", " x ", "\U0001f600"]))
    assert all(map(is_blank, ["", " ", "\r\n", "\ufeff", "\x1b"]))


def test_prefixes_go_by_role(folder):
    encoder = TextEncoder(
        str(folder), query_prefix="query : ", passage_prefix="a ", max_length=20, batch_tokens=32
    )
    plain = TextEncoder(str(folder), max_length=20, batch_tokens=32)
    expected = plain.encode(["query : w1", "a w1"])
    np.testing.assert_allclose(encoder.encode(["w1"], "query")[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["w1"])[0], expected[1], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "pooling", "query", "passage"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "mean", "", ""),
        ("sentence-transformers/all-mpnet-base-v2", "mean", "", ""),
        (
            "BAAI/bge-small-en-v1.5",
            "cls",
            "Represent this sentence for searching relevant passages: ",
            "",
        ),
        ("intfloat/e5-base-v2", "mean", "query: ", "passage: "),
        ("facebook/contriever", "mean", "", ""),
    ],
)
def test_presets(monkeypatch, tmp_path, name, pooling, query, passage):
    """Pooling and prefixes as the models' cards state them; nothing is fetched to know them."""
    monkeypatch.setattr(weights, "locate", lambda name: tmp_path)
    encoder = TextEncoder(name)
    assert (encoder.pooling, encoder.query_prefix, encoder.passage_prefix) == (
        pooling,
        query,
        passage,
    )
    assert TextEncoder(name, query_prefix="").query_prefix == ""


def test_an_unknown_pooling_is_an_error_that_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "locate", lambda name: tmp_path)
    with pytest.raises(ValueError, match="give pooling='mean' or 'cls'"):
        TextEncoder("someone/model").pooling  # noqa: B018


def test_read_pooling(tmp_path):
    assert read_pooling(tmp_path) is None
    (tmp_path / "1_Pooling").mkdir()
    path = tmp_path / "1_Pooling" / "config.json"
    path.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    assert read_pooling(tmp_path) == "cls"
    path.write_text('{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}')
    with pytest.raises(ValueError, match="max_tokens"):
        read_pooling(tmp_path)


def test_r05_the_fingerprint_holds_all_that_decides_the_vectors(folder):
    settings = {"max_length": 20}
    found = TextEncoder(str(folder), **settings).fingerprint
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert found == {
        "name": folder.name,
        "weights_sha256": digest,
        "dimension": 32,
        "dtype": "float32",
        "normalize": True,
        "pooling": "mean",
        "query_prefix": "",
        "passage_prefix": "",
        "max_length": 20,
    }
    assert json.loads(json.dumps(found)) == found
    revisions = {
        TextEncoder(str(folder), **{**settings, **change}).revision
        for change in (
            {},
            {"pooling": "cls"},
            {"normalize": False},
            {"max_length": 19},
            {"query_prefix": "q"},
            {"passage_prefix": "p"},
            {"dtype": "bfloat16"},
        )
    }
    assert len(revisions) == 7


def test_r16_nothing_is_fetched_before_the_first_use(monkeypatch):
    def refuse(name):
        raise AssertionError(f"{name} was asked for")

    monkeypatch.setattr(weights, "locate", refuse)
    encoder = TextEncoder()
    assert encoder.name == "sentence-transformers/all-MiniLM-L6-v2"
    with pytest.raises(AssertionError):
        encoder.encode(["a"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 2}, "max_length is 2"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TextEncoder(**settings)


def test_bfloat16_is_near_float32(folder, encoder):
    rows = TextEncoder(str(folder), max_length=20, batch_tokens=32, dtype="bfloat16").encode(TEXTS)
    assert rows.dtype == np.float32
    assert (rows * encoder.encode(TEXTS)).sum(axis=1).min() > 0.999


def test_mpnet_rows_equal_torch(tmp_path):
    folder = write_model(tmp_path, "mpnet")
    encoder = TextEncoder(str(folder), max_length=20, batch_tokens=32)
    np.testing.assert_allclose(
        encoder.encode(TEXTS), torch_vectors(folder, TEXTS, "mean"), atol=1e-4
    )


def test_eight_devices_give_the_vectors_of_one(folder, encoder, tmp_path):
    program = """
import sys, json, jax, numpy as np
from triax.models.text_encoder import TextEncoder
assert jax.local_device_count() == 8
encoder = TextEncoder(sys.argv[1], max_length=20, batch_tokens=32)
texts = json.loads(sys.argv[2])
rows = encoder.encode(texts)
out = encoder._embed(np.ones((16, 8), np.int32), np.ones((16, 8), bool))
assert len(out.sharding.device_set) == 8 and out.addressable_shards[0].data.shape == (2, 32)
np.save(sys.argv[3], rows)
"""
    texts = [*TEXTS, *(f"w{n} w{m}" for n in range(20) for m in range(5))]
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    subprocess.run(
        [sys.executable, "-c", program, folder, json.dumps(texts), tmp_path / "rows.npy"],
        env={
            **os.environ,
            "PYTHONPATH": source,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        },
        check=True,
    )
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), encoder.encode(texts), atol=1e-5)


@pytest.fixture(scope="module")
def minilm():
    try:
        folder = weights.locate("sentence-transformers/all-MiniLM-L6-v2")
    except weights.WeightsError as error:
        pytest.skip(str(error))
    return folder


SENTENCES = [
    "Roger Dean Miller Sr. was an American singer-songwriter.",
    "A musician from the United States wrote country songs.",
    "The mitochondrion makes most of a cell's chemical energy.",
    "Cells get their energy from mitochondria.",
    "Paris is the capital of France.",
    "What is the capital city of France?",
    "naïve café Ωmega 中文 C++ ≠ C#",
    "Proposition after proposition, the paragraph goes on. " * 30,
]


@pytest.mark.weights
def test_minilm_equals_torch(minilm):
    rows = TextEncoder("sentence-transformers/all-MiniLM-L6-v2").encode(SENTENCES)
    expected = torch_vectors(minilm, SENTENCES, "mean", max_length=256)
    np.testing.assert_allclose(rows, expected, atol=1e-4)
    assert (rows * expected).sum(axis=1).min() > 1 - 1e-4


@pytest.mark.weights
def test_minilm_finds_the_paraphrase(minilm):
    """Each of the first six sentences is nearest to the one that says the same."""
    rows = TextEncoder("sentence-transformers/all-MiniLM-L6-v2").encode(SENTENCES)
    scores = rows @ rows.T - 2 * np.eye(len(rows))
    np.testing.assert_array_equal(scores.argmax(axis=1)[:6], [1, 0, 3, 2, 5, 4])
