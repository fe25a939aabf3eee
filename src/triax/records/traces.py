"""How an answer came about: every round, every state, every cost."""

from dataclasses import dataclass

from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet
from triax.records.routes import Routing
from triax.records.state import State
from triax.records.usage import Usage


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of retrieve and resolve. `note` is what was thought, or what went wrong (R26)."""

    number: int
    queries: tuple[str, ...]
    evidence: Evidence
    before: State
    after: State
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """The whole story of one answer.

    `answer` is None where there is none; then `error` says why, or the method abstained (R29).
    `stop_reason` tells why the rounds ended. `chunk_ids` are the retrieved chunks of all rounds,
    best first, without repeats. `seconds` is wall time; questions that were answered together
    share theirs equally. `routing` is the router's decision, where there was a router. `context` is
    what was read beside the chunks, where a pipeline reads once: notes and propositions; `written`
    is what the reader wrote, its thoughts included.
    """

    question_id: str
    question: str
    pipeline: str
    answer: str | None
    stop_reason: str = ""
    error: str | None = None
    decomposition: tuple[QueryTriplet, ...] = ()
    rounds: tuple[Round, ...] = ()
    final: State | None = None
    chunk_ids: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    routing: Routing | None = None
    context: tuple[str, ...] = ()
    written: str = ""
