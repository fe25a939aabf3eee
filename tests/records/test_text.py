import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.text import clean, normalise

ANY = st.text(st.characters(exclude_categories=()), max_size=20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\rc\td\n", "a\nb\nc\td\n"),
        ("nul\x00 bell\x07 del\x7f c1\x85", "nul bell del c1"),
        ("lone \ud83d and \ude00.", "lone \ufffd and \ufffd."),
        ("pair \ud83d\ude00", "pair \U0001f600"),
        ("cafe\u0301", "caf\u00e9"),
        ("Москва 東京 عربي", "Москва 東京 عربي"),
    ],
)
def test_r07_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(ANY)
def test_r07_clean_text_can_be_written_and_is_a_fixed_point(text: str) -> None:
    result = clean(text)
    assert json.loads(json.dumps(result).encode("utf-8")) == result
    result.encode("utf-8")
    assert clean(result) == result
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in result if c not in "\n\t")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Москва", "МОСКВА"),
        ("Straße", "STRASSE"),
        ("ＡＢＣ 東京", "abc　東京"),
        ("  New\n York ", "new york"),
        ("cafe\u0301", "CAFÉ"),
        ("O’Neil", "O'Neil"),
        ("Jean‑Luc", "Jean-Luc"),
        ("co\u00adop\u200b", "coop"),
        ("ſ", "S"),
    ],
)
def test_r07_one_name(first: str, second: str) -> None:
    assert normalise(first) == normalise(second)


def test_r07_different_names() -> None:
    names = ["C++", "C#", "C", "cafe", "café", "東京", "京東", "Иван", "Иванъ", "!!!", "A.B", "AB"]
    assert len({normalise(name) for name in names}) == len(names)


@given(ANY)
def test_r07_no_letter_digit_or_symbol_is_lost(text: str) -> None:
    result = normalise(text)
    assert normalise(result) == result
    if any(unicodedata.category(c)[0] in "LNS" for c in text):
        assert result


def test_r07_every_letter_digit_and_symbol_of_unicode() -> None:
    for point in range(0x110000):
        character = chr(point)
        if unicodedata.category(character)[0] in "LNS":
            assert normalise(character), f"U+{point:04X}"
