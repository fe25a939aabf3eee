import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.json_text import UnclosedList, UnclosedObject, read_json
from triax.records.text import clean

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17) + 1, 10**17 - 1)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
CONTAINERS = (st.lists(JSON, max_size=5) | st.dictionaries(st.text(max_size=4), JSON)).filter(
    lambda value: "\\" not in json.dumps(value, ensure_ascii=False)
)


def values(text: str) -> list[object]:
    return [value for _, value in read_json(text)]


@given(CONTAINERS, st.booleans(), st.sampled_from([None, 2]))
def test_r01_sound_json_is_read_as_the_standard_library_reads_it(
    value: object, is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    read = values(f"Sure:\n```json\n{text}\n```\nDone.")
    assert json.loads(clean(json.dumps(read))) == [json.loads(clean(json.dumps(value)))]


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_r01_any_text_is_read(text: str) -> None:
    values(text)


@given(st.text("[]{}()\":,\\'“” ab1\n", max_size=60))
def test_r01_any_text_of_brackets_and_quotes_is_read(text: str) -> None:
    values(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[['A', 'b', \"O'Neil\"],]", [[["A", "b", "O'Neil"]]]),
        ("['O'Neil', 'is']", [["O'Neil", "is"]]),
        ('("A", "b", None)', [["A", "b", None]]),
        ('[("A", "b"), ("C", "d")]', [[["A", "b"], ["C", "d"]]]),
        ('["the song "Hello" is", "by"]', [['the song "Hello" is', "by"]]),
        ('["a\nb" "c"]', [['a\nb" "c']]),
        ('[["A", "b"}', [[["A", "b"]]]),
        ('{"x": [["A", "b"]}', [{"x": [["A", "b"]]}]),
        ('["\\ud83d\\ude00 \\q \\" \\\\"]', [['\ud83d\ude00 q " \\']]),
        ("[“A”, “b”]", [["A", "b"]]),
        ('["A", bare, true, -1.5, 1e2]', [["A", None, True, -1.5, 100.0]]),
        ("see [Paris, capital of, France] and [sic] {x}", []),
        ("[" + "9" * 5000 + "]", [["9" * 5000]]),
        ("(a note) [1] []", [[1], []]),
    ],
)
def test_r01_slips(text: str, expected: list[object]) -> None:
    assert values(text) == expected


def test_r01_the_end_is_missing() -> None:
    (value,) = values('{"n": 1, "t": [["A", "b", "C"], ["D", "e", "F')
    assert type(value) is UnclosedObject
    assert type(value["t"]) is UnclosedList
    assert value["t"] == [["A", "b", "C"], ["D", "e"]]
    assert [type(row) for row in value["t"]] == [list, UnclosedList]


def test_r01_depth_and_length_are_no_danger() -> None:
    values("[" * 100_000 + '"a"' + "]" * 100_000)
    values('["' + "\\" * 100_001)
    values('{"a":' * 50_000)
    values("[x" * 100_000)


def test_r24_nothing_is_evaluated() -> None:
    text = '[["A", __import__("os").getcwd(), "C"]]'
    assert "/" not in json.dumps(values(text))
