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


def update(state: State, answers: Sequence[QueryTriplet], round: int) -> Update:
    """Moves a state on by the triplets that a solver gave (T2RAG, Algorithm 2, lines 9-14).

    Each answer is fitted to the open query triplets; its values are put wherever the same named
    placeholder stands, so fuzzy triplets become searchable and searchable ones resolved. What was
    not answered stays open. An answer that fits several queries equally well gives only the values
    that are the same for all: it is kept as resolved, or searched, beside them. An answer that fits
    none is dropped and counted; one that repeats what is resolved or open is passed over. The
    resolved set only grows; complete answers that agree with each other may come in any order.
    Sources are not known here, see `triax.reasoning.provenance`.
    """
    queries = list(state.searchable + state.fuzzy)
    # Complete answers first: the values they bind decide what the others can mean.
    useful = sorted(
        (one for one in _distinct(answers) if not _is_known(one, state.resolved)),
        key=lambda answer: len(answer.placeholders),
    )
    used: set[QueryTriplet] = set()
    while turn := next(((a, q) for a in useful if (q := _apply(a, queries)) != queries), None):
        answer, queries = turn
        used.add(answer)
    left_over = [one for one in useful if all(shape(one) != shape(query) for query in queries)]
    extra = [one for one in left_over if one.kind != "fuzzy" and match(one, queries)]
    num_unmatched = sum(one not in used and one not in extra for one in left_over)
    queries += extra
    resolved = list(state.resolved)
    confidences = {_key(answer): answer.confidence for answer in answers}
    for query in queries:
        if query.kind == "resolved" and not _is_known(query, resolved):
            triplet = query.as_triplet(confidences.get(_key(query)))
            resolved.append(Resolved(triplet, round=round))
    left = State.of(_distinct(query for query in queries if query.kind != "resolved"))
    return Update(replace(left, resolved=tuple(resolved)), num_unmatched)


def _apply(answer: QueryTriplet, queries: Sequence[QueryTriplet]) -> list[QueryTriplet]:
    """The queries with what every way to fit the answer agrees on; as they were if nothing is."""
    found = match(answer, queries)
    if not found or any(shape(answer) == shape(query) for query in queries):
        return list(queries)
    agreed = set.intersection(*(set(one.bindings.items()) for one in found))
    is_one = len({_key(one.query) for one in found}) == 1
    filled = {one.query: one.filled for one in found} if is_one else {}
    return fill_all([filled.get(query, query) for query in queries], dict(agreed))


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
