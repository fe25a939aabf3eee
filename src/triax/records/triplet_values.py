"""Triplets in JSON: lists of lists, or objects with named fields (R1)."""

import re

from triax.records.json_text import UnclosedList, UnclosedObject, read_json
from triax.records.triplet_lines import read_pipes
from triax.records.triplet_rows import FIELD_NAMES, Reading

_LISTS = re.compile(r"tripl(?:e|et)s?|relations|relationships|facts|edges")
_WEIGHTS = frozenset({"confidence", "weight", "score", "probability"})
_TEXT_STARTS = re.compile(r"[\[{(\s]*[\"'\u201c]")


def read_values(text: str) -> Reading:
    """Collects the rows of all JSON values of a text, in reading order.

    A value behind a pipe in its line is a field of that line and is passed over. A row that the
    text ends in is left out, whole or not.
    """
    reading = Reading()
    for start, value in read_json(text):
        if "|" in text[text.rfind("\n", 0, start) + 1 : start]:
            continue
        if isinstance(value, UnclosedList | UnclosedObject):
            if not value and not _TEXT_STARTS.match(text, start):
                continue
            reading.is_cut = True
        reading.is_sound = reading.is_sound or reading.is_cut or not value
        _walk(value, reading)
    return reading


def _walk(value: object, reading: Reading) -> None:
    """Collects the rows of one value, whose depth `read_json` bounds."""
    if isinstance(value, list):
        _walk_list(value, reading)
    elif isinstance(value, dict):
        named = {str(key).strip().casefold(): inner for key, inner in value.items()}
        parts = [next((named[n] for n in named if n in names), None) for names in FIELD_NAMES]
        if sum(part is not None for part in parts) >= 2:
            if not isinstance(value, UnclosedObject):
                weights = [named[name] for name in named if name in _WEIGHTS]
                reading.add(map(_field, parts), _weight(weights[0]) if weights else None)
            return
        lists = [named[name] for name in named if _LISTS.fullmatch(name.split("_")[-1])]
        reading.is_sound = reading.is_sound or any(isinstance(inner, list) for inner in lists)
        for inner in lists or named.values():
            if lists or isinstance(inner, dict) or _has_rows(inner):
                _walk(inner, reading)


def _walk_list(value: list[object], reading: Reading) -> None:
    texts = [item for item in value if isinstance(item, str)]
    if texts and all(text.count("|") >= 2 for text in texts):
        inner = read_pipes(texts, "")
        reading.rows += inner.rows
        reading.dropped += inner.dropped
    elif _has_rows(value):
        for item in value:
            _walk(item, reading)
            reading.dropped += not isinstance(item, list | dict)
    elif isinstance(value, UnclosedList):
        return
    elif texts:
        weight = None
        if len(value) == 4 and isinstance(value[3], float):
            weight = _weight(value[3])
        reading.add(map(_field, value if weight is None else value[:3]), weight)
    elif value and all(item is None for item in value):
        reading.dropped += 1


def _has_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list | dict)


def _field(value: object) -> str:
    """The text of a field: numbers as written, a list joined, an object's name, null as ""."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(filter(None, map(_field, value)))
    if isinstance(value, dict):
        return next((_field(value[key]) for key in ("name", "text", "value") if key in value), "")
    return "" if value is None else str(value)


def _weight(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)
