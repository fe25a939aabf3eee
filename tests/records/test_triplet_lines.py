import pytest

from triax.records.triplet_lines import bare_lines, read_groups, read_pipes, read_tabs


def fields(reading: object) -> list[str]:
    return ["|".join(row[:3]) for row in reading.rows]  # type: ignore[attr-defined]


def test_bare_lines() -> None:
    text = """Here you are:
```text
## Extracted triplets:
**Triples:** A | b | C
- D | e | F
* G | h | I
• J | k | L
| --- | :---: | --- |
-----
-5 | is | negative
```"""
    assert bare_lines(text) == [
        "Here you are:",
        "A | b | C",
        "D | e | F",
        "G | h | I",
        "J | k | L",
        "-5 | is | negative",
    ]
    assert bare_lines("A | b | C\nD | e", is_cut=True) == ["A | b | C"]
    assert bare_lines("A | b | C\n", is_cut=True) == ["A | b | C"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A | b | C", "A|b|C"),
        ("A|b|C", "A|b|C"),
        ("| A | b | C |", "A|b|C"),
        ("(A | b | C)", "A|b|C"),
        ("[A | b | C].", "A|b|C"),
        ("(500) Days of Summer | directed by | Marc Webb (1974)", None),
        ("(A) | b | (C)", "(A)|b|(C)"),
        ("**A** | *b* | `C`", "A|b|C"),
        ("**A | b | C**", "A|b|C"),
        ("\"A\" | 'b' | “C”", "A|b|C"),
        ('"A" and "B" | are | "letters"', '"A" and "B"|are|letters'),
        ("'Tis Pity | by | John Ford", "'Tis Pity|by|John Ford"),
        ("Subject: A | Predicate: b | Object: C", "A|b|C"),
        ("Alien: Covenant | is | film", "Alien: Covenant|is|film"),
        (r"a\|b | is | text", "a|b|is|text"),
        ("A ｜ b ｜ C", "A|b|C"),
        ("1984 | written by | George Orwell", None),
        ("Dr. Who | is | series", None),
        ("2. Bundesliga | is | league", None),
        ("7 Up | is | drink", None),
        ("A. A. Milne | wrote | Pooh", None),
        ("A | is | x | y", "A|is x|y"),
    ],
)
def test_r01_pipes(line: str, expected: str | None) -> None:
    reading = read_pipes([line], "")
    assert fields(reading) == [expected if expected else line.replace(" | ", "|")]
    assert reading.dropped == 0


@pytest.mark.parametrize(
    ("line", "weight"),
    [
        ("A | b | C [0.9]", 0.9),
        ("A | b | C | [1.0]", 1.0),
        ("(A | b | C) [.25]", 0.25),
        ("A | b | C [1]", None),
        ("A | b | C [2.5]", None),
        ("A | b | [0.5]", None),
    ],
)
def test_r01_weights(line: str, weight: float | None) -> None:
    rows = read_pipes([line], "").rows
    assert [row[3] for row in rows] == ([weight] if line != "A | b | [0.5]" else [])


@pytest.mark.parametrize(
    ("names", "source", "is_numbering"),
    [
        (["1. A", "2. B", "3. C"], "", True),
        (["1) A", "2) B"], "", True),
        (["(1) A", "(2) B"], "", True),
        (["1. A", "2. B", "1. C"], "", True),
        (["1. A"], "", True),
        (["1. A"], "A text about A.", True),
        (["1. FC Köln"], "Der 1. FC Köln ist ein Verein.", False),
        (["1. FC Köln", "2. Bundesliga"], "1. FC Köln plays in the 2. Bundesliga.", False),
        (["1. FC Köln", "1. FC Köln"], "", False),
        (["1. FC Köln", "Köln"], "", False),
        (["1. 1. FC Köln", "2. Köln"], "Der 1. FC Köln", True),
        (["2. A"], "", False),
        (["1984. A"], "", False),
    ],
)
def test_r01_numbers_of_a_list_and_numbers_in_names(
    names: list[str], source: str, is_numbering: bool
) -> None:
    found = [row[0] for row in read_pipes([f"{name} | b | c" for name in names], source).rows]
    assert found == ([name.split(" ", 1)[1] for name in names] if is_numbering else names)


def test_r01_one_pipe_is_a_malformed_triplet() -> None:
    assert read_pipes(["A | b", "prose"], "").dropped == 1


def test_r01_tabs() -> None:
    assert fields(read_tabs(["A, a\tb\tC", "1\t2", "1. D\te\tF"], "")) == ["A, a|b|C", "1. D|e|F"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(A, b, C)", ["A|b|C"]),
        ("(A; b, b; C)", ["A|b, b|C"]),
        ("[A, b, C],", ["A|b|C"]),
        ("1. (A, b, C)", ["A|b|C"]),
        ("(A, b, C), (D; e; F).", ["A|b|C", "D|e|F"]),
        ("(Paris (Texas), is in, USA)", ["Paris (Texas)|is in|USA"]),
        ("(Obama, born in, Honolulu, Hawaii)", ["Obama|born in|Honolulu, Hawaii"]),
        ("(town, has, 1,234 people)", ["town|has|1,234 people"]),
        ("(A,b,C)", ["A|b|C"]),
        ('("Washington, D.C.", is in, "USA")', ["Washington, D.C.|is in|USA"]),
        ("(so called)", []),
        ("(A, b, C", []),
    ],
)
def test_r01_groups(line: str, expected: list[str]) -> None:
    assert fields(read_groups([line])) == expected


def test_r01_weight_of_a_group() -> None:
    rows = read_groups(["(A, b, C) [0.5], (D, e, F)"]).rows
    assert [row[3] for row in rows] == [0.5, None]


def test_r01_long_lines_of_marks_end() -> None:
    for mark in ("-", "|", "(", "()", '"', ", ", "* ", "1. ", "[0.", " "):
        lines = bare_lines(mark * 20_000 + "x")
        read_pipes(lines, ""), read_tabs(lines, ""), read_groups(lines)
