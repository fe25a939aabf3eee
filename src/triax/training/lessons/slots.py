"""Lessons of resolution: a slot to be filled, passages that fill it, and passages that do not.

A query is a triplet with its unknown part written `?`, or a question. Hard cases of "not here" are
made on purpose: the same entity with another relation, the nearest wrong passages by BM25, the
distractors that a data set gives.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from triax.records.files import read_jsonl
from triax.records.readings import shown_passage, shown_slot

Row = dict[str, Any]
Verdict = Literal["span", "yes", "no"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A titled text. A reader sees `shown`, in which the title stands first."""

    title: str
    text: str

    @property
    def shown(self) -> str:
        """Title and text as one string; spans are characters of it."""
        return shown_passage(self.title, self.text)


@dataclass(frozen=True, slots=True)
class SlotLesson:
    """One query. `answered` passages hold an answer, `wrong` ones hold none.

    `verdict` is `span` where an answer is a piece of an answered passage.
    """

    id: str
    source: str
    query: str
    answers: tuple[str, ...]
    answered: tuple[Passage, ...]
    wrong: tuple[Passage, ...] = ()
    verdict: Verdict = "span"


def slot(subject: str, predicate: str, object: str = "?") -> str:
    """The query triplet that asks for the object, or for the part that is given as `?`."""
    return shown_slot(subject, predicate, object)


def occurrences(text: str, answers: Iterable[str], most: int = 8) -> list[tuple[int, int]]:
    """Characters [start, end) of every answer in a text, at word borders, whatever the case.

    Shorter answers inside longer ones that were found at the same place are left out.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose lower case is longer would shift the places
        lowered = "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    found: list[tuple[int, int]] = []
    for answer in sorted({one.strip().lower() for one in answers}, key=lambda one: -len(one)):
        if not answer:
            continue
        pattern = rf"(?<!\w){re.escape(answer)}(?!\w)"
        for match in re.finditer(pattern, lowered):
            start, end = match.span()
            if not any(a <= start and end <= b for a, b in found):
                found.append((start, end))
    return sorted(found)[:most]


def holds(passage: Passage, answers: Iterable[str]) -> bool:
    """Whether an answer stands in the passage's text or title."""
    return bool(occurrences(passage.shown, answers, most=1))


def read_passages(row: Row) -> list[Passage]:
    """The paragraphs of a question row."""
    return [Passage(one["title"] or "", one["text"]) for one in row["paragraphs"]]


def _answers(row: Row) -> tuple[str, ...]:
    # Aliases of one or two letters or signs ("pol", flags) match too much.
    aliases = [one for one in row["answer_aliases"] if len(one) > 2]
    return tuple(dict.fromkeys([row["answer"], *aliases]))


def popqa(folder: Path, split: str) -> Iterator[SlotLesson]:
    """Both the triplet and the question of PopQA; the nearest wrong passages are added later."""
    for row in read_jsonl(folder / "popqa" / f"{split}.jsonl.gz"):
        answers = _answers(row)
        answered = tuple(one for one in read_passages(row)[:1] if holds(one, answers))
        subject, predicate, _ = row["query_triples"][0]
        if answered:
            for number, query in enumerate((slot(subject, predicate), row["question"])):
                yield SlotLesson(f"{row['id']}/{number}", "popqa", query, answers, answered)


_REFERENCE = re.compile(r"#(\d+)")


def filled_steps(row: Row) -> Iterator[tuple[str, str, int | None]]:
    """(query, answer, supporting paragraph) of each step, earlier answers put in.

    `subject >> relation` becomes a query triplet, all else stays a question.
    """
    answers = [step["answer"] for step in row["decomposition"]]

    def fill(text: str) -> str:
        return _REFERENCE.sub(
            lambda match: (
                answers[int(match[1]) - 1] if 0 < int(match[1]) <= len(answers) else match[0]
            ),
            text,
        )

    for step in row["decomposition"]:
        subject, arrow, relation = step["question"].partition(" >> ")
        text = slot(fill(subject), fill(relation)) if arrow else fill(step["question"])
        yield text, step["answer"], step.get("support_idx")


