"""Slots to measure a resolver on: one query triplet and the passages that may fill it.

A slot comes twice where `with_absent` is set: once with the passage that answers among the others,
once (`<id>/absent`) with one more other in its place (where there is one more), for which the right
value is none.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from triax.corpora.corpus import content_id, unique_texts
from triax.corpora.jsonl import Row, read_rows, three_texts
from triax.records.documents import Chunk
from triax.records.query_triplets import Placeholder, QueryTriplet, Term
from triax.records.questions import Question
from triax.records.text import clean
from triax.scoring.answers import normalize_answer

Negatives = Literal["random", "retrieved"]
_GAP = Term((Placeholder(),))
_REFERENCE = re.compile(r"#(\d+)")


class Scorer(Protocol):
    """Scores texts that it was made of, such as `triax.retrieval.terms.Bm25`."""

    def scores(self, query: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Slot:
    """A searchable query triplet, its gold answers and the passages that are shown.

    `gold` is the position of the passage that holds an answer, None where none does. A sub-question
    in words has the query triplet (question | answer | ?) and its text in `question`.
    """

    id: str
    query: QueryTriplet
    answers: tuple[str, ...]
    passages: tuple[Chunk, ...]
    gold: int | None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Which passages are shown beside the one that answers.

    `random` draws them by `seed` and the slot's id; `retrieved` takes those that `scorer` ranks
    first for the query. None of them holds an answer. With `with_absent` every slot comes a second
    time, with others only.
    """

    negatives: Negatives = "random"
    num_passages: int = 5
    seed: int = 0
    with_absent: bool = False
    scorer: Callable[[Sequence[str]], Scorer] | None = None

    def __post_init__(self) -> None:
        if self.negatives not in ("random", "retrieved"):
            raise ValueError(f"negatives={self.negatives!r}; expected 'random' or 'retrieved'")

    def ranking(self, pool: Sequence[Chunk]) -> Callable[[str, str], Iterable[Chunk]]:
        """Of a query and a slot's id: the pool in the order in which passages are taken.

        Raises:
            ValueError: `retrieved` passages are asked for without a scorer.
        """
        if self.negatives == "random":
            seed = self.seed
            return lambda query, slot_id: random.Random(f"{seed}|{slot_id}|others").sample(
                list(pool), len(pool)
            )
        if self.scorer is None:
            raise ValueError("negatives='retrieved' needs a scorer, such as retrieval.terms.Bm25")
        scores = self.scorer([one.passage for one in pool]).scores

        def best_first(query: str, slot_id: str) -> Iterable[Chunk]:
            found = scores(query)
            # Ties by position, which a data set fixes.
            return (pool[i] for i in sorted(range(len(pool)), key=lambda i: (-float(found[i]), i)))

        return best_first


def popqa_slots(folder: str | Path, split: str = "dev", beside: Beside = Beside()) -> list[Slot]:
    """PopQA questions whose subject's page holds an answer, that page among others.

    The object's page names the answer too but not the fact, so it is no gold passage; no other
    passage shown holds an answer. Random ones are of the split, retrieved ones of the whole corpus.

    Raises:
        ValueError: fewer than `num_passages` - 1 others are without an answer, or no scorer is
            given where one is needed.
        FileNotFoundError: as in `read_rows`.
    """
    rows = list(read_rows(Path(folder) / f"{split}.jsonl.gz", ["question", "answer"]))
    pool = _distinct(_passage(one) for row in rows for one in row["paragraphs"])
    if beside.negatives == "retrieved":
        corpus = read_rows(Path(folder) / "corpus.jsonl.gz", ["title", "text"])
        pool = _distinct(map(_passage, corpus))
    ranking = beside.ranking(pool)
    slots = []
    for row in rows:
        subject, relation, _ = three_texts(row["query_triples"][0]) or ("", "", "")
        answers = unique_texts([row["answer"], *row["answer_aliases"]])
        gold = _passage(row["paragraphs"][0])
        if not subject or not holds_answer(gold.text, answers):
            continue
        query = QueryTriplet(Term.literal(subject), Term.literal(relation), _GAP)
        slot_id = str(row["id"])
        slot = Slot(slot_id, query, answers, (gold,), 0)
        slots += _with_passages(slot, ranking(query.query, slot_id), beside)
    return slots


def musique_slots(folder: str | Path, split: str = "dev", beside: Beside = Beside()) -> list[Slot]:
    """The gold steps of MuSiQue questions, `#1` replaced by the answer of step 1.

    Steps whose supporting paragraph does not hold their answer are left out. The others are the
    question's own paragraphs that support none of its steps.

    Raises:
        ValueError, FileNotFoundError: as in `popqa_slots`.
    """
    slots = []
    for row in read_rows(Path(folder) / f"{split}.jsonl.gz", ["question", "answer"]):
        paragraphs = row["paragraphs"]
        others = _distinct(_passage(one) for one in paragraphs if not one["is_supporting"])
        ranking = beside.ranking(others)
        steps = row["decomposition"]
        for number, step in enumerate(steps, 1):
            is_last = number == len(steps)
            answers = unique_texts(
                [step["answer"], *((row["answer"], *row["answer_aliases"]) if is_last else ())]
            )
            gold = _passage(paragraphs[step["support_idx"]])
            if not holds_answer(gold.text, answers[:1]):
                continue
            slot_id = f"{row['id']}/{number}"
            query, question = _step_query(step["question"], [one["answer"] for one in steps])
            slot = Slot(slot_id, query, answers, (gold,), 0, question)
            slots += _with_passages(slot, ranking(query.query, slot_id), beside)
    return slots


