"""References: llama.cpp for tokenizers rebuilt from a GGUF, transformers for chat templates."""

import json
import os
import unicodedata

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from triax.models.gguf_file import Vocabulary
from triax.models.tokenizer import build_tokenizer, load_tokenizer
from triax.records.completions import Message

TEXTS = (
    "the man in the 12th inn",
    "  two spaces,\n\n\ttab and 2024 | ?x ; (a; b; c)",
    "naïve Zürich 東京 🙂 e\u0301",
    "it's THE'S 1212 ... ?!\r\n end ",
    "",
)
CHATS = (
    (Message("user", "Who?"),),
    (Message("system", "Be brief."), Message("user", "a\nb")),
    (Message("user", "Q"), Message("assistant", "A"), Message("user", "R")),
)


@pytest.mark.parametrize(("architecture", "pre"), [("llama", "smollm"), ("qwen2", "qwen2")])
def test_rebuilt_from_a_gguf_equals_llama_cpp(
    tmp_path, write_gguf, hf_weights, llama_cpp, architecture, pre
):
    path = write_gguf(tmp_path / "m.gguf", hf_weights(architecture), architecture, pre)
    tokenizer = load_tokenizer(tmp_path)
    chat = "<|im_start|>user\nthe man<|im_end|>"
    with llama_cpp(path) as post:
        for text in (*TEXTS, chat):
            # Qwen2's own tokenizer composes characters first (NFC); llama.cpp leaves that out.
            content = unicodedata.normalize("NFC", text) if pre == "qwen2" else text
            expected = post("/tokenize", {"content": content, "parse_special": True})["tokens"]
            assert tokenizer.encode(text) == expected, text
    assert tokenizer.encode(chat)[0] == 1 and tokenizer.encode(chat)[-1] == 2
    assert tokenizer.encode_batch(TEXTS) == [tokenizer.encode(text) for text in TEXTS]


def test_what_is_rebuilt_is_kept_and_read_back(tmp_path, write_gguf, hf_weights):
    path = write_gguf(tmp_path / "m.gguf", hf_weights("llama"))
    first = load_tokenizer(tmp_path)
    kept = tmp_path / "m.gguf.tokenizer.json"
    assert kept.is_file()
    second = load_tokenizer(tmp_path)
    for text in TEXTS:
        assert first.encode(text) == second.encode(text)
        assert second.decode(second.encode(text)) == text
    assert first.to_json() == second.to_json()
    assert (second.eos_ids, second.pad_id, second.vocab_size) == ((0, 2), 0, 266)
    assert second.special_ids == {0, 1, 2}
    assert second.token_id("<|im_end|>") == 2 and second.token_id("no token") is None
    # Another file of that name: what was kept is not believed.
    os.utime(path, ns=(1, 1))
    stale = json.loads(kept.read_text())
    stale["chat_template"] = "stale"
    kept.write_text(json.dumps(stale))
    assert load_tokenizer(tmp_path).to_json() == first.to_json()


def test_a_read_only_folder_is_no_obstacle(tmp_path, write_gguf, hf_weights, monkeypatch):
    write_gguf(tmp_path / "m.gguf", hf_weights("llama"))

    def refuse(path, value):
        raise PermissionError(path)

    monkeypatch.setattr("triax.models.tokenizer.write_json", refuse)
    assert load_tokenizer(tmp_path).encode("the")


def test_token_bytes_join_to_the_text(tmp_path, write_gguf, hf_weights):
    write_gguf(tmp_path / "m.gguf", hf_weights("llama"))
    tokenizer = load_tokenizer(tmp_path)
    table = tokenizer.token_bytes()
    assert len(table) == tokenizer.vocab_size
    for text in TEXTS:
        assert b"".join(table[id_] for id_ in tokenizer.encode(text)) == text.encode()
    assert table[:3] == [b"", b"", b""]
    assert set(table[3:259]) == {bytes([byte]) for byte in range(256)}


