import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from triax.models.reading_windows import Windower
from triax.models.tokenizer import SpecialTokens, Tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "?", "Ann", "Lee", "was", "born", "in", "Rome"]


@pytest.fixture
def tokenizer():
    backend = Backend(models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return Tokenizer(backend, SpecialTokens())


def test_a_row_is_query_and_passage_between_separators(tokenizer):
    ((window,),) = Windower(tokenizer, 16)(["who ?"], ["Ann Lee was born in Rome"])
    assert [WORDS[n] for n in window.ids] == (
        "[CLS] who ? [SEP] Ann Lee was born in Rome [SEP]".split()
    )
    assert window.first == 4


def test_places_and_characters_lead_to_each_other(tokenizer):
    text = "Ann Lee was born in Rome"
    ((window,),) = Windower(tokenizer, 16)(["who ?"], [text])
    places = window.places(0, 7)
    assert places == (4, 5)
    low, high = window.characters(*places)
    assert text[low:high] == "Ann Lee"
    assert window.places(30, 34) is None


def test_a_long_passage_has_windows_that_overlap_and_cover_it(tokenizer):
    text = " ".join(["Rome"] * 10 + ["Ann", "Lee"])
    ((*windows,),) = Windower(tokenizer, 10, stride=2)(["who ?"], [text])
    assert all(window.length <= 10 for window in windows)
    covered = {span for window in windows for span in window.offsets}
    assert len(covered) == 12
    assert windows[0].offsets[-2:] == windows[1].offsets[:2]
    start = text.index("Ann")
    assert windows[0].places(start, start + 7) is None
    assert windows[-1].places(start, start + 7) is not None


def test_an_answer_cut_by_a_window_is_not_in_it(tokenizer):
    text = " ".join(["Rome"] * 4 + ["Ann", "Lee"])
    windows = Windower(tokenizer, 10, stride=1)(["who ?"], [text])[0]
    start = text.index("Ann")
    found = [window.places(start, start + 7) for window in windows]
    assert found[0] is None and found[-1] is not None


def test_long_queries_are_cut_and_empty_passages_have_a_row(tokenizer):
    rows = Windower(tokenizer, 10)(["who " * 30, "who"], ["Rome", ""])
    assert rows[0][0].length <= 10
    assert rows[1][0].ids == [2, 4, 3, 3]
    assert rows[1][0].offsets == []


def test_a_tokenizer_without_a_frame_is_refused():
    backend = Backend(models.WordLevel({"[UNK]": 0}, "[UNK]"))
    with pytest.raises(ValueError, match="expected \\[CLS\\] and \\[SEP\\]"):
        Windower(Tokenizer(backend, SpecialTokens()), 10)