def question_slots(folder: str | Path, split: str = "dev", beside: Beside = Beside()) -> list[Slot]:
    """Questions in words whose first paragraph holds an answer, among paragraphs of the split.

    Raises:
        ValueError, FileNotFoundError: as in `popqa_slots`.
    """
    rows = list(read_rows(Path(folder) / f"{split}.jsonl.gz", ["question", "answer"]))
    pool = _distinct(_passage(one) for row in rows for one in row["paragraphs"])
    ranking = beside.ranking(pool)
    slots = []
    for row in rows:
        answers = unique_texts([row["answer"], *row["answer_aliases"]])
        gold = [_passage(one) for one in row["paragraphs"][:1]]
        if not gold or not holds_answer(gold[0].text, answers):
            continue
        question, slot_id = clean(row["question"]).strip(), str(row["id"])
        slot = Slot(slot_id, question_query(question), answers, tuple(gold), 0, question)
        slots += _with_passages(slot, ranking(question, slot_id), beside)
    return slots


def question_query(question: str) -> QueryTriplet:
    """A question in words as a query triplet: (question | answer | ?)."""
    return QueryTriplet(Term.literal(question), Term.literal("answer"), _GAP)


def holds_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether an answer stands in a text as whole words, both normalised as SQuAD does.

    >>> holds_answer("He was a politician, they say.", ["Politician"])
    True
    >>> holds_answer("He was a geopolitician.", ["politician"])
    False
    """
    words = f" {normalize_answer(text)} "
    wanted = (normalize_answer(answer) for answer in answers)
    return any(answer and f" {answer} " in words for answer in wanted)


def seeded_subset(slots: Sequence[Slot], limit: int | None, seed: int = 0) -> list[Slot]:
    """The first `limit` slots, with their absent twins, in an order that ids and seed decide.

    A smaller limit gives a beginning of a larger one, so that two runs share their slots.
    """
    groups: dict[str, list[Slot]] = {}
    for slot in slots:
        groups.setdefault(slot.id.removesuffix("/absent"), []).append(slot)
    chosen = sorted(groups, key=lambda one: _place(one, seed))[:limit]
    return [slot for one in chosen for slot in groups[one]]


def seeded_order(questions: Iterable[Question], seed: int = 0) -> list[Question]:
    """Questions in an order that their ids and the seed decide; see `seeded_subset`."""
    return sorted(questions, key=lambda one: _place(one.id, seed))


def _place(text: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}|{text}".encode()).digest()


def _with_passages(slot: Slot, ranked: Iterable[Chunk], beside: Beside) -> list[Slot]:
    """The slot with its gold passage among the first others, and its twin without."""
    others = [one for one in ranked if not _mentions(one, slot.answers)][: beside.num_passages]
    if len(others) < beside.num_passages - 1:
        raise ValueError(
            f"slot {slot.id} has {len(others)} passages without an answer, expected at least "
            f"{beside.num_passages - 1}; ask for fewer passages"
        )
    generator = random.Random(f"{beside.seed}|{slot.id}")
    shown = [*slot.passages, *others[: beside.num_passages - 1]]
    generator.shuffle(shown)
    made = [
        Slot(
            slot.id,
            slot.query,
            slot.answers,
            tuple(shown),
            shown.index(slot.passages[0]),
            slot.question,
        )
    ]
    if beside.with_absent:
        generator.shuffle(others)
        made.append(
            Slot(f"{slot.id}/absent", slot.query, slot.answers, tuple(others), None, slot.question)
        )
    return made


def _mentions(passage: Chunk, answers: Sequence[str]) -> bool:
    # A title is shown too, and must not give the answer away.
    return holds_answer(passage.passage, answers)


def _passage(row: Row) -> Chunk:
    title, text = clean(row.get("title") or "").strip(), clean(row["text"]).strip()
    passage_id = str(row.get("id") or content_id(title, text))
    return Chunk(passage_id, passage_id, text, title)


def _distinct(passages: Iterable[Chunk]) -> list[Chunk]:
    return list({(one.title, one.text): one for one in passages}.values())


def _step_query(text: str, answers: Sequence[str]) -> tuple[QueryTriplet, str]:
    filled = clean(_REFERENCE.sub(lambda found: answers[int(found[1]) - 1], text)).strip()
    subject, mark, relation = filled.partition(" >> ")
    if mark:
        return QueryTriplet(Term.literal(subject), Term.literal(relation), _GAP), ""
    return question_query(filled), filled