def test_token_bytes_with_byte_fallback(tmp_path):
    vocab = {"<s>": 0, "<0x0A>": 1, "\u2581the": 2, "é": 3}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    backend.add_special_tokens([AddedToken("<s>", special=True)])
    backend.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).token_bytes() == [b"", b"\n", b" the", "é".encode()]


@pytest.fixture
def folder(tmp_path):
    """A published folder: WordPiece-like words, cut at 2 tokens and padded, with a template."""
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "b", "c"]
    backend = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.enable_truncation(2)
    backend.enable_padding(length=8)
    backend.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    backend.save(str(tmp_path / "tokenizer.json"))
    config = {"pad_token": {"content": "[PAD]"}, "eos_token": "[SEP]", "bos_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_published_folder_is_not_cut_nor_padded(folder):
    tokenizer = load_tokenizer(folder)
    assert tokenizer.encode("a b c a b c") == [4, 5, 6, 4, 5, 6]
    assert tokenizer.encode_batch(["a", "b c"]) == [[4], [5, 6]]
    assert tokenizer.pad_id == 0 and tokenizer.eos_ids == (2,)


def test_ends_come_from_all_the_files_that_name_them(folder):
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 6]}))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 6}))
    assert load_tokenizer(folder).eos_ids == (2, 5, 6)


def test_token_bytes_of_a_word_vocabulary_are_refused(folder):
    with pytest.raises(ValueError, match="byte-level and byte-fallback"):
        load_tokenizer(folder).token_bytes()


TEMPLATES = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' }}\n"
    "  {%- endfor %}\n{% if add_generation_prompt %}assistant{{ eos_token }}{% endif %}",
    "{{ bos_token }}{% for m in messages %}\n    {% if m.role == 'system' %}\nS {{ m.content }}\n"
    "    {% continue %}{% endif %}\n{{ m | tojson }}{% endfor %}",
)


@pytest.mark.parametrize("template", TEMPLATES)
def test_chat_templates_render_as_in_transformers(folder, template):
    transformers = pytest.importorskip("transformers")
    (folder / "chat_template.jinja").write_text(template)
    reference = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]", eos_token="[SEP]"
    )
    reference.chat_template = template
    tokenizer = load_tokenizer(folder)
    for chat in CHATS:
        expected = reference.apply_chat_template(
            [{"role": turn.role, "content": turn.content} for turn in chat],
            tokenize=False,
            add_generation_prompt=True,
            bos_token="",
        )
        assert tokenizer.apply_chat_template(chat) == expected


