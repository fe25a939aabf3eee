"""Tests of triax.corpora.gold."""

from triax.corpora.gold import GoldIndex
from triax.records.documents import Document

DOCUMENTS = [
    Document("p1", "First  half.", "Page"),
    Document("p2", "Second half.", "Page"),
    Document("u", "Text.", "Unique"),
    Document("v", "Café.", "Café"),
]


def test_title_and_text_find_one_of_several_passages():
    gold = GoldIndex(DOCUMENTS)
    assert gold.find("Page", "Second half.") == "p2"
    assert gold.find("Page", "First half. ") == "p1"


def test_a_title_alone_is_a_key_only_if_it_is_unique():
    gold = GoldIndex(DOCUMENTS)
    assert gold.find("Unique") == "u"
    assert gold.find("Unique", "another wording") == "u"
    assert gold.find("Page") is None
    assert gold.find("Page", "third half") is None
    assert gold.find("Nowhere") is None


def test_r07_decomposed_letters_are_the_same():
    assert GoldIndex(DOCUMENTS).find("Cafe\u0301") == "v"
