"""The text form of triplets: one tolerant grammar for what models write (R1).

The first form that gives anything is the form of the whole text:

1. JSON: `{"triples": [[s, p, o], ...]}` (or `triplets`), a list of lists, one list a line, or
   objects `{subject, predicate, object}`, `{head, relation, tail}`, `{s, p, o}`;
2. lines `s | p | o`, also as table rows, in brackets, and with `<s> | <p> | <o>`;
3. lines with tabs;
4. lines `(s, p, o)`, `(s; p; o)`, `[s, p, o]`.

A part with fewer than three non-empty fields is malformed: dropped and counted. With more than
three, the first field is the subject, the last the object and all between the predicate, which
leaves the proposition as it was written and made the object a name in 113 of the 115 cases that
GPT-3.5 left in 17,419 triplets of MuSiQue. Where commas separate, all beyond the second is the
object, because a comma is more often part of a place or a date.
"""

import re
from dataclasses import dataclass

from triax.records.query_triplets import QueryTriplet
from triax.records.text import clean, normalise
from triax.records.triplet_lines import bare_lines, read_groups, read_pipes, read_tabs
from triax.records.triplet_rows import Reading
from triax.records.triplet_values import read_values
from triax.records.triplets import ExtractionStatus, Triplet

_THINKING = re.compile(r"\s*<think>.*?(</think>|\Z)", re.DOTALL)
_NONE = re.compile(
    r"(?:[\w ]{0,30}tripl(?:e|et)s?\W*:)?\W*(?:none|n/a|no (?:tripl(?:e|et)s|facts)[\w ]{0,40})\W*"
    r"|[\s`]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedTriplets:
    """The triplets of a text. `dropped` counts parts that were meant as triplets but are none."""

    triplets: tuple[Triplet, ...]
    status: ExtractionStatus
    reason: str = ""
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class ParsedQueryTriplets:
    """The query triplets of a text; status and `dropped` as in `ParsedTriplets`."""

    triplets: tuple[QueryTriplet, ...]
    status: ExtractionStatus
    reason: str = ""
    dropped: int = 0


def parse_triplets(text: str, *, is_cut: bool = False, source: str = "") -> ParsedTriplets:
    """Reads triplets; never raises, never evaluates.

    Triplets whose fields are equal after `normalise` are one, the first. A trailing `[0.9]`, a
    number after the object in a JSON list, or a key `confidence` is the triplet's confidence.

    Args:
        text: what a model wrote.
        is_cut: the model was stopped by its token limit; a last line without end is then dropped.
        source: the text that the model read. A lone "1." before a line is a list marker unless
            the source has it there too ("1. FC Köln"); without a source it is a marker.
    """
    reading = _read(text, is_cut, source)
    found: dict[tuple[str, ...], Triplet] = {}
    for *fields, confidence in reading.rows:
        subject, predicate, object = (_without_angles(field) for field in fields)
        triplet = Triplet(subject, predicate, object, confidence)
        found.setdefault(tuple(normalise(field) for field in triplet.fields), triplet)
    status, reason = _judge(reading, text, len(found))
    return ParsedTriplets(tuple(found.values()), status, reason, reading.dropped)


def parse_query_triplets(
    text: str, *, is_cut: bool = False, source: str = ""
) -> ParsedQueryTriplets:
    """Reads query triplets, in which `?` and `?name` are unknown; arguments as `parse_triplets`.

    A field `<the author of X>` beside fields without angle brackets is an unknown that is named
    by its description, as R2Adapter's rewriter writes bridges.
    """
    reading = _read(text, is_cut, source)
    found: dict[tuple[str, ...], QueryTriplet] = {}
    for *fields, _ in reading.rows:
        unwrapped = [_without_angles(field) for field in fields]
        if any(old == new for old, new in zip(fields, unwrapped)):
            unwrapped = [
                new if old == new else "?" + "_".join(re.findall(r"\w+", new))
                for old, new in zip(fields, unwrapped)
            ]
        found.setdefault(tuple(map(normalise, unwrapped)), QueryTriplet.parse(*unwrapped))
    status, reason = _judge(reading, text, len(found))
    return ParsedQueryTriplets(tuple(found.values()), status, reason, reading.dropped)


def _read(text: str, is_cut: bool, source: str) -> Reading:
    text = clean(text)
    if thinking := _THINKING.match(text):
        text = text[thinking.end() :]
        is_cut = is_cut or not thinking[1]
    reading = read_values(text)
    if not (reading.rows or reading.dropped or reading.is_sound):
        lines = bare_lines(text, is_cut=is_cut)
        forms = (read_pipes(lines, source), read_tabs(lines, source), read_groups(lines))
        reading = next((form for form in forms if form.rows or form.dropped), Reading())
        if not (reading.rows or reading.dropped):
            reading.is_sound = not is_cut and _NONE.fullmatch(text) is not None
    reading.is_cut = reading.is_cut or is_cut
    return reading


def _judge(reading: Reading, text: str, count: int) -> tuple[ExtractionStatus, str]:
    reasons = []
    if reading.dropped:
        reasons.append(f"{reading.dropped} malformed parts dropped")
    if reading.is_cut:
        reasons.append("the text ends before its last triplet")
    if count:
        return ("partial" if reasons else "ok"), "; ".join(reasons)
    if reading.is_sound and not reasons:
        return "empty", "the answer holds no triplet"
    start = " ".join(clean(text[:200]).split())[:60]
    reasons.append(f"no triplet in {len(text)} characters that start with {start!r}")
    return "failed", "; ".join(reasons)


def _without_angles(field: str) -> str:
    if field.startswith("<") and field.endswith(">") and field[1:-1].strip(" <>"):
        return field[1:-1].strip()
    return field
