"""A trace as JSON: everything but the texts of chunks, which the corpus has."""

from dataclasses import asdict
from typing import Any

from triax.records.evidence import Evidence, ScoredNote
from triax.records.query_triplets import QueryTriplet
from triax.records.state import State
from triax.records.traces import Round, Trace
from triax.records.usage import Usage


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """One object a trace; query triplets are lists of three texts, with `?name` where unknown."""
    extra: dict[str, Any] = {} if trace.routing is None else {"routing": asdict(trace.routing)}
    if trace.context:
        extra["context"] = list(trace.context)
    if trace.written:
        extra["written"] = trace.written
    return {
        "question_id": trace.question_id,
        "question": trace.question,
        "pipeline": trace.pipeline,
        "answer": trace.answer,
        "stop_reason": trace.stop_reason,
        "error": trace.error,
        "decomposition": [_fields(query) for query in trace.decomposition],
        "rounds": [_round(one) for one in trace.rounds],
        "final": _state(trace.final) if trace.final is not None else None,
        "chunk_ids": list(trace.chunk_ids),
        "usage": usage_to_json(trace.usage),
        "seconds": round(trace.seconds, 3),
        **extra,
    }


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """The five numbers of a usage by name."""
    return {
        "calls": usage.calls,
        "cached_calls": usage.cached_calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "llm_seconds": round(usage.llm_seconds, 3),
    }


def usage_from_json(value: dict[str, Any]) -> Usage:
    """The inverse of `usage_to_json`."""
    return Usage(**value)


def _round(one: Round) -> dict[str, Any]:
    return {
        "number": one.number,
        "queries": list(one.queries),
        **_evidence(one.evidence),
        "before": _state(one.before),
        "after": _state(one.after),
        "note": one.note,
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "propositions": [
            {
                "text": hit.proposition.text,
                "score": round(hit.score, 6),
                "chunk_ids": list(hit.chunk_ids),
            }
            for hit in evidence.hits
        ],
        "chunks": [
            {
                "id": found.chunk.id,
                "title": found.chunk.title,
                "score": round(found.score, 6),
            }
            for found in evidence.chunks
        ],
        **({"notes": [_note(one) for one in evidence.notes]} if evidence.notes else {}),
    }


def _note(found: ScoredNote) -> dict[str, Any]:
    fields = {**asdict(found.note), "chunk_ids": list(found.note.chunk_ids)}
    return fields | {"score": round(found.score, 6)}


def _state(state: State) -> dict[str, Any]:
    return {
        "resolved": [
            {
                "triplet": list(one.triplet.fields),
                "confidence": one.triplet.confidence,
                "chunk_ids": list(one.chunk_ids),
                "round": one.round,
            }
            for one in state.resolved
        ],
        "searchable": [_fields(query) for query in state.searchable],
        "fuzzy": [_fields(query) for query in state.fuzzy],
    }


def _fields(query: QueryTriplet) -> list[str]:
    return [str(term) for term in query.terms]
