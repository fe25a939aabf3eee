"""A part by itself: a resolver on slots, a decomposer on questions, resumable after a kill (R4)."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from triax.corpora.slots import Slot
from triax.llm.ask import Reply
from triax.reasoning.decompose import Decomposer
from triax.reasoning.resolve import Resolver, Task
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.state import State
from triax.runs.items import ItemLog

T = TypeVar("T")
Triplets = tuple[QueryTriplet, ...]
Progress = Callable[[int], None]


async def measure_resolver(
    resolver: Resolver,
    slots: Sequence[Slot],
    path: Path | str,
    *,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Fills every slot that `path` has no row of yet; a slot whose call failed is tried again.

    A row holds what `triax.scoring.resolution.score_resolution` reads, the query, the place of the
    gold passage, the usage and the seconds (the slot's share of its batch).

    Args:
        resolver: what is measured.
        slots: ids are unique.
        path: a JSONL file of a claimed run folder.
        batch_size: how many slots go to the resolver together.
        progress: is called with the number of slots done.

    Returns:
        One row a slot, in their order.
    """

    def row(slot: Slot, reply: Reply[Triplets]) -> dict[str, Any]:
        value, confidence = filled_value(slot.query, reply)
        return {
            "id": slot.id,
            "query": str(slot.query),
            "answers": list(slot.answers),
            "is_here": slot.gold is not None,
            "gold": slot.gold,
            "prediction": value,
            "confidence": confidence,
            "text": reply.text,
        }

    async def ask(batch: Sequence[Slot]) -> list[Reply[Triplets]]:
        return await resolver.resolve([slot_task(slot) for slot in batch])

    return await _measure(slots, ask, row, ItemLog(path), batch_size, progress)


async def measure_decomposer(
    decomposer: Decomposer,
    questions: Sequence[Question],
    path: Path | str,
    *,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Decomposes every question that `path` has no row of yet; see `measure_resolver`.

    A row holds what `triax.scoring.decomposition_rows` reads: `predicted` and `gold`, lists of
    three texts each (`predicted` is None where the answer could not be read), and the gold `steps`.
    """

    def row(question: Question, reply: Reply[Triplets]) -> dict[str, Any]:
        return {
            "id": question.id,
            "question": question.text,
            "gold": _texts(question.gold_query_triplets),
            "steps": [step.question for step in question.steps],
            "predicted": None if reply.value is None else _texts(reply.value),
            "text": reply.text,
        }

    return await _measure(questions, decomposer.decompose, row, ItemLog(path), batch_size, progress)


def slot_task(slot: Slot) -> Task:
    """The slot as a resolver sees it in a round: one searchable triplet, passages in their order.

    Scores fall by rank, as a search would give them.
    """
    count = len(slot.passages)
    chunks = tuple(ScoredChunk(one, (count - i) / count) for i, one in enumerate(slot.passages))
    text = slot.question or slot.query.query
    return Task(Question(slot.id, text), State(searchable=(slot.query,)), Evidence(chunks))


def filled_value(query: QueryTriplet, reply: Reply[Triplets]) -> tuple[str | None, float | None]:
    """The text that stands where the query has its gap, and its confidence.

    Of several filled triplets the surest counts, without confidences the first.
    """
    gap = next(i for i, term in enumerate(query.terms) if term.placeholders)
    filled = [one for one in reply.value or () if not one.terms[gap].placeholders]
    if not filled:
        return None, None
    best = max(filled, key=lambda one: -1.0 if one.confidence is None else one.confidence)
    return best.terms[gap].known, best.confidence


async def _measure(
    items: Sequence[T],
    ask: Callable[[Sequence[T]], Awaitable[list[Reply[Triplets]]]],
    row: Callable[[T, Reply[Triplets]], dict[str, Any]],
    log: ItemLog,
    batch_size: int,
    progress: Progress | None,
) -> list[dict[str, Any]]:
    ids = [item.id for item in items]  # type: ignore[attr-defined]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{len(ids) - len(set(ids))} ids repeat; give every item an id of its own")
    known = log.rows()
    left = [item for item, own in zip(items, ids, strict=True) if known.get(own, _NEW)["is_failed"]]
    for start in range(0, len(left), batch_size):
        if progress:
            progress(len(items) - len(left) + start)
        batch = left[start : start + batch_size]
        began = time.perf_counter()
        replies = await ask(batch)
        cost = {"seconds": (time.perf_counter() - began) / len(batch)}
        log.append(
            row(item, reply)
            | {"error": reply.error, "is_failed": reply.is_failed, "usage": asdict(reply.usage)}
            | cost
            for item, reply in zip(batch, replies, strict=True)
        )
    if progress:
        progress(len(items))
    known = log.rows()
    return [known[own] for own in ids]


_NEW = {"is_failed": True}


def _texts(triplets: Triplets) -> list[list[str]]:
    return [[str(term) for term in one.terms] for one in triplets]
