"""Lessons for a decoder: a short prompt and the text that is to be written.

Four assignments, told apart by the system text: decompose, resolve, answer and extract. Read from
the normalised data sets (one JSON object a line, see their README); every choice is drawn from the
row's own id, so that the lessons of a row are the same in every run.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from triax.records.files import read_jsonl
from triax.records.lesson_prompts import (
    NOT_FOUND,
    Assignment,
    answer_prompt,
    cut_words,
    decompose_prompt,
    extract_prompt,
    first_words,
    read_prompt,
    resolve_prompt,
)
from triax.records.query_triplets import QueryTriplet
from triax.training.lessons.decompositions import lesson_of, lessons_of
from triax.training.lessons.slots import Passage, holds, read_slots

Row = Mapping[str, Any]
# What the configurations `written` show of a passage to the solver, the reader and the extractor.
RESOLVE_WORDS, READ_WORDS, EXTRACT_WORDS = 60, 60, 90
NUM_PASSAGES = 3
MAX_TRIPLETS = 6
MAX_QUERIES = 4
_PLACEHOLDER = re.compile(r"(?<!\S)\?\w+(?!\S)")


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing to be learnt. `source` is the data set, or the run, that it was made from."""

    assignment: Assignment
    prompt: str
    target: str
    source: str
    id: str


def read_lessons(
    data: Path, split: str, assignment: Assignment, max_each: int | None = None
) -> list[Lesson]:
    """The lessons of one assignment.

    Args:
        data: the folder of the data sets; one that lacks some of them gives what it has.
        split: "train" or "dev".
        assignment: which of the four.
        max_each: the most lessons of one data set, chosen by the hash order of their rows' ids.

    Raises:
        FileNotFoundError: there is none of the data sets.
    """
    lessons: list[Lesson] = []
    for name, build in BUILDERS[assignment].items():
        if (data / name / f"{split}.jsonl.gz").is_file():
            found = list(build(data, split))
            if max_each is not None and len(found) > max_each:
                keep = sorted(range(len(found)), key=lambda n: _draw(found[n].id).random())
                found = [found[n] for n in sorted(keep[:max_each])]
            lessons += found
    if not lessons:
        raise FileNotFoundError(
            f"{data} has no {split}.jsonl.gz with lessons for {assignment!r} in any of "
            f"{sorted(BUILDERS[assignment])}; set TRIAX_DATA, or paths.data, to the data folder"
        )
    return lessons


def mixed(lessons: Sequence[Lesson], weights: Mapping[str, float]) -> list[Lesson]:
    """Each source's lessons as often as its weight says; a part of them is one in hash order.

    Raises:
        ValueError: a weight is given for a source that has no lesson.
    """
    of_source: dict[str, list[Lesson]] = {}
    for lesson in lessons:
        of_source.setdefault(lesson.source, []).append(lesson)
    if unknown := sorted(weights.keys() - of_source.keys()):
        raise ValueError(f"no lessons come from {unknown}; there are {sorted(of_source)}")
    chosen: list[Lesson] = []
    for source, found in of_source.items():
        order = sorted(found, key=lambda one: _draw(one.id).random())
        count = round(weights.get(source, 1.0) * len(order))
        chosen += [order[n % len(order)] for n in range(count)]
    return chosen


def canonical_names(triplets: Iterable[Sequence[str]]) -> list[tuple[str, str, str]]:
    """The same triplets with placeholders ?a, ?b, ... in the order in which they first stand.

    >>> canonical_names([("Brand", "author", "?1"), ("?1", "citizen of", "?2")])
    [('Brand', 'author', '?a'), ('?a', 'citizen of', '?b')]
    """
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"?{chr(ord('a') + len(names))}")

    def renamed(field: str) -> str:
        return _PLACEHOLDER.sub(name, field)

    return [
        (renamed(subject), renamed(predicate), renamed(object))
        for subject, predicate, object in triplets
    ]


def written(triplets: Iterable[Sequence[str]]) -> str:
    """Triplets as lines `subject | predicate | object`."""
    return "\n".join(" | ".join(fields) for fields in triplets)


