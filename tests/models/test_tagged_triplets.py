import numpy as np

from triax.models.passage_tokens import PassageTokens
from triax.models.tagged_triplets import (
    Phrases,
    Thresholds,
    WindowTags,
    read_triplets,
    whole_name,
)
from triax.records.triplets import Triplet

TITLE, TEXT = "Marie Curie", "She was born in Warsaw. Curie was a Polish physicist."
PHRASES = Phrases(("", "is"), ("", "of"), ("country of citizenship", "place of birth"))
NEVER = -1e9


def window():
    """One token a word or mark, behind [CLS], with [SEP] after title and text."""
    spans, begin = [(0, 0)], 0
    for part in (TITLE, TEXT):
        for word in part.replace(".", " .").split():
            start = f"{TITLE}\n{TEXT}".index(word, begin)
            begin = start + len(word)
            spans.append((start, begin))
        spans.append((0, 0))
    spans = np.array(spans, np.int32)
    is_word = spans[:, 1] > 0
    return PassageTokens(np.arange(len(spans), dtype=np.int32), spans, is_word, is_word, 3)


#  0    1     2     3   4   5   6    7  8      9 10    11  12 13     14        15 16
# CLS Marie Curie SEP She was born in Warsaw . Curie was a Polish physicist . SEP
def tags(pairs=(), relations=()):
    """Pairs are (subject, object, score, prefix, suffix, copied); relations (i, j, r, score)."""
    pairs = [*pairs, ((4, 4), (4, 4), NEVER, 0, 0, (0, 0))]
    columns = [np.array(column) for column in zip(*pairs)]
    scores = np.full((3, 3, 2), NEVER)
    for first, second, number, score in relations:
        scores[first, second, number] = score
    mentions = np.array([(1, 2), (8, 8), (13, 13)])
    subject, other, score, prefix, suffix, copied = columns
    return WindowTags(subject, other, score, prefix, suffix, copied, mentions, scores)


def read(thresholds=None, **given):
    windows = [(window(), tags(**given))]
    return read_triplets(TITLE, TEXT, windows, PHRASES, thresholds or Thresholds())


BORN = ((4, 4), (8, 8), 2.0, 0, 0, (5, 7))


def test_a_pronoun_is_the_title_and_the_words_are_those_of_the_text():
    # 1 / (1 + e^-2) = 0.8808
    assert read(pairs=[BORN]) == (Triplet("Marie Curie", "was born in", "Warsaw", 0.8808),)


def test_prefix_copy_and_suffix_are_joined():
    found = read(
        pairs=[((10, 10), (13, 13), 0.0, 1, 1, (14, 14)), ((1, 2), (14, 14), 0.0, 1, 0, (0, 0))]
    )
    assert [one.fields for one in found] == [
        ("Marie Curie", "is physicist of", "Polish"),
        ("Marie Curie", "is", "physicist"),
    ]


def test_relations_have_names_and_each_its_confidence():
    found = read(relations=[(0, 1, 1, 4.0), (0, 2, 0, 1.0), (1, 2, 0, -1.0)])
    assert found == (
        Triplet("Marie Curie", "place of birth", "Warsaw", 0.982),
        Triplet("Marie Curie", "country of citizenship", "Polish", 0.7311),
    )


def test_a_sentence_with_nothing_gets_its_best_pair():
    weak = [
        ((1, 2), (8, 8), -1.0, 1, 0, (0, 0)),  # 0.27, but the sentence has "was born in"
        ((10, 10), (13, 14), -1.5, 1, 0, (0, 0)),  # 0.18
        ((10, 10), (14, 14), -2.0, 1, 0, (0, 0)),  # 0.12
        ((1, 2), (13, 13), -4.0, 1, 0, (0, 0)),  # 0.02
    ]
    found = read(pairs=[BORN, *weak])
    assert [one.object for one in found] == ["Warsaw", "Polish physicist"]
    strict = read(Thresholds(rescue=0.2), pairs=[BORN, *weak])
    assert [one.object for one in strict] == ["Warsaw"]


def test_of_nested_objects_the_more_confident_is_kept():
    long = ((10, 10), (12, 14), 1.0, 0, 0, (11, 11))
    short = ((10, 10), (14, 14), 2.0, 0, 0, (11, 11))
    assert [one.object for one in read(pairs=[long, short])] == ["physicist"]
    other = ((10, 10), (12, 14), 1.0, 1, 0, (0, 0))  # another predicate says another thing
    assert len(read(pairs=[other, short])) == 2


def test_both_windows_of_a_passage_say_a_triplet_once():
    both = [(window(), tags(pairs=[BORN])), (window(), tags(pairs=[BORN]))]
    assert len(read_triplets(TITLE, TEXT, both, PHRASES, Thresholds())) == 1


def test_nothing_about_itself():
    assert read(pairs=[((10, 10), (1, 2), 3.0, 1, 0, (0, 0))]) == ()  # both are Marie Curie


def test_whole_names():
    assert whole_name("Curie", "Marie Curie") == "Marie Curie"
    assert whole_name("It", "Inception (film)") == "Inception"
    assert whole_name("The film", "Inception") == "Inception"
    assert whole_name("New York", "Albany, New York") == "New York"
    assert whole_name("Burgundy", "Duchy of Burgundy") == "Burgundy"
    assert whole_name("Marie", "Marie Curie") == "Marie"
    assert whole_name("He", "") == "He"