def test_a_list_of_templates_has_a_default(folder):
    config = {
        "chat_template": [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_tokenizer(folder).apply_chat_template(CHATS[0]) == "d"


def test_templates_run_in_a_sandbox_and_may_refuse(folder):
    path = folder / "chat_template.jinja"
    for template in (
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
    ):
        path.write_text(template)
        with pytest.raises(ValueError, match="the chat template refuses messages of roles"):
            load_tokenizer(folder).apply_chat_template(CHATS[0])
    path.unlink()
    tokenizer = load_tokenizer(folder)
    assert not tokenizer.has_chat_template
    with pytest.raises(ValueError, match="has no chat template"):
        tokenizer.apply_chat_template(CHATS[0])


def test_kinds_that_are_not_rebuilt_are_told():
    tables = {"tokens": ("a",), "types": (1,), "merges": (), "bos_id": -1, "eos_ids": ()}
    tables |= {"pad_id": -1, "adds_bos": False, "chat_template": ""}
    with pytest.raises(ValueError, match="kind 'llama-bpe'"):
        build_tokenizer(Vocabulary(model="gpt2", pre="llama-bpe", **tables))
    with pytest.raises(ValueError, match="kind 'llama'"):
        build_tokenizer(Vocabulary(model="llama", pre="default", **tables))


def test_older_vocabulary_files_go_through_transformers(tmp_path):
    pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "tri", "##plet"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    config = {"tokenizer_class": "BertTokenizer", "pad_token": "[PAD]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.encode("Triplet") == [5, 6]
    assert tokenizer.encode("triplet", add_special=True) == [2, 5, 6, 3]


SENTENCES = (
    "the man in the 12th inn saw the triplet",
    "Roger Miller sang King of the Road in 1965",
    "a query triplet has unknown parts",
    "the director of the film was born in Zürich, a town of Switzerland",
)


@pytest.fixture(scope="module", params=["nmt_nfkc", "identity"])
def deberta(tmp_path_factory, request):
    """A folder as microsoft/deberta-v3-base: spm.model alone, and what is said beside it."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp(request.param)
    pieces = {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
    texts = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_prefix=str(folder / "spm"),
        vocab_size=100,
        hard_vocab_limit=False,
        normalization_rule_name=request.param,
        minloglevel=2,
        **{f"{name}_id": id_ for name, id_ in pieces.items()},
        **{f"{name}_piece": text for name, text in texts.items()},
    )
    (folder / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
    config = {"do_lower_case": False, "vocab_type": "spm"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    reference = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    return load_tokenizer(folder), reference


def test_deberta_tokens_equal_sentencepiece(deberta):
    tokenizer, reference = deberta
    more = ("  the  ﬁlm ① ｆｉｌｍ Zu\u0308rich ", "a\u200btown\u00a0of ½ ™ …", " ")
    for text in (*TEXTS, *SENTENCES, *more):
        assert tokenizer.encode(text) == reference.encode(text), text
    pieces = reference.encode("the film")
    assert tokenizer.encode("the film", add_special=True) == [1, *pieces, 2]
    # [MASK] is not in the model's pieces; it comes behind them, as the published model has it.
    assert tokenizer.token_id("[MASK]") == reference.vocab_size() == tokenizer.vocab_size - 1
    assert tokenizer.pad_id == 0 and tokenizer.special_ids >= {0, 1, 2, 3}


def test_characters_of_deberta_tokens_have_no_space_before_them(deberta):
    tokenizer, _ = deberta
    text = "Roger  Miller in\tthe inn"
    ((ids, spans),) = tokenizer.encode_offsets([text])
    found = [text[start:end] for start, end in spans]
    assert len(ids) == len(found) and not any(part[:1].isspace() for part in found)
    start, end = text.index("Miller"), text.index("Miller") + len("Miller")
    inside = [(a, b) for a, b in spans if a < end and b > start]
    assert (inside[0][0], inside[-1][1]) == (start, end)


def test_a_deberta_folder_with_a_tokenizer_json(deberta, tmp_path):
    tokenizer, reference = deberta
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer.to_json()["tokenizer"]))
    text = "the director of the ｆｉｌｍ"
    assert load_tokenizer(tmp_path).encode(text) == reference.encode(text)


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tokenizer.json"):
        load_tokenizer(tmp_path)


@pytest.mark.weights
def test_smollm2_tokens_equal_llama_cpp(llama_cpp):
    from triax.models.weights import WeightsError, locate

    try:
        folder = locate("HuggingFaceTB/SmolLM2-135M-Instruct")
    except WeightsError as error:
        pytest.skip(str(error))
    files = sorted(folder.glob("*.gguf"))
    if not files:
        pytest.skip("the cache holds the hub's files, which llama.cpp does not read")
    tokenizer = load_tokenizer(folder)
    chat = tokenizer.apply_chat_template(CHATS[1])
    assert chat.endswith("<|im_start|>assistant\n")
    table = tokenizer.token_bytes()
    with llama_cpp(files[0]) as post:
        for text in (*TEXTS, chat):
            ids = tokenizer.encode(text)
            assert ids == post("/tokenize", {"content": text, "parse_special": True})["tokens"]
            assert tokenizer.decode(ids, skip_special=False) == text
        for text in TEXTS:
            assert b"".join(table[id_] for id_ in tokenizer.encode(text)) == text.encode()