def _decompositions(name: str, data: Path, split: str) -> Iterator[Lesson]:
    """Questions whose triplets fit the grammar of the decoder."""
    rows = read_jsonl(data / name / f"{split}.jsonl.gz")
    # ProbTree's 2Wiki questions say in other words what 2Wiki's own say.
    for one in lessons_of(row for row in rows if row["source"] != "probtree_2wiki"):
        if len(one.triplets) <= MAX_QUERIES:
            target = written(canonical_names(one.triplets))
            yield Lesson("decompose", decompose_prompt(one.question), target, name, one.question)


def _slots(name: str, folder: Path, split: str) -> Iterator[Lesson]:
    """Query triplets with passages of which one has the value, or none has.

    In one of four the passage with the value is not shown. A source without wrong passages of its
    own gets those of the lessons after it.
    """
    found = [one for one in read_slots(folder, name, split) if " | " in one.query]
    for number, one in enumerate(found):
        random_ = _draw(one.id)
        near = [found[(number + step) % len(found)] for step in range(1, 6)]
        others = list(one.wrong or dict.fromkeys(x for each in near for x in each.answered))
        others = [other for other in others if not holds(other, one.answers)]
        random_.shuffle(others)
        is_absent = not one.answered or random_.random() < 0.25
        shown = [] if is_absent else [_shown(one.answered[0])]
        values = [answer for answer in one.answers for text in shown if answer in text]
        if not is_absent and not values:
            continue
        shown += [_shown(other) for other in others[: NUM_PASSAGES - len(shown)]]
        random_.shuffle(shown)
        prompt = resolve_prompt(QueryTriplet.parse(*one.query.split(" | ")), shown)
        yield Lesson("resolve", prompt, values[0] if values else NOT_FOUND, name, one.id)


def _shown(passage: Passage) -> str:
    return passage_text(passage.title, passage.text, RESOLVE_WORDS)


def _chain_answers(rows: Iterable[Row]) -> Iterator[Lesson]:
    """MuSiQue questions from the triplets of their steps, with the answers put in."""
    for row in rows:
        lesson = lesson_of(row)
        answers = [part["answer"] for part in row["decomposition"]]
        if lesson is None or len(lesson.triplets) != len(answers):
            continue
        bindings = {f"?{number}": answer for number, answer in enumerate(answers, 1)}
        prompt = answer_prompt(row["question"], _filled(lesson.triplets, bindings))
        yield Lesson("answer", prompt, row["answer"], row["dataset"], row["id"])


def _filled(triplets: Iterable[Sequence[str]], bindings: Mapping[str, str]) -> list[str]:
    """Triplets as facts, with values where placeholders stood."""
    return [
        " | ".join(_PLACEHOLDER.sub(lambda one: bindings[one[0]], field) for field in fields)
        for fields in triplets
    ]


def _comparisons(rows: Iterable[Row]) -> Iterator[Lesson]:
    """2Wiki's comparisons, with drawn values that make the gold answer true.

    The data set does not give the compared values. What is to be learnt is comparing, for which
    any dates or countries do, and values that nobody could know teach to use the facts.
    """
    for row in rows:
        operation, triplets = row.get("query_op"), row.get("query_triples") or []
        if operation not in ("min", "max", "same") or len(triplets) not in (2, 4):
            continue
        random_ = _draw(row["id"])
        values = _values(row, operation, random_)
        if values is None:
            continue
        half = len(triplets) // 2
        bindings: dict[str, str] = {}
        for number, value in enumerate(values):
            side = triplets[half * number : half * (number + 1)]
            bindings[side[-1][2]] = value
            if half == 2:
                bindings[side[0][2]] = _name(random_)
        prompt = answer_prompt(row["question"], _filled(triplets, bindings))
        yield Lesson("answer", prompt, row["answer"], row["dataset"], row["id"])


