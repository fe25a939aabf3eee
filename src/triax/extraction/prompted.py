"""Triplets by a language model: two entity-conditioned calls, or one call of plain lines.

The two-call style follows open information extraction as HippoRAG and T2RAG do it (Gutiérrez et
al., 2024, section 3; Gong et al., section 4.1), in our own words.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from triax.extraction.support import content_words, is_supported
from triax.records.completions import Completion, CompletionRequest, Grammar, Message
from triax.records.documents import Chunk
from triax.records.json_text import read_json
from triax.records.text import clean
from triax.records.triplet_text import parse_triplets
from triax.records.triplets import Extraction
from triax.records.verbs import Completer

ENTITIES_SYSTEM = (
    "List the named entities of the passage: people, places, organisations, works, events, dates "
    'and numbers with a unit. Answer with JSON: {"entities": ["...", "..."]}'
)
TRIPLETS_SYSTEM = (
    "State the facts of the passage as triplets [subject, predicate, object]. Each names at least "
    "one of the listed entities, better two. Replace pronouns by the names that they stand for. "
    'Leave out what the passage does not say. Answer with JSON: {"triplets": [["...", "...", '
    '"..."]]}'
)
LINES_SYSTEM = (
    "Write the facts of the passage as lines: subject | predicate | object. Use full names instead "
    "of pronouns. Write nothing else."
)
# Nothing in the example exists, so that what a model copies from it is seen (`support`).
SHOT_PASSAGE = (
    "Quellmoor\nQuellmoor is a novel by Ottoline Varnhagen-Pryce. It was published in 1807 by "
    "Brackwater Press and is set in Tarnovia."
)
SHOT_ENTITIES = ("Quellmoor", "Ottoline Varnhagen-Pryce", "1807", "Brackwater Press", "Tarnovia")
SHOT_TRIPLETS = (
    ("Quellmoor", "is", "novel"),
    ("Quellmoor", "written by", "Ottoline Varnhagen-Pryce"),
    ("Quellmoor", "published in", "1807"),
    ("Quellmoor", "published by", "Brackwater Press"),
    ("Quellmoor", "set in", "Tarnovia"),
)
LINES_SHOTS = (
    (f"Passage: {SHOT_PASSAGE}", "\n".join(" | ".join(fields) for fields in SHOT_TRIPLETS)),
)
ENTITIES_SCHEMA = {
    "type": "object",
    "properties": {"entities": {"type": "array", "items": {"type": "string"}}},
    "required": ["entities"],
    "additionalProperties": False,
}
TRIPLETS_SCHEMA = {
    "type": "object",
    "properties": {
        "triplets": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 3,
                "maxItems": 3,
            },
        }
    },
    "required": ["triplets"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class PromptedExtractor:
    """Asks a language model about every chunk; one `complete` call a stage for all chunks.

    `openie` asks for entities and then for triplets about them, both as JSON: for capable models.
    `lines` asks once for `subject | predicate | object` lines: for small models, best with a
    grammar. A call that failed, or an answer that cannot be read, is asked once more alone; then
    the extraction is `failed` with the reason (R3). An answer that was cut is `partial` (R2).

    Args:
        completer: the language model.
        style: see above.
        grammar: the constraint of the lines of a chunk, or one for all; `openie` has its own.
        max_tokens: the longest answer of each call.
        is_faithful: drops triplets whose subject or object shares no word with the chunk, which a
            model has copied from the example or made up; they are counted in the reason. None
            means: for `lines` only.
        max_words: longer passages are cut there and their extraction is `partial` (R8); None
            leaves that to the chunker and to the completer, which refuses what it cannot read.
        lines_system: the system text of `lines`.
        lines_shots: worked examples of `lines`: passage and triplet lines.
    """

    completer: Completer
    style: Literal["openie", "lines"] = "openie"
    grammar: Grammar | Callable[[Chunk], Grammar | None] | None = None
    max_tokens: int = 1024
    is_faithful: bool | None = None
    max_words: int | None = None
    lines_system: str = LINES_SYSTEM
    lines_shots: Sequence[tuple[str, str]] = LINES_SHOTS

    @property
    def name(self) -> str:
        """Style and model."""
        return f"{self.style}:{self.completer.model}"

    @property
    def config(self) -> dict[str, Any]:
        """What decides the result, for the manifest of a run (R28)."""
        grammar: Any = self.grammar
        if isinstance(grammar, Grammar):
            grammar = [grammar.kind, grammar.source]
        elif grammar is not None:
            grammar = f"{grammar.__module__}.{grammar.__qualname__}"
        probe = Chunk("", "", "")
        requests = [self._entities_request(probe)] if self.style == "openie" else []
        requests.append(self._triplets_request(probe, ()))
        return {
            "style": self.style,
            "completer": dict(getattr(self.completer, "identity", {"model": self.completer.model})),
            "max_tokens": self.max_tokens,
            "max_words": self.max_words,
            "grammar": grammar,
            "is_faithful": self._filters,
            "prompts": [[turn.content for turn in request.messages] for request in requests],
        }

    @property
    def _filters(self) -> bool:
        return self.style == "lines" if self.is_faithful is None else self.is_faithful

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, in order."""
        if self.style == "lines":
            return await self._read_triplets(chunks, [()] * len(chunks))
        entities = await self._ask(
            [self._entities_request(chunk) for chunk in chunks], _read_entities
        )
        found = [one if isinstance(one, tuple) else () for one in entities]
        extractions = await self._read_triplets(chunks, found)
        return [
            replace(extraction, status="partial", reason=f"no entities: {one}; {extraction.reason}")
            if isinstance(one, str) and extraction.status in ("ok", "partial")
            else extraction
            for extraction, one in zip(extractions, entities, strict=True)
        ]

    async def _read_triplets(
        self, chunks: Sequence[Chunk], entities: Sequence[tuple[str, ...]]
    ) -> list[Extraction]:
        requests = [
            self._triplets_request(chunk, found)
            for chunk, found in zip(chunks, entities, strict=True)
        ]
        answers = await self._ask(requests, lambda completion: completion)
        return [
            self._extraction(chunk, found, answer)
            for chunk, found, answer in zip(chunks, entities, answers, strict=True)
        ]

    async def _ask(
        self, requests: Sequence[CompletionRequest], read: Callable[[Completion], Any]
    ) -> list[Any]:
        """What `read` gives, or the reason as a text; unreadable ones are asked twice."""
        results = [_try(read, one) for one in await self.completer.complete(list(requests))]
        faulty = [number for number, result in enumerate(results) if isinstance(result, str)]
        if len(faulty) == len(requests) > 1:
            return results  # nothing answers: to ask each once more would only take longer
        for number in faulty:
            [again] = await self.completer.complete([_another(requests[number])])
            results[number] = _try(read, again)
        return results

    def _extraction(
        self, chunk: Chunk, entities: tuple[str, ...], answer: Completion | str
    ) -> Extraction:
        if isinstance(answer, str):
            return Extraction(chunk.id, (), entities, "failed", answer)
        parsed = parse_triplets(
            answer.text or "", is_cut=answer.finish_reason == "length", source=chunk.passage
        )
        kept = parsed.triplets
        status, reasons = parsed.status, [parsed.reason] if parsed.reason else []
        if self._passage(chunk) != clean(chunk.passage):
            reasons.append(f"the passage was cut after {self.max_words} words")
            status = "partial" if status == "ok" else status
        if self._filters:
            words = content_words(chunk.passage)
            kept = tuple(one for one in kept if is_supported(one, words))
            if num_dropped := len(parsed.triplets) - len(kept):
                reasons.append(f"{num_dropped} triplets share no word with the chunk")
                status = "partial" if kept else "empty"
        return Extraction(chunk.id, kept, entities, status, "; ".join(reasons))

    def _passage(self, chunk: Chunk) -> str:
        text = clean(chunk.passage)
        if self.max_words is None or len(text.split()) <= self.max_words:
            return text
        return " ".join(text.split()[: self.max_words])

    def _entities_request(self, chunk: Chunk) -> CompletionRequest:
        shown = json.dumps({"entities": SHOT_ENTITIES}, ensure_ascii=False)
        return self._request(
            (
                Message("system", ENTITIES_SYSTEM),
                Message("user", SHOT_PASSAGE),
                Message("assistant", shown),
                Message("user", self._passage(chunk)),
            ),
            "entities",
            chunk,
            Grammar("json_schema", json.dumps(ENTITIES_SCHEMA, sort_keys=True)),
        )

    def _triplets_request(self, chunk: Chunk, entities: tuple[str, ...]) -> CompletionRequest:
        passage = self._passage(chunk)
        if self.style == "lines":
            grammar = self.grammar(chunk) if callable(self.grammar) else self.grammar
            system, shots, user = self.lines_system, self.lines_shots, f"Passage: {passage}"
        else:
            grammar = Grammar("json_schema", json.dumps(TRIPLETS_SCHEMA, sort_keys=True))
            shown = json.dumps({"triplets": SHOT_TRIPLETS}, ensure_ascii=False)
            system = TRIPLETS_SYSTEM
            shots = ((f"{SHOT_PASSAGE}\n\nEntities: {'; '.join(SHOT_ENTITIES)}", shown),)
            user = f"{passage}\n\nEntities: {'; '.join(entities)}"
        turns = [Message("system", system)]
        for asked, answered in shots:
            turns += [Message("user", asked), Message("assistant", answered)]
        return self._request((*turns, Message("user", user)), "extract", chunk, grammar)

    def _request(
        self, messages: tuple[Message, ...], stage: str, chunk: Chunk, grammar: Grammar | None
    ) -> CompletionRequest:
        return CompletionRequest(
            messages, self.max_tokens, grammar=grammar, stage=stage, question_id=chunk.id
        )


def _try(read: Callable[[Completion], Any], completion: Completion) -> Any:
    if completion.text is None:
        return completion.error or "the call failed and gave no reason"
    if completion.finish_reason == "length" and not completion.text.strip():
        return "the answer was cut before its first word; raise max_tokens"
    return read(completion)


def _another(request: CompletionRequest) -> CompletionRequest:
    """The same request with a seed, so that neither a cache nor greed gives the same answer."""
    return replace(request, seed=(request.seed or 0) + 1, temperature=request.temperature or 0.2)


def _read_entities(completion: Completion) -> tuple[str, ...] | str:
    for _, value in read_json(completion.text or ""):
        listed = value
        if isinstance(value, dict):
            listed = next((inner for inner in value.values() if isinstance(inner, list)), None)
        if isinstance(listed, list):
            names = (clean(str(one)).strip() for one in listed if isinstance(one, str | int))
            return tuple(dict.fromkeys(name for name in names if name))
    return f"no list of entities in {(completion.text or '')[:60]!r}"