def musique(folder: Path, split: str) -> Iterator[SlotLesson]:
    """The steps of MuSiQue with the distractors of their question."""
    for row in read_jsonl(folder / "musique" / f"{split}.jsonl.gz"):
        passages = read_passages(row)
        for number, (query, answer, place) in enumerate(filled_steps(row)):
            if place is None or not holds(passages[place], [answer]):
                continue
            wrong = tuple(one for one in passages if not holds(one, [answer]))
            yield SlotLesson(
                f"{row['id']}/{number}", "musique", query, (answer,), (passages[place],), wrong
            )


def hotpotqa(folder: Path, split: str) -> Iterator[SlotLesson]:
    """Whole HotpotQA questions: the supporting paragraph with the answer, all others without."""
    for row in read_jsonl(folder / "hotpotqa" / f"{split}.jsonl.gz"):
        passages = read_passages(row)
        titles = {title for title, _ in row["supporting_facts"]}
        answers = _answers(row)
        supporting = [one for one in passages if one.title in titles]
        answered = tuple(one for one in supporting if occurrences(one.text, answers))
        wrong = tuple(one for one in passages if not holds(one, answers))
        if answered and wrong:
            yield SlotLesson(row["id"], "hotpotqa", row["question"], answers, answered, wrong)


def hotpotqa_answers(folder: Path, split: str) -> Iterator[SlotLesson]:
    """HotpotQA questions with all their supporting sentences as one passage; yes and no too."""
    for row in read_jsonl(folder / "hotpotqa" / f"{split}.jsonl.gz"):
        text = " ".join(supporting_sentences(row))
        if not text:
            continue
        verdict: Verdict = row["answer"] if row["answer"] in ("yes", "no") else "span"
        passage = Passage("", text)
        if verdict != "span" or holds(passage, _answers(row)):
            yield SlotLesson(
                f"{row['id']}/answer",
                "hotpotqa_answers",
                row["question"],
                _answers(row),
                (passage,),
                verdict=verdict,
            )


def supporting_sentences(row: Row) -> Iterator[str]:
    """`title: sentence` of each supporting fact of a HotpotQA row that says which sentence."""
    paragraphs = {one["title"]: one for one in row["paragraphs"]}
    for title, number in row["supporting_facts"]:
        paragraph = paragraphs.get(title)
        if number is None or paragraph is None or not paragraph.get("sents"):
            continue
        starts = [*paragraph["sents"], len(paragraph["text"])]
        if number + 1 < len(starts):
            yield f"{title}: {paragraph['text'][starts[number] : starts[number + 1]].strip()}"


def _question_answering(name: str) -> Callable[[Path, str], Iterator[SlotLesson]]:
    def read(folder: Path, split: str) -> Iterator[SlotLesson]:
        for row in read_jsonl(folder / name / f"{split}.jsonl.gz"):
            # A long answer in QED is a whole clause; short ones are what a slot is filled with.
            answers = tuple(one for one in _answers(row) if len(one.split()) <= 12)
            answered = tuple(one for one in read_passages(row)[:1] if holds(one, answers))
            if answered:
                yield SlotLesson(row["id"], name, row["question"], answers, answered)

    return read