def _values(row: Row, operation: str, random_: random.Random) -> tuple[str, str] | None:
    """Two values of which the operation takes the gold answer; None where it does not say."""
    triplets, answer = row["query_triples"], row["answer"]
    if operation == "same":
        if answer.casefold() not in ("yes", "no"):
            return None
        first, second = random_.sample(_COUNTRIES, 2)
        return (first, first) if answer.casefold() == "yes" else (first, second)
    sides = [triplets[0][0], triplets[len(triplets) // 2][0]]
    if answer not in sides:
        return None
    years = sorted(random_.sample(range(1850, 2015), 2), reverse=operation == "max")
    if sides[1] == answer:
        years.reverse()
    first, second = (_date(year, random_) for year in years)
    return first, second


def _read(rows: Iterable[Row]) -> Iterator[Lesson]:
    """Questions from passages, of which the supporting ones are shown with one that is not."""
    for row in rows:
        if not row["paragraphs"] or not row["answer"]:
            continue
        random_ = _draw(row["id"])
        shown = [one for one in row["paragraphs"] if one["is_supporting"]]
        others = [one for one in row["paragraphs"] if not one["is_supporting"]]
        random_.shuffle(others)
        texts = [
            passage_text(one["title"], one["text"], READ_WORDS)
            for one in (shown + others)[:NUM_PASSAGES]
        ]
        is_said = row["answer"] in ("yes", "no") or any(row["answer"] in text for text in texts)
        if not is_said:
            continue
        random_.shuffle(texts)
        prompt = read_prompt(row["question"], texts)
        yield Lesson("answer", prompt, row["answer"], row["dataset"], row["id"])


def _extractions(rows: Iterable[Row]) -> Iterator[Lesson]:
    """Passages with their triplets, of which those are kept whose names stand in what is shown."""
    for row in rows:
        title, text = row["title"], row["text"]
        passage = first_words(f"{title}\n{text}" if title else text, EXTRACT_WORDS)
        found: dict[tuple[str, str, str], int] = {}
        for triplet in row["triples"]:
            fields = tuple(" ".join(str(triplet[key] or "").split()) for key in "spo")
            places = [passage.find(fields[0]), passage.find(fields[2])]
            if all(fields) and min(places) >= 0 and not any("|" in field for field in fields):
                found.setdefault(fields, max(places))
        # In the order of reading, as far as one passage has more than the model may write.
        triplets = sorted(found, key=found.__getitem__)[:MAX_TRIPLETS]
        if triplets:
            yield _lesson("extract", row, extract_prompt(passage), triplets)


def _lesson(
    assignment: Assignment, row: Row, prompt: str, triplets: Iterable[Sequence[str]]
) -> Lesson:
    return Lesson(assignment, prompt, written(canonical_names(triplets)), row["dataset"], row["id"])


def passage_text(title: str | None, text: str, max_words: int) -> str:
    """A passage as a prompt shows it; its title counts among the words."""
    return cut_words(f"{title}\n{text}" if title else text, max_words)


def _draw(id_: str) -> random.Random:
    return random.Random(f"lessons/{id_}")


def _name(random_: random.Random) -> str:
    return f"{random_.choice(_FIRST)} {random_.choice(_LAST)}"


def _date(year: int, random_: random.Random) -> str:
    if random_.random() < 0.3:
        return str(year)
    return f"{random_.randint(1, 28)} {random_.choice(_MONTHS)} {year}"


_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_COUNTRIES = (
    "France Germany Italy Spain India Japan China Brazil Canada Mexico Poland Sweden Norway Egypt "
    "Turkey Greece Austria Ireland Australia Argentina"
).split()
_FIRST = "Anna Carl Diego Elena Farid George Hana Ivan Julia Kenji Lena Marco Nora Omar".split()
_LAST = "Adler Becker Costa Duarte Eklund Fischer Grant Horvat Ito Jensen Kaur Lopez Moreau".split()

Builder = Callable[[Path, str], Iterator[Lesson]]


def _of_rows(name: str, build: Callable[[list[Row]], Iterator[Lesson]]) -> tuple[str, Builder]:
    return name, lambda data, split: build(list(read_jsonl(data / name / f"{split}.jsonl.gz")))


# By assignment and data set.
BUILDERS: dict[Assignment, dict[str, Builder]] = {
    "decompose": {
        name: partial(_decompositions, name)
        for name in (
            "2wikimultihopqa_qa",
            "2wikimultihopqa",
            "musique",
            "probtree_decomposition",
            "hotpotqa_qa",
            "hotpotqa",
            "break_qdmr",
            "popqa_qa",
            "entity_questions",
        )
    },
    "resolve": {
        name: partial(_slots, name)
        for name in ("popqa", "musique", "2wikimultihopqa", "silver_openie", "redocred", "fewrel")
    },
    "answer": dict(
        [
            _of_rows("musique", _chain_answers),
            _of_rows("2wikimultihopqa_qa", _comparisons),
            _of_rows("hotpotqa", _read),
            _of_rows("nq_oracle", _read),
        ]
    ),
    "extract": dict(_of_rows(name, _extractions) for name in ("redocred", "silver_openie", "carb")),
}
