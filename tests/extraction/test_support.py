import pytest

from triax.extraction.support import content_words, is_supported
from triax.records.triplets import Triplet

PASSAGE = content_words(
    "Inception\nInception is a 2010 film that Christopher Nolan directed in 東京都. It won 4."
)


@pytest.mark.parametrize(
    ("subject", "object", "expected"),
    [
        ("Inception", "Christopher Nolan", True),
        ("INCEPTION (film)", "directing", True),
        ("Inception", "東京", True),
        ("Inception", "4 prizes", True),
        ("Inception", "京城", False),
        ("The Leopard", "film", False),
        ("Inception", "the novel", False),
        ("It", "Nolan", True),
        ("!!!", "Nolan", True),
    ],
)
def test_what_is_about_the_passage(subject: str, object: str, expected: bool) -> None:
    assert is_supported(Triplet(subject, "is", object), PASSAGE) == expected


def test_function_words_are_no_support() -> None:
    assert content_words("The one of the and it is") == {"one"}
