"""Triplets in lines: `s | p | o`, tabs, or groups in brackets, under marks of every kind (R1)."""

import re

from triax.records.text import normalise
from triax.records.triplet_rows import FIELD_NAMES, Reading

_HEADER = re.compile(
    r"[#*\s]*(?:[a-z]+ ){0,3}(?:tripl(?:e|et)s?|output)\**\s*:\**\s*", re.IGNORECASE
)
_RULE = re.compile(r"[\s|:+=-]+")
_BULLET = re.compile(r"(?:[-*–—]\s+|[•‣▪●◦]\s*)")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s+")
_WEIGHT = re.compile(r"\[\s*(0?\.\d{1,9}|1\.0{1,9})\s*\]")
_LABEL = re.compile(r"(\w+)\s*:\s+(?=\S)")
_PIPE = re.compile(r"(?<!\\)[|｜]")
_TAB = re.compile("\t")
_COMMA = re.compile(r'(?:"[^"]*"|,(?=\S)|[^,])+')
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`", "*": "*"}


def bare_lines(text: str, *, is_cut: bool = False) -> list[str]:
    """The lines of a text without bullets and headers such as `Triples:`, fences and table rules.

    With `is_cut`, a last line that has no end is left out.
    """
    lines = text.split("\n")
    if is_cut:
        lines.pop()
    bare = []
    for line in map(str.strip, lines):
        if header := _HEADER.match(line):
            line = line[header.end() :]
        if bullet := _BULLET.match(line):
            line = line[bullet.end() :].strip()
        if line and not line.startswith("```") and not _RULE.fullmatch(line):
            bare.append(line)
    return bare


def read_pipes(lines: list[str], source: str) -> Reading:
    """Reads `s | p | o` lines; `source` tells names such as "1. FC Köln" from numbering."""
    return _read_separated([line for line in lines if _PIPE.search(line)], _PIPE, source)


def read_tabs(lines: list[str], source: str) -> Reading:
    """Reads lines of three fields with tabs between them; `source` as in `read_pipes`."""
    return _read_separated([line for line in lines if line.count("\t") >= 2], _TAB, source)


def _read_separated(lines: list[str], separator: re.Pattern[str], source: str) -> Reading:
    reading = Reading()
    numbers = [_NUMBER.match(line) for line in lines]
    if _is_numbering(numbers, source):
        lines = [line[number.end() :] for line, number in zip(lines, numbers) if number]
    for line in lines:
        line, weight = _split_weight(line)
        fields = [_strip_marks(field) for field in separator.split(_unwrap(line))]
        while fields and not fields[-1]:
            fields.pop()
        while fields and not fields[0]:
            fields.pop(0)
        reading.add((field.replace("\\|", "|") for field in _without_labels(fields)), weight)
    return reading


def _is_numbering(numbers: list[re.Match[str] | None], source: str) -> bool:
    """All lines are numbered, by 1, 2, 3 (or again from 1), and not by names of the source."""
    values = [int(number[1]) for number in numbers if number]
    if not values or len(values) < len(numbers) or values[0] != 1:
        return False
    if any(value not in (1, before + 1) for before, value in zip(values, values[1:])):
        return False
    if len(values) > 1 and max(values) == 1:
        return False
    names = [_PIPE.split(_TAB.split(number.string)[0])[0] for number in numbers if number]
    source = normalise(source)
    return not all(normalise(name) in source for name in names)


def read_groups(lines: list[str]) -> Reading:
    """Reads lines that begin with `(s, p, o)`, `(s; p; o)` or `[s, p, o]`, one or more a line."""
    reading = Reading()
    for line in lines:
        if number := _NUMBER.match(line):
            line = line[number.end() :]
        while line[:1] in ("(", "["):
            end = _closing(line)
            if end < 0:
                break
            group, line = line[1:end], line[end + 1 :].lstrip(" ,;.")
            weight = None
            if found := _WEIGHT.match(line):
                weight, line = float(found[1]), line[found.end() :].lstrip(" ,;.")
            has_semicolons = group.count(";") >= 2
            fields = group.split(";") if has_semicolons else _COMMA.findall(group)
            if len(fields) < 3:
                fields = group.split(",")
            if len(fields) >= 3:
                stripped = _without_labels([_strip_marks(field) for field in fields])
                reading.add(stripped, weight, has_commas=not has_semicolons)
    return reading


def _split_weight(line: str) -> tuple[str, float | None]:
    line = line.rstrip()
    found = _WEIGHT.fullmatch(line, max(line.rfind("["), 0))
    rest = line[: found.start()].rstrip(" \t|,;") if found else ""
    return (rest, float(found[1])) if found and rest else (line, None)


def _unwrap(line: str) -> str:
    """The inside of a line that is one pair of brackets from end to end."""
    inner = line.rstrip(" ,;.")
    return inner[1:-1] if inner[:1] in ("(", "[") and _closing(inner) == len(inner) - 1 else line


def _closing(line: str) -> int:
    """Where the bracket that opens a line closes; -1 if it does not."""
    opener, closer = line[0], {"(": ")", "[": "]"}[line[0]]
    depth = 0
    for position, character in enumerate(line):
        depth += (character == opener) - (character == closer)
        if not depth:
            return position
    return -1


def _strip_marks(field: str) -> str:
    """A field without bold, code and quotation marks around it."""
    field = field.strip()
    for mark in ("**", "`"):
        field = field.removeprefix(mark).removesuffix(mark).strip()
    closer = _PAIRS.get(field[:1])
    if closer and len(field) > 2 and field.endswith(closer):
        inner = field[1:-1]
        if closer not in inner and field[0] not in inner:
            return inner.strip()
    return field


def _without_labels(fields: list[str]) -> list[str]:
    """`Subject: s`, `Predicate: p`, `Object: o` without the labels, if all three have theirs."""
    labels = [_LABEL.match(field) for field in fields]
    if len(fields) == 3 and all(
        label and label[1].casefold() in names for label, names in zip(labels, FIELD_NAMES)
    ):
        return [field[label.end() :] for field, label in zip(fields, labels) if label]
    return fields
