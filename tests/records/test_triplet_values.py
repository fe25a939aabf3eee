import json

import pytest

from triax.records.triplet_values import read_values

A, D = ("A", "b", "C", None), ("D", "e", "F", None)


@pytest.mark.parametrize(
    "text",
    [
        '{"triples": [["A", "b", "C"], ["D", "e", "F"]]}',
        '{"triplets": [["A", "b", "C"], ["D", "e", "F"]]}',
        '{"named_entities": ["A", "C", "D"], "Triples": [["A", "b", "C"], ["D", "e", "F"]]}',
        '{"result": {"query_triplets": [["A", "b", "C"], ["D", "e", "F"]]}}',
        '[["A", "b", "C"], ["D", "e", "F"]]',
        '[[["A", "b", "C"]], [["D", "e", "F"]]]',
        '["A", "b", "C"]\n["D", "e", "F"]',
        '- ["A", "b", "C"],\n- ["D", "e", "F"]',
        '[("A", "b", "C"), ("D", "e", "F")]',
        "[['A', 'b', 'C'], ['D', 'e', 'F'],]",
        '("A", "b", "C"), ("D", "e", "F")',
        '[{"subject": "A", "predicate": "b", "object": "C"}, {"s": "D", "p": "e", "o": "F"}]',
        '{"relations": [{"head": "A", "relation": "b", "tail": "C"}, ["D", "e", "F"]]}',
        '{"object": "C", "relation": "b", "subject": {"name": "A"}} {"s":"D","p":"e","o":"F"}',
        '{"triples": ["A | b | C", "D | e | F"]}',
        'Of course [1]!\n```json\n{"triples": [["A", "b", "C"], ["D", "e", "F"]]}\n``` {ok}',
    ],
)
def test_r01_forms(text: str) -> None:
    reading = read_values(text)
    assert reading.rows == [A, D]
    assert (reading.dropped, reading.is_cut) == (0, False)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (["A", None, "C"], None),
        ([None, None, None], None),
        (["A", "b"], None),
        (["A", "b", {}], None),
        ({"subject": "A", "object": "C"}, None),
        ({"subject": "A", "predicate": "b", "object": None}, None),
        (["A", "b", True], ("A", "b", "true", None)),
        (["A", "b", 1984], ("A", "b", "1984", None)),
        (["A", "b", -1.5], ("A", "b", "-1.5", None)),
        (["A", "b", "C", 0.5], ("A", "b", "C", 0.5)),
        (["A", "has", "rain of", 49], ("A", "has rain of", "49", None)),
        ({"s": "A", "p": "b", "o": "C", "confidence": 1}, ("A", "b", "C", 1.0)),
        ({"s": "A", "p": "b", "o": "C", "confidence": 7}, ("A", "b", "C", None)),
        (["A", "b", ["C", "D"]], ("A", "b", "C, D", None)),
        (["A [x]", 'b "y"', "C }\n{"], ("A [x]", 'b "y"', "C } {", None)),
    ],
)
def test_r01_rows(row: object, expected: object) -> None:
    reading = read_values(json.dumps({"triples": [["A", "b", "C"], row, ["D", "e", "F"]]}))
    assert reading.rows == [A, *([expected] if expected else []), D]
    assert reading.dropped == (expected is None)


@pytest.mark.parametrize("text", ['{"triples": []}', "[]", "{}", '{"a": {"triplets": []}}'])
def test_r02_sound_and_empty(text: str) -> None:
    reading = read_values(text)
    assert reading.is_sound
    assert not (reading.rows or reading.dropped or reading.is_cut)


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "no"}',
        "[1, 2, 3] [Paris, capital of, France]",
        'A | said | ["x", "y", "z"]',
        '["A" | "b" | "C"]',
        "A | b | C\n[",
        '{"entities": ["A", "B", "C"]}',
    ],
)
def test_r01_not_this_form(text: str) -> None:
    reading = read_values(text)
    assert not (reading.rows or reading.dropped or reading.is_sound)


def test_r01_cut() -> None:
    reading = read_values('{"triples": [["A", "b", "C"], ["D", "e", "F"')
    assert (reading.rows, reading.is_cut, reading.dropped) == ([A], True, 0)
    reading = read_values('[{"s": "A", "p": "b", "o": "C"}, {"s": "D", "p": "e", "o": "F"')
    assert (reading.rows, reading.is_cut, reading.dropped) == ([A], True, 0)
