"""Map and reduce over texts that are too many for one prompt, as GraphRAG's global search.

Each batch of texts is read by itself: what in it helps to answer, as points with scores. The best
points of all batches, as many as a budget has room for, are then read together.

Source: "From Local to Global" (Edge et al., 2024, section 3.1.6) and GraphRAG 3.1.2, in our own
words; the last step answers shortly, by the contract of `synthesize`.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import without_thinking
from triax.reasoning.synthesize import SYSTEM as SHORT
from triax.reasoning.synthesize import Short, read_short
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.json_text import read_json
from triax.records.questions import Question
from triax.records.text import clean
from triax.records.usage import Usage
from triax.records.verbs import Completer, TokenCounter
from triax.retrieval.packing import pack

MAX_SCORE = 100.0
MAP_SYSTEM = (
    "You are shown a question and some numbered reports, out of many more. Write down what in "
    "these reports helps to answer the question, as points that are understood without the "
    "reports: full names, dates and numbers, nothing that is not there. Score each point from 0, "
    "no help, to 100, the answer itself, and name the numbers of the reports that it is taken "
    'from. Answer with JSON: {"points": [{"point": "...", "score": 80, "reports": [1, 4]}]}. If '
    'nothing helps, answer {"points": []}'
)
REDUCE_SYSTEM = (
    "You are shown a question and points that several readers noted for it, each of whom saw "
    "another part of the sources; the score before a point says how helpful its reader found it. "
    "Where points contradict each other, the higher score counts. "
) + SHORT
SCHEMA = {
    "type": "object",
    "properties": {
        "points": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "point": {"type": "string"},
                    "score": {"type": "number"},
                    "reports": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["point", "score", "reports"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["points"],
    "additionalProperties": False,
}
GRAMMAR = Grammar("json_schema", json.dumps(SCHEMA, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Point:
    """What a batch says to a question. `sources` are places among all texts."""

    text: str
    score: float
    sources: tuple[int, ...] = ()

    @property
    def shown(self) -> str:
        """As the last call sees it."""
        return f"[{self.score:g}] {self.text}"


@dataclass(frozen=True, slots=True)
class Reduced:
    """An answer, and the points that it was made of, best first.

    `reply.value` is None where nothing could be answered: `reply.error` says why. No point at all
    is an abstention, unless batches failed, which might have had one. `num_failed` counts these.
    """

    reply: Reply[Short]
    points: tuple[Point, ...] = ()
    num_failed: int = 0


@dataclass(frozen=True, slots=True)
class MapReduce:
    """Two rounds of calls for many questions.

    Args:
        completer: the language model.
        counter: counts what is packed.
        max_batch_tokens: of the texts of a call of the map.
        max_point_tokens: of the points of the last call.
        max_map_tokens: of the answer of a call of the map; GraphRAG asks for 1000 words.
        max_tokens: of the last answer, which here is a short one.
    """

    completer: Completer
    counter: TokenCounter
    max_batch_tokens: int = 12000
    max_point_tokens: int = 12000
    max_map_tokens: int = 1500
    max_tokens: int = 24

    async def answer(self, questions: Sequence[Question], texts: Sequence[str]) -> list[Reduced]:
        """One answer a question from the same texts, in their order.

        A text longer than a batch is cut. Without a text all abstain, and no model is asked.
        """
        batches = self._batches(texts)
        asked = [(question, batch) for question in questions for batch in batches]
        requests = [self._map(question, batch) for question, batch in asked]

        def read(number: int, completion: Completion) -> tuple[Point, ...]:
            return read_points(completion, [place for place, _ in asked[number][1]])

        replies = await ask(self.completer, requests, read) if requests else []
        mapped = [
            replies[number * len(batches) : (number + 1) * len(batches)]
            for number in range(len(questions))
        ]
        points = [self._best(one) for one in mapped]
        reducing = [number for number, best in enumerate(points) if best]
        last = await ask(
            self.completer,
            [self._reduce(questions[number], points[number]) for number in reducing],
            lambda _, completion: read_short(completion),
        )
        reduced = dict(zip(reducing, last, strict=True))
        return [
            _reduced(replies, best, reduced.get(number))
            for number, (replies, best) in enumerate(zip(mapped, points, strict=True))
        ]

    def _batches(self, texts: Sequence[str]) -> list[list[tuple[int, str]]]:
        """Texts with their places, one batch after the other as full as can be."""
        limit = self.max_batch_tokens
        sizes = self.counter.count(texts)
        batches: list[list[tuple[int, str]]] = []
        left = 0
        for place, (text, size) in enumerate(zip(texts, sizes, strict=True)):
            if size > limit:
                text, size = self.counter.cut(text, limit), limit
            if size > left or not batches:
                batches.append([])
                left = limit
            batches[-1].append((place, text))
            left -= size
        return batches

    def _map(self, question: Question, batch: Sequence[tuple[int, str]]) -> CompletionRequest:
        shown = "\n\n".join(f"[{number}] {text}" for number, (_, text) in enumerate(batch, 1))
        return CompletionRequest(
            conversation(MAP_SYSTEM, (), f"Reports:\n{shown}\n\nQuestion: {question.text}"),
            self.max_map_tokens,
            grammar=GRAMMAR,
            stage="map",
            question_id=question.id,
        )

    def _best(self, replies: Sequence[Reply[tuple[Point, ...]]]) -> tuple[Point, ...]:
        """Points with a score above 0, the best first, equal ones in the order of the texts."""
        found = [point for reply in replies for point in reply.value or () if point.score > 0]
        ranked = sorted(found, key=lambda point: -point.score)
        sizes = self.counter.count([point.shown for point in ranked])
        return tuple(ranked[place] for place in pack(sizes, self.max_point_tokens))

    def _reduce(self, question: Question, points: Sequence[Point]) -> CompletionRequest:
        shown = "\n".join(point.shown for point in points)
        return CompletionRequest(
            conversation(REDUCE_SYSTEM, (), f"Points:\n{shown}\n\nQuestion: {question.text}"),
            self.max_tokens,
            stage="reduce",
            question_id=question.id,
        )


def read_points(completion: Completion, places: Sequence[int]) -> tuple[Point, ...]:
    """The points of an answer, in its order.

    What is no object with a text under `point` or `description` is left out; a score that is no
    number counts as 0, others are cut to 0..100; reports that were not shown are dropped.

    Args:
        completion: of a call of the map.
        places: of the reports that were shown as number 1, 2, ...

    Raises:
        Unreadable: there is no JSON object with a list of points.
    """
    text = without_thinking(completion.text or "")
    found = [
        value["points"]
        for _, value in read_json(text)
        if isinstance(value, dict) and isinstance(value.get("points"), list)
    ]
    if not found:
        raise Unreadable('no JSON object with a list of points; expected {"points": [...]}')
    points = []
    for item in found[-1]:
        said = (item.get("point") or item.get("description")) if isinstance(item, dict) else None
        if isinstance(said, str) and (said := " ".join(clean(said).split())):
            points.append(Point(said, _score(item.get("score")), _sources(item, places)))
    return tuple(points)


def _score(value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        return 0.0
    return min(MAX_SCORE, max(0.0, score)) if math.isfinite(score) else 0.0


def _sources(item: dict[str, Any], places: Sequence[int]) -> tuple[int, ...]:
    named = item.get("reports")
    numbers = [one for one in named if isinstance(one, int)] if isinstance(named, list) else []
    return tuple(places[one - 1] for one in dict.fromkeys(numbers) if 0 < one <= len(places))


def _reduced(
    replies: Sequence[Reply[tuple[Point, ...]]],
    points: tuple[Point, ...],
    last: Reply[Short] | None,
) -> Reduced:
    usage = sum((reply.usage for reply in replies), Usage())
    failed = [reply for reply in replies if reply.value is None]
    if last is not None:
        reply = Reply(last.value, usage + last.usage, last.text, last.error, last.is_failed)
    elif failed:
        error = f"{len(failed)} of {len(replies)} batches failed, the others have no point; "
        reply = Reply(None, usage, error=error + failed[0].error, is_failed=True)
    else:
        reply = Reply(Short(None), usage)
    return Reduced(reply, points, len(failed))
