"""Resolution by the data set's own triplets: the upper bound of a solver, and of a decomposer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.resolve import Task
from triax.reasoning.unify import Match, unify
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet, Term
from triax.records.questions import Question
from triax.records.text import normalise
from triax.records.usage import Usage
from triax.records.verbs import Completer


@dataclass(frozen=True, slots=True)
class GoldResolver:
    """Fills a slot with the gold value if the evidence holds it: only retrieval can fail.

    `needs_evidence` false fills it from the gold triplets whatever was found. A question without
    gold triplets resolves nothing. It asks no completer, and takes one so that it can stand
    wherever a prompted resolver does.
    """

    needs_evidence: bool = True
    completer: Completer | None = None

    async def resolve(self, tasks: Sequence[Task]) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """The searchable triplets of each task that gold answers."""
        return [
            Reply(
                tuple(
                    filled
                    for query in task.state.searchable
                    if (filled := self._fill(query, task)) is not None
                ),
                Usage(),
            )
            for task in tasks
        ]

    def _fill(self, query: QueryTriplet, task: Task) -> QueryTriplet | None:
        for match in _matches(query, task.question):
            if not self.needs_evidence or _holds(task.evidence, match.filled, query):
                return match.filled
        return None


def gold_queries(question: Question) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an index is asked where decomposition, and then resolution too, do not err.

    The first are the gold query triplets as they stand, with their placeholders left out. In the
    second each one has the values that gold triplets give to the placeholders before it, never its
    own, so that what is sought is in neither. The second is empty where gold triplets do not fill
    every query triplet.
    """
    asked, bindings = [], {}
    for query in question.gold_query_triplets:
        query = query.fill(bindings)
        asked.append(query.query)
        match = next(_matches(query, question), None)
        if match is None or match.filled.kind != "resolved":
            asked = []
            break
        bindings |= match.bindings
    return tuple(query.query for query in question.gold_query_triplets), tuple(asked)


def _matches(query: QueryTriplet, question: Question) -> Iterator[Match]:
    """Gold triplets that the query fits, in their order."""
    for gold in question.gold_triplets:
        # A data set names one entity now with its disambiguation and now without.
        answer = QueryTriplet(*(Term.literal(field) for field in gold.fields))
        for candidate in (answer, _as_asked(query, answer)):
            if candidate and (match := unify(query, candidate)):
                yield match


def _as_asked(query: QueryTriplet, answer: QueryTriplet) -> QueryTriplet | None:
    """The answer with the query's subject, where both name the same thing but for brackets."""
    if query.subject.placeholders or _bare(query.subject.known) != _bare(answer.subject.known):
        return None
    return QueryTriplet(query.subject, answer.predicate, answer.object)


def _bare(name: str) -> str:
    return normalise(name.partition(" (")[0])


def _holds(evidence: Evidence, filled: QueryTriplet, query: QueryTriplet) -> bool:
    values = [
        normalise(mine.known)
        for mine, theirs in zip(filled.terms, query.terms, strict=True)
        if theirs.placeholders
    ]
    texts = [normalise(f"{one.chunk.title} {one.chunk.text}") for one in evidence.chunks]
    return any(all(value in text for value in values) for text in texts)
