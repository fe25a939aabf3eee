"""Resolution by the data set's own triplets: the upper bound of a solver on given evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.reasoning.ask import Reply
from triax.reasoning.resolve import Task
from triax.reasoning.unify import unify
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet, Term
from triax.records.text import normalise
from triax.records.traces import Usage
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
        for gold in task.question.gold_triplets:
            # A data set names one entity now with its disambiguation and now without.
            answer = QueryTriplet(*(Term.literal(field) for field in gold.fields))
            for candidate in (answer, _as_asked(query, answer)):
                match = unify(query, candidate) if candidate else None
                if match and (
                    not self.needs_evidence or _holds(task.evidence, match.filled, query)
                ):
                    return match.filled
        return None


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
