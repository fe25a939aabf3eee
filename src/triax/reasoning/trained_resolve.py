"""Resolution without a language model: a trained reader finds the value of each open slot."""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.resolve import Task, with_gap
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet
from triax.records.readings import ReadRequest, shown_passage, shown_slot
from triax.records.usage import Usage
from triax.records.verbs import Completer, PassageReader

# The predicate under which a whole question is the subject of a query triplet.
ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class TrainedResolver:
    """Fills each searchable triplet with the reader's best answer, or leaves it open.

    Each filled triplet has the calibrated probability that it is right as its confidence. A slot
    is left open where the reader finds the answer's presence less probable than `min_here`; open
    slots are looked for again in the next round. `reads_propositions` adds the propositions that
    were found, as one more passage. It asks no completer, and takes one so that it can stand
    wherever a prompted resolver does.
    """

    reader: PassageReader
    min_here: float = 0.5
    max_chunks: int | None = None
    reads_propositions: bool = False
    completer: Completer | None = None

    async def resolve(self, tasks: Sequence[Task]) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """Reads the slots of all tasks in one batch."""
        slots = [
            (number, query) for number, task in enumerate(tasks) for query in task.state.searchable
        ]
        passages = [self._passages(task.evidence) for task in tasks]
        requests = [ReadRequest(_asked(query), passages[number]) for number, query in slots]
        filled: list[list[QueryTriplet]] = [[] for _ in tasks]
        for (number, query), found in zip(slots, self.reader.read(requests), strict=True):
            if found is None or found.p_here < self.min_here:
                continue
            values = {placeholder.name: found.text for placeholder in query.placeholders}
            done = query.fill(values)
            filled[number].append(
                QueryTriplet(done.subject, done.predicate, done.object, confidence=found.p_right)
            )
        return [Reply(tuple(one), Usage()) for one in filled]

    def _passages(self, evidence: Evidence) -> tuple[str, ...]:
        chunks = [found.chunk for found in evidence.chunks[: self.max_chunks]]
        texts = [shown_passage(chunk.title, chunk.text) for chunk in chunks]
        if self.reads_propositions and evidence.hits:
            texts.append(". ".join(hit.proposition.text for hit in evidence.hits))
        return tuple(texts)


def _asked(query: QueryTriplet) -> str:
    """As in the lessons: the triplet, or a question alone where it is `question | answer | ?x`."""
    known, gap = query.subject, query.object
    if query.predicate.known == ANSWER and not known.placeholders and not gap.known:
        return known.known
    return shown_slot(*(str(term) for term in with_gap(query).terms))
