import pytest

from triax.reasoning.comparison import (
    OPERATORS,
    compare,
    count_items,
    is_same,
    parse_date,
    parse_number,
)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("12 June 1516", (1516, 6, 12)),
        ("June 12, 1516", (1516, 6, 12)),
        ("3rd March 1899", (1899, 3, 3)),
        ("Sept. 4, 1920", (1920, 9, 4)),
        ("June 1950", (1950, 6, 0)),
        ("c. 1820", (1820, 0, 0)),
        ("released 1950 in France", (1950, 0, 0)),
        ("44 BC", (-44, 0, 0)),
        ("2005-03-04", (2005, 3, 4)),
        ("19th century", (1800, 0, 0)),
        ("2nd century BC", (-200, 0, 0)),
        ("March 4, 2005 (Japan)", (2005, 3, 4)),
        ("1,234,567", None),
        ("Paris", None),
        ("", None),
    ],
)
def test_dates_in_words_and_digits(text, date):
    assert parse_date(text) == date


def test_dates_order_within_a_year():
    assert parse_date("3 March 1950") < parse_date("March 4, 1950") < parse_date("1951")
    assert parse_date("44 BC") < parse_date("AD 100")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,234 people", 1234.0), ("3.5 million", 3.5e6), ("two", 2.0), ("-4", -4.0), ("none", None)],
)
def test_numbers(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("American", "United States", True),
        ("the United States", "USA", True),
        ("Italian", "Italy", True),
        ("India", "Indian", True),
        ("Japanese", "Japan", True),
        ("British", "English", True),
        ("French, Belgian", "Belgium", True),
        ("Austria", "Australia", False),
        ("Iran", "Iraq", False),
        ("Niger", "Nigeria", False),
        ("Norwegian", "Norway", True),
        ("Swedish", "Norway", False),
    ],
)
def test_a_people_is_its_country(left, right, same):
    assert is_same(left, right) is same
    assert is_same(right, left) is same


def test_lists_are_counted():
    assert count_items("Joel Coen and Ethan Coen") == 2
    assert count_items("A, B and C") == 3
    assert count_items("Alan Smithee") == 1


def test_earlier_and_later():
    dates = {"Vertigo": ["13 August 1899"], "Stalker": ["4 April 1932"]}
    assert compare("min", dates) == "Vertigo"
    assert compare("max", dates) == "Stalker"


def test_numbers_where_there_are_no_dates():
    assert compare("max", {"Oslo": ["7 bridges"], "Rome": ["12 bridges"]}) == "Rome"


def test_who_lived_longer():
    lives = {
        "Giuseppe Cesari": ["14 February 1568", "3 July 1640"],
        "Nicos Poulantzas": ["21 September 1936", "3 October 1979"],
    }
    assert compare("longest", lives) == "Giuseppe Cesari"


def test_same_country():
    assert compare("same", {"A": ["American"], "B": ["United States"]}) == "yes"
    assert compare("same", {"A": ["American"], "B": ["French"]}) == "no"


def test_more_directors():
    assert compare("more", {"A": ["Joel Coen and Ethan Coen"], "B": ["Tarkovsky"]}) == "A"


@pytest.mark.parametrize(
    "values", [{"A": ["1950"]}, {"A": ["1950"], "B": []}, {"A": ["x"], "B": ["y"]}]
)
def test_what_cannot_be_compared_is_none(values):
    assert compare("min", values) is None


def test_an_unknown_operator_is_named():
    with pytest.raises(ValueError, match="'median'.*known"):
        compare("median", {"A": ["1"], "B": ["2"]})
    assert set(OPERATORS) == {"min", "max", "longest", "more", "same"}
