import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.passage_tokens import PassageTokenizer

WORDS = "[UNK] [CLS] [SEP] marie curie was born in war ##saw . she won a prize ( chemist )".split()


@pytest.fixture
def folder(tmp_path):
    """A small WordPiece tokenizer as BERT's: [CLS] title [SEP] text [SEP]."""
    backend = Tokenizer(models.WordPiece({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


TITLE, TEXT = "Marie Curie", "She was born in Warsaw. She won a prize."


def test_one_window_is_what_the_tokenizer_makes_of_the_pair(folder):
    [window] = PassageTokenizer(folder).windows(TITLE, TEXT)
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert window.ids.tolist() == backend.encode(TITLE, TEXT).ids
    passage = f"{TITLE}\n{TEXT}"
    words = [passage[start:end] for start, end in window.spans.tolist()]
    assert words == [
        "",
        "Marie",
        "Curie",
        "",
        *"She was born in War saw . She won a prize .".split(),
        "",
    ]
    assert window.title_end == 3
    assert [words[n] for n in np.flatnonzero(window.begins)][:7] == [
        *("Marie Curie She was born in War".split())
    ]
    assert "saw" in [words[n] for n in np.flatnonzero(window.ends)]


def test_characters_to_whole_words(folder):
    [window] = PassageTokenizer(folder).windows(TITLE, TEXT)
    passage = f"{TITLE}\n{TEXT}"
    start = passage.index("Warsaw")
    assert window.find(start, start + 3) == (8, 9)  # a part of a word is the word
    assert window.find(0, 11) == (1, 2)
    assert window.find(6, 15) is None  # from the title into the text
    assert window.find(900, 905) is None


def test_no_title_and_no_text(folder):
    tokenizer = PassageTokenizer(folder)
    [window] = tokenizer.windows("", "She won.")
    assert window.ids.tolist() == [1, 2, *(WORDS.index(w) for w in ("she", "won", ".")), 2]
    assert window.title_end == 1 and window.spans[2].tolist() == [1, 4]
    assert tokenizer.windows(TITLE, "") == []


def test_windows_are_sentences_with_one_in_common(folder):
    sentence = "She was born in Warsaw. "  # 7 tokens
    tokenizer = PassageTokenizer(folder)
    windows = tokenizer.windows(TITLE, sentence * 5, max_length=3 + 2 + 14)
    starts = [int(window.spans[window.title_end + 1, 0]) for window in windows]
    assert [(start - 12) // len(sentence) for start in starts] == [0, 1, 2, 3]
    assert all(len(window.ids) == 19 for window in windows)
    assert all(window.ids[:4].tolist() == windows[0].ids[:4].tolist() for window in windows)


def test_a_sentence_that_is_too_long_is_cut_and_no_token_is_lost(folder):
    text = "she won a prize " * 10
    windows = PassageTokenizer(folder).windows("", text, max_length=3 + 12)
    kept = [n for window in windows for n in window.spans[window.spans[:, 1] > 0].tolist()]
    assert len(windows) == 4 and len(kept) == 40
    assert max(len(window.ids) for window in windows) <= 15


def test_a_folder_without_a_tokenizer(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(FileNotFoundError, match="needs a tokenizer.json"):
        PassageTokenizer(tmp_path)