def silver_openie(folder: Path, split: str, most: int = 6) -> Iterator[SlotLesson]:
    """Triplets that a model drew from passages: the object, or now and then the subject, is asked.

    A subject that is given with a predicate of another triplet of the passage's neighbour is the
    case "same entity, other relation".
    """
    rows = list(read_jsonl(folder / "silver_openie" / f"{split}.jsonl.gz"))
    for number, row in enumerate(rows):
        generator = np.random.default_rng((1, number))
        passage = Passage(row["title"] or "", row["text"][:1200])
        facts = [one for one in row["triples"] if one["o"] and holds(passage, [one["o"]])]
        other = rows[(number + 1) % len(rows)]["triples"]
        said = {one["p"] for one in row["triples"]}
        chosen = [facts[n] for n in generator.permutation(len(facts))[:most]]
        for place, fact in enumerate(chosen):
            asks_subject = generator.random() < 0.2 and holds(passage, [fact["s"]])
            query = slot("?", fact["p"], fact["o"]) if asks_subject else slot(fact["s"], fact["p"])
            wanted = fact["s"] if asks_subject else fact["o"]
            # All that fills the slot according to the teacher.
            key, given = ("s", "o") if asks_subject else ("o", "s")
            answers = tuple(
                one[key] for one in facts if (one["p"], one[given]) == (fact["p"], fact[given])
            )
            yield SlotLesson(
                f"{row['id']}/{place}", "silver_openie", query, answers or (wanted,), (passage,)
            )
        strange = [one["p"] for one in other if one["p"] not in said]
        if facts and strange:
            query = slot(facts[0]["s"], strange[int(generator.integers(len(strange)))])
            yield SlotLesson(f"{row['id']}/none", "silver_openie", query, (), (), (passage,))


def redocred(folder: Path, split: str, most: int = 5) -> Iterator[SlotLesson]:
    """Relations of Re-DocRED; one that the document has for other entities only is "not here"."""
    for number, row in enumerate(read_jsonl(folder / "redocred" / f"{split}.jsonl.gz")):
        generator = np.random.default_rng((2, number))
        passage = Passage(row["title"] or "", row["text"])
        objects: dict[tuple[str, str], list[str]] = {}
        for fact in row["triples"]:
            objects.setdefault((fact["s"], fact["p"]), []).append(fact["o"])
        asked = [pair for pair, found in objects.items() if holds(passage, found)]
        for place in generator.permutation(len(asked))[:most].tolist():
            answers = tuple(objects[asked[place]])
            yield SlotLesson(
                f"{row['id']}/{place}", "redocred", slot(*asked[place]), answers, (passage,)
            )
        subjects = sorted({subject for subject, _ in objects})
        relations = sorted({relation for _, relation in objects})
        missing = [(s, p) for s in subjects for p in relations if (s, p) not in objects]
        for place in generator.permutation(len(missing))[:2].tolist():
            query = slot(*missing[place])
            yield SlotLesson(f"{row['id']}/none{place}", "redocred", query, (), (), (passage,))


def fewrel(folder: Path, split: str) -> Iterator[SlotLesson]:
    """Sentences with one marked relation; the subject is asked for in every fourth."""
    for number, row in enumerate(read_jsonl(folder / "fewrel" / f"{split}.jsonl.gz")):
        fact = row["triples"][0]
        passage = Passage("", row["text"])
        asks_subject = number % 4 == 3
        query = slot("?", fact["p"], fact["o"]) if asks_subject else slot(fact["s"], fact["p"])
        answer = fact["s"] if asks_subject else fact["o"]
        if holds(passage, [answer]):
            yield SlotLesson(row["id"], "fewrel", query, (answer,), (passage,))


def wikimultihop(folder: Path, split: str) -> Iterator[SlotLesson]:
    """Single steps of 2WikiMultihopQA over its corpus, by the title of the subject."""
    titles: dict[str, list[Passage]] = {}
    for row in read_jsonl(folder / "2wikimultihopqa" / "corpus.jsonl.gz"):
        titles.setdefault(_plain(row["title"]), []).append(Passage(row["title"], row["text"]))
    for row in read_jsonl(folder / "2wikimultihopqa" / f"{split}.jsonl.gz"):
        facts = row["evidences"] or row["evidences_derived"] or []
        for place, (subject, predicate, answer) in enumerate(facts):
            found = titles.get(_plain(subject), [])
            answered = tuple(one for one in found if occurrences(one.text, [answer]))
            if answered:
                yield SlotLesson(
                    f"{row['id']}/{place}",
                    "2wikimultihopqa",
                    slot(subject, predicate),
                    (answer,),
                    answered[:1],
                )


