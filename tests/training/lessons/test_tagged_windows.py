import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.passage_tokens import PassageTokenizer
from triax.models.tagged_triplets import Phrases
from triax.models.triplet_tagger import MENTION, OBJECT, SUBJECT, TaggerConfig
from triax.training.lessons.extractions import (
    ExtractionLesson,
    OpenTriplet,
    Predicate,
    Relation,
)
from triax.training.lessons.tagged_windows import RIGHT, UNKNOWN, WRONG, make_batch, tag_windows

CONFIG = TaggerConfig(3, 2, 2, max_span=4)
PHRASES = Phrases(("", "is", "has"), ("", "of"), ("born in", "child"))
TITLE, TEXT = "Marie Curie", "She was born in Warsaw. She won a prize."


@pytest.fixture
def tokenizer(tmp_path):
    words = "[UNK] [CLS] [SEP]".split()
    backend = Tokenizer(models.WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    return PassageTokenizer(tmp_path)


def at(words):
    start = f"{TITLE}\n{TEXT}".index(words)
    return start, start + len(words)


def lesson(**changed):
    told = {
        "triplets": (
            OpenTriplet(at("Marie Curie"), at("Warsaw"), Predicate("", at("was born in"), "")),
            OpenTriplet(at("Marie Curie"), at("a prize"), Predicate("has", None, "")),
        ),
        "aliases": (at("She"),),
        "is_open": True,
    }
    return ExtractionLesson("x", "silver_openie", TITLE, TEXT, **(told | changed))


def flat(first, last):
    return first * 4 + last - first


def tagged(one, tokenizer, max_length=64):
    return list(tag_windows(one, tokenizer, PHRASES, CONFIG, max_length))


#  0    1     2     3   4   5   6    7  8      9 10  11  12 13    14 15
# CLS Marie Curie SEP She was born in Warsaw . She won a prize . SEP
def test_characters_become_tokens(tokenizer):
    [window] = tagged(lesson(), tokenizer)
    curie = flat(1, 2)
    assert window.length == 16
    assert window.pairs == (
        (curie, flat(8, 8), 5, 7, 0, 0),
        (curie, flat(12, 13), 0, 0, 2, 0),
    )
    assert window.aliases == (flat(4, 4),)


def test_a_window_has_the_labels_that_lie_in_it(tokenizer):
    first, second = tagged(lesson(), tokenizer, max_length=3 + 2 + 6)
    assert [pair[1] for pair in first.pairs] == [flat(8, 8)]
    assert [pair[1] for pair in second.pairs] == [flat(6, 7)]
    relation = (Relation(at("Marie Curie"), at("Warsaw"), "born in"),)
    told = lesson(triplets=(), is_open=False, relations=relation)
    [only] = tagged(told, tokenizer, max_length=11)  # the other window tells nothing
    assert only.relations == ((flat(1, 2), flat(8, 8), 0),)


def test_unknown_phrases_and_long_spans(tokenizer):
    odd = OpenTriplet(at("Marie Curie"), at("Warsaw"), Predicate("hails from", None, ""))
    long = OpenTriplet(at("Marie Curie"), at("was born in Warsaw. She"), None)
    [window] = tagged(lesson(triplets=(odd, long)), tokenizer)
    assert window.pairs == ((flat(1, 2), flat(8, 8), -1, -1, -1, -1),)


def test_a_batch_tells_right_wrong_and_unknown(tokenizer):
    windows = tagged(lesson(), tokenizer)
    batch = make_batch(windows, 2, 20, CONFIG, max_pairs=1, max_relations=2)
    spans = batch["spans"]
    assert spans.shape == (2, 20, 4, 3)
    assert spans[0, 1, 1, SUBJECT] == RIGHT and spans[0, 8, 0, OBJECT] == RIGHT
    assert spans[0, 1, 1, OBJECT] == WRONG
    assert spans[0, 12, 1, OBJECT] == WRONG  # its pair is one too many for the array
    assert (spans[0, 4, 0] == UNKNOWN).all()
    assert (spans[0, :, :, MENTION] == UNKNOWN).all() and (spans[1] == UNKNOWN).all()
    assert batch["weight"].tolist() == [1.0, 0.0]
    assert batch["pairs"][0].tolist() == [[flat(1, 2), flat(8, 8), 5, 7, 0, 0]]
    assert (batch["pairs"][1] == -1).all() and (batch["relations"] == -1).all()
    assert batch["ids"].shape == (2, 20) and batch["title_end"].tolist() == [3, 1]
