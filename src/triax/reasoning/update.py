"""The state machine of T2RAG: how an answer of the solver moves a state on. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from triax.reasoning.unify import fill_all, match, shape
from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State
from triax.records.text import normalise


@dataclass(frozen=True, slots=True)
class Update:
    """The next state, and what of the answer could not be used."""

    state: State
    num_unmatched: int = 0


def update(
    state: State, answers: Sequence[QueryTriplet], chunk_ids: tuple[str, ...], round: int
) -> Update:
    """Moves a state on by the triplets that a solver gave (T2RAG, Algorithm 2, lines 9-14).

    Each answer is fitted to the open query triplets; its values are put wherever the same named
    placeholder stands, so fuzzy triplets become searchable and searchable ones resolved. What was
    not answered stays open. An answer that fits several queries equally well but with other
    values binds nothing: it is kept as resolved, or searched, beside them. An answer that fits
    none is dropped and counted; one that repeats what is resolved or open is passed over. The
    resolved set only grows, and answers that do not contradict each other may come in any order.
    """
    queries = list(state.searchable + state.fuzzy)
    extra: list[QueryTriplet] = []
    num_unmatched = 0
    # Complete answers first: the values they bind decide what the others can mean.
    waiting = sorted(
        (one for one in _distinct(answers) if not _is_known(one, state.resolved)),
        key=lambda answer: len(answer.placeholders),
    )
    while decisive := next((one for one in waiting if _decides(one, queries)), None):
        waiting.remove(decisive)
        queries = _apply(decisive, queries)
    for answer in waiting:
        if any(shape(answer) == shape(query) for query in queries):
            continue
        if answer.kind != "fuzzy" and match(answer, queries):
            extra.append(answer)
        else:
            num_unmatched += 1
    queries += extra
    resolved = list(state.resolved)
    for query in queries:
        if query.kind == "resolved" and not _is_known(query, resolved):
            resolved.append(Resolved(query.as_triplet(), chunk_ids, round))
    left = State.of(_distinct(query for query in queries if query.kind != "resolved"))
    return Update(replace(left, resolved=tuple(resolved)), num_unmatched)


def _decides(answer: QueryTriplet, queries: Sequence[QueryTriplet]) -> bool:
    """Whether the answer fills open queries in one way only."""
    if any(shape(answer) == shape(query) for query in queries):
        return False
    found = match(answer, queries)
    ways = {(_key(one.filled), tuple(sorted(one.bindings.items()))) for one in found}
    return len(ways) == 1


def _apply(answer: QueryTriplet, queries: Sequence[QueryTriplet]) -> list[QueryTriplet]:
    found = match(answer, queries)
    filled = {one.query: one.filled for one in found}
    return fill_all([filled.get(query, query) for query in queries], found[0].bindings)


def stop_reason(
    before: State, after: State, round: int, max_rounds: int, *, has_evidence: bool
) -> str:
    """Why the rounds end here, or "" if they go on (T2RAG, section 3.3, stopping rules).

    `resolved`: nothing is open. `no evidence`: the search came back empty, as it would again.
    `no progress`: the round changed nothing. `nothing newly searchable`: no fuzzy triplet is left
    and no new one became searchable. `max rounds`: the limit is reached.
    """
    if after.is_resolved:
        return "resolved"
    if not has_evidence:
        return "no evidence"
    if after == before:
        return "no progress"
    if not after.fuzzy and not set(after.searchable) - set(before.searchable):
        return "nothing newly searchable"
    return "max rounds" if round >= max_rounds else ""


def _key(triplet: QueryTriplet) -> tuple[str, ...]:
    return tuple(normalise(str(term)) for term in triplet.terms)


def _is_known(answer: QueryTriplet, resolved: Sequence[Resolved]) -> bool:
    fields = _key(answer)
    return any(tuple(map(normalise, known.triplet.fields)) == fields for known in resolved)


def _distinct(queries: Iterable[QueryTriplet]) -> list[QueryTriplet]:
    found: dict[tuple[str, ...], QueryTriplet] = {}
    for query in queries:
        found.setdefault(_key(query), query)
    return list(found.values())
