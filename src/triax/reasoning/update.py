"""The state machine of T2RAG: how an answer of the solver moves a state on. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triax.reasoning.unify import fill_all, match
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
    not answered stays open. An answer that fits several queries in different ways decides
    nothing: if it is searchable it is searched beside them. An answer that fits none is dropped
    and counted. The resolved set only grows.
    """
    queries = list(state.searchable + state.fuzzy)
    resolved = list(state.resolved)
    num_unmatched = 0
    # Resolved answers first: the values they bind decide what the searchable ones can mean.
    for answer in sorted(answers, key=lambda triplet: len(triplet.placeholders)):
        if any(_same(answer, query) for query in queries):
            continue
        found = match(answer, queries)
        if not found:
            num_unmatched += not _is_known(answer, resolved)
            continue
        if len({_key(one.filled) for one in found}) > 1 or (
            len(found) > 1 and len({tuple(sorted(one.bindings.items())) for one in found}) > 1
        ):
            if answer.kind == "searchable":
                queries.append(answer)
            else:
                num_unmatched += 1
            continue
        first = found[0]
        position = queries.index(first.query)
        queries[position] = first.filled
        queries = fill_all(queries, first.bindings)
    closed = [query for query in queries if query.kind == "resolved"]
    for query in closed:
        if not _is_known(query, resolved):
            resolved.append(Resolved(query.as_triplet(), chunk_ids, round))
    left = State.of(_distinct(query for query in queries if query.kind != "resolved"))
    return Update(replace(left, resolved=tuple(resolved)), num_unmatched)


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


def _same(left: QueryTriplet, right: QueryTriplet) -> bool:
    return _key(left) == _key(right)


def _is_known(answer: QueryTriplet, resolved: Sequence[Resolved]) -> bool:
    fields = _key(answer)
    return any(tuple(map(normalise, known.triplet.fields)) == fields for known in resolved)


def _distinct(queries) -> list[QueryTriplet]:
    return list({_key(query): query for query in reversed(list(queries))}.values())[::-1]
