"""Comparison questions without a language model: dates, numbers and places, compared as such.

The operators are those of 2WikiMultihopQA's comparison questions (Ho et al. 2020, section 3.2).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from os.path import commonprefix

from triax.records.text import normalise

Date = tuple[float, float, float]
_NAMES = (
    "january february march april may june july august september october november december"
).split()
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_DAY_MONTH = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\s+([a-z]+)\.?,?\s+(?:of\s+)?(\d{3,4})\b")
_MONTH_DAY = re.compile(r"\b([a-z]+)\.?\s+(\d{1,2})(?:st|nd|rd|th)?\s*,?\s+(\d{3,4})\b")
_MONTH_YEAR = re.compile(r"\b([a-z]+)\.?,?\s+(\d{3,4})\b")
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_YEAR = re.compile(r"(?<![\d,.])(\d{1,4})(?![\d,]*\d)(?:\s*(bc|bce))?\b")
_CENTURY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\s+century(?:\s*(bc|bce))?\b")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
# Names of peoples whose first letters are not those of the country.
_COUNTRIES = {
    "american": "united states",
    "british": "united kingdom",
    "english": "united kingdom",
    "england": "united kingdom",
    "scottish": "united kingdom",
    "scotland": "united kingdom",
    "welsh": "united kingdom",
    "wales": "united kingdom",
    "dutch": "netherlands",
    "holland": "netherlands",
    "french": "france",
    "norwegian": "norway",
    "portuguese": "portugal",
    "german": "germany",
    "spanish": "spain",
    "irish": "ireland",
    "swiss": "switzerland",
    "danish": "denmark",
    "finnish": "finland",
    "swedish": "sweden",
    "polish": "poland",
    "turkish": "turkey",
    "czech": "czech republic",
    "greek": "greece",
    "chinese": "china",
    "thai": "thailand",
    "filipino": "philippines",
    "soviet": "russia",
    "soviet union": "russia",
    "ussr": "russia",
    "us": "united states",
    "usa": "united states",
    "united states of america": "united states",
    "uk": "united kingdom",
    "great britain": "united kingdom",
}

_ENDINGS = frozenset(("", *"a e i n o y s an ean ian ish ese ni um ia".split()))
_DISTINCT = ({"niger", "nigeria"},)


def parse_date(text: str) -> Date | None:
    """(year, month, day) of a date in words or digits; 0 for what is not said. Years BC are < 0."""
    text = text.lower().replace("\xa0", " ")
    for pattern, order in ((_DAY_MONTH, (2, 1, 0)), (_MONTH_DAY, (2, 0, 1))):
        for found in pattern.finditer(text):
            year, month, day = (found.groups()[place] for place in order)
            if month in _MONTHS:
                return float(year), float(_MONTHS[month]), float(day)
    if found := _ISO.search(text):
        return float(found[1]), float(found[2]), float(found[3] or 0)
    for found in _MONTH_YEAR.finditer(text):
        if found[1] in _MONTHS:
            return float(found[2]), float(_MONTHS[found[1]]), 0.0
    if found := _CENTURY.search(text):
        year = 100.0 * (int(found[1]) - 1)
        return (-100.0 * int(found[1]) if found[2] else year), 0.0, 0.0
    years = [(one[1], one[2]) for one in _YEAR.finditer(text) if one[2] or len(one[1]) >= 3]
    if years:
        year, era = years[0]
        return (-float(year) if era else float(year)), 0.0, 0.0
    return None


def parse_number(text: str) -> float | None:
    """The first number of a text, with `million` and the like behind it."""
    text = text.lower()
    if found := _NUMBER.search(text):
        value = float(found[0].replace(",", ""))
        scale = re.match(r"\s*([a-z]+)", text[found.end() :])
        return value * _SCALES.get(scale[1], 1.0) if scale else value
    words = re.findall(r"[a-z]+", text)
    return next((float(_WORDS.index(word)) for word in words if word in _WORDS), None)


def is_same(left: str, right: str) -> bool:
    """Whether two values name the same thing; a people counts as its country.

    Lists share something: `American, British` and `United Kingdom` are the same.
    """
    ours, theirs = ({_country(one) for one in _items(text)} for text in (left, right))
    return any(_alike(a, b) for a in ours for b in theirs)


def count_items(text: str) -> int:
    """How many things a list such as `A, B and C` names."""
    return len(_items(text))


def compare(operator: str, values: Mapping[str, Sequence[str]]) -> str | None:
    """The answer to a comparison; None where the values do not allow it.

    Args:
        operator: `min` and `max` give the name whose value is the least or greatest (dates, else
            numbers), `longest` that whose two dates are furthest apart, `more` that with most
            items, `same` gives yes or no.
        values: what was found for each of the compared names, in the order of the question.

    Raises:
        ValueError: the operator is unknown.
    """
    if operator not in OPERATORS:
        raise ValueError(f"no operator {operator!r}; known: {sorted(OPERATORS)}")
    if len(values) < 2 or not all(found and all(found) for found in values.values()):
        return None
    return OPERATORS[operator](values)


def _extreme(
    choose: Callable[..., str],
) -> Callable[[Mapping[str, Sequence[str]]], str | None]:
    def pick(values: Mapping[str, Sequence[str]]) -> str | None:
        for parse in (parse_date, parse_number):
            parsed = {name: parse(found[-1]) for name, found in values.items()}
            if all(value is not None for value in parsed.values()):
                return choose(parsed, key=lambda name: parsed[name])
        return None

    return pick


def _longest(values: Mapping[str, Sequence[str]]) -> str | None:
    spans = {}
    for name, found in values.items():
        dates = [parse_date(text) for text in found[:2]]
        if len(dates) < 2 or dates[0] is None or dates[1] is None:
            return None
        spans[name] = _days(dates[1]) - _days(dates[0])
    return max(spans, key=lambda name: spans[name])


def _more(values: Mapping[str, Sequence[str]]) -> str | None:
    counts = {name: count_items(found[-1]) for name, found in values.items()}
    return max(counts, key=lambda name: counts[name])


def _same(values: Mapping[str, Sequence[str]]) -> str | None:
    first, second, *_ = (found[-1] for found in values.values())
    return "yes" if is_same(first, second) else "no"


OPERATORS: dict[str, Callable[[Mapping[str, Sequence[str]]], str | None]] = {
    "min": _extreme(min),
    "max": _extreme(max),
    "longest": _longest,
    "more": _more,
    "same": _same,
}


def _days(date: Date) -> float:
    return 365.25 * date[0] + 30.44 * date[1] + date[2]


def _items(text: str) -> list[str]:
    parts = re.split(r",|;|/|\band\b|&", text)
    return [part.strip() for part in parts if part.strip()]


def _country(text: str) -> str:
    plain = normalise(re.sub(r"^(the)\s+", "", text.strip(), flags=re.IGNORECASE))
    return _COUNTRIES.get(plain, plain)


def _alike(left: str, right: str) -> bool:
    """Italian and Italy, Belgian and Belgium, Japanese and Japan; not Austria and Australia."""
    if left == right:
        return True
    stem = commonprefix((left, right))
    endings = {left[len(stem) :], right[len(stem) :]}
    return len(stem) >= 3 and endings <= _ENDINGS and {left, right} not in _DISTINCT
