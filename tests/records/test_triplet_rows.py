import pytest

from triax.records.triplet_rows import Reading


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["Paris", "capital of", "France"], ("Paris", "capital of", "France")),
        (["  New\n York ", "is\tin", "US\x00A"], ("New York", "is in", "USA")),
        # The four kinds of surplus in GPT-3.5's triplets of MuSiQue.
        (
            ["Adam Wright", "is", "nephew of", "Alan Jackson"],
            "Adam Wright|is nephew of|Alan Jackson",
        ),
        (
            ["Mississippi River", "joins", "Ohio River", "at the city of", "Cairo, Illinois"],
            "Mississippi River|joins Ohio River at the city of|Cairo, Illinois",
        ),
        (["Cubs", "won", "championships in", "1907", ""], "Cubs|won championships in|1907"),
        (["A", "", "b", "C"], "A|b|C"),
    ],
)
def test_r01_fields(fields: list[str], expected: object) -> None:
    reading = Reading()
    reading.add(fields)
    wanted = tuple(expected.split("|")) if isinstance(expected, str) else expected
    assert reading.rows == [(*wanted, None)]
    assert reading.dropped == 0


def test_r01_with_commas_the_rest_is_the_object() -> None:
    reading = Reading()
    reading.add(["Obama", "born in", "Honolulu", "Hawaii"], 0.5, has_commas=True)
    assert reading.rows == [("Obama", "born in", "Honolulu, Hawaii", 0.5)]


@pytest.mark.parametrize(
    "fields",
    [[], ["Domitian", "assassinated"], ["A", "", "C"], ["A", "b", " \x07"], ["A", "", "b", ""]]
    + [["A", "b", dashes] for dashes in ("-", "—", "...", "…")],
)
def test_r01_malformed_rows_are_counted(fields: list[str]) -> None:
    reading = Reading()
    reading.add(fields)
    assert (reading.rows, reading.dropped) == ([], 1)


@pytest.mark.parametrize(
    "fields",
    [
        ["subject", "predicate", "object"],
        ["Subject", "Relation", "Object"],
        ["<subject>", "<predicate>", "<object>"],
        ["Triplets (subject", "predicate", "object):"],
        ["head", "relation", "tail"],
    ],
)
def test_r01_headers_are_no_triplets(fields: list[str]) -> None:
    reading = Reading()
    reading.add(fields)
    assert (reading.rows, reading.dropped) == ([], 0)


@pytest.mark.parametrize(
    "fields",
    [["!!!", "plays", "dance-punk"], ["What's Up, Doc?", "released in", "1972"], ["C", "?", "?x"]],
)
def test_r25_marks_that_are_names(fields: list[str]) -> None:
    reading = Reading()
    reading.add(fields)
    assert reading.rows == [(*fields, None)]