_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = rf"(?:\d{{1,2}} (?:{_MONTHS}) \d{{4}}|(?:{_MONTHS}) \d{{1,2}}, \d{{4}})"
# "(5 March 1934 – 11 October 2009)", places and old calendars between the dates allowed.
_LIFE = re.compile(
    rf"\([^()]{{0,60}}?({_DATE})[^()–]{{0,60}}[–-][^()–]{{0,60}}?({_DATE})[^()]{{0,40}}\)"
)
_BORN = re.compile(rf"\([^()]{{0,60}}?born(?: on)? ({_DATE})[^()]{{0,60}}\)")


def lifespans(folder: Path, split: str, most: int = 1200) -> Iterator[SlotLesson]:
    """Births and deaths that the brackets at the start of a page tell apart.

    The first date is that of birth and the second that of death; where only a birth is said, the
    death is "not here". Which of two dates is meant is seldom decided in the other lessons. Pages
    are those of HotpotQA's corpus that are in none of the parts and corpora that figures are
    reported on, so that none of their answers is learnt.
    """
    path = folder / "hotpotqa" / "corpus.jsonl.gz"
    if split != "train" or not path.is_file():
        return
    barred = set()
    for name in ("2wikimultihopqa/corpus", "musique/corpus", "popqa/corpus", "hotpotqa/dev"):
        other = folder / f"{name}.jsonl.gz"
        for row in read_jsonl(other) if other.is_file() else ():
            barred |= {_plain(one["title"] or "") for one in row.get("paragraphs", [row])}
    found: dict[str, tuple[Passage, str, str | None]] = {}
    for row in read_jsonl(path):
        start = row["text"][:300]
        title = re.sub(r"\s*\(.*\)$", "", row["title"] or "")
        life, born = _LIFE.search(start), _BORN.search(start)
        if title and (life or born) and _plain(title) not in barred:
            dates = (life[1], life[2]) if life else (born[1], None)
            found.setdefault(title, (Passage(row["title"], row["text"]), *dates))
    for title in np.random.default_rng(3).permutation(sorted(found))[:most].tolist():
        passage, birth, death = found[title]
        yield SlotLesson(
            f"{title}/birth", "lifespans", slot(title, "date of birth"), (birth,), (passage,)
        )
        query = slot(title, "date of death")
        if death:
            yield SlotLesson(f"{title}/death", "lifespans", query, (death,), (passage,))
        else:
            yield SlotLesson(f"{title}/death", "lifespans", query, (), (), (passage,))


def _plain(title: str) -> str:
    return re.sub(r"\W+", " ", re.sub(r"\s*\(.*\)$", "", title).lower()).strip()


SOURCES: dict[str, Callable[[Path, str], Iterator[SlotLesson]]] = {
    "popqa": popqa,
    "musique": musique,
    "hotpotqa": hotpotqa,
    "hotpotqa_answers": hotpotqa_answers,
    "qed": _question_answering("qed"),
    "nq_oracle": _question_answering("nq_oracle"),
    "xquad_en": _question_answering("xquad_en"),
    "squad": _question_answering("squad"),  # by train/download.py
    "silver_openie": silver_openie,
    "redocred": redocred,
    "fewrel": fewrel,
    "2wikimultihopqa": wikimultihop,
    "lifespans": lifespans,
}
# Where the nearest wrong passages are looked for; a data set that is not named brings its own.
POOLS = {
    "popqa": "popqa/corpus.jsonl.gz",
    "2wikimultihopqa": "2wikimultihopqa/corpus.jsonl.gz",
    "silver_openie": "musique/corpus.jsonl.gz",
    "musique": "musique/corpus.jsonl.gz",
}


def read_slots(folder: Path, source: str, split: str = "train") -> list[SlotLesson]:
    """All lessons of a source.

    Raises:
        ValueError: the source is unknown; the message lists the known ones.
        FileNotFoundError: its file is not below `folder`.
    """
    if source not in SOURCES:
        raise ValueError(f"no lessons of resolution from {source!r}; known: {sorted(SOURCES)}")
    return list(SOURCES[source](folder, split))
