"""The last step of T2RAG by any reader: resolved triplets and the last passages, read together."""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.synthesize import Ending, Reader, Short
from triax.records.evidence import Evidence, Hit
from triax.records.triplets import Proposition


@dataclass(frozen=True, slots=True)
class ReadingSynthesizer:
    """Shows a reader what is resolved as propositions, before those that the search found.

    So every way of reading (SPARQL, steps, Self-Ask, by question type) can end T2RAG too.

    reader: answers.
    keeps_chunks: whether it sees the passages of the last round.
    keeps_hits: whether it sees the propositions of the last round.
    """

    reader: Reader
    keeps_chunks: bool = True
    keeps_hits: bool = False

    async def synthesize(self, endings: Sequence[Ending]) -> list[Reply[Short]]:
        """One answer a question, all at once."""
        return await self.reader.read([(one.question, self._evidence(one)) for one in endings])

    def _evidence(self, ending: Ending) -> Evidence:
        known = tuple(
            Hit(
                Proposition(
                    f"resolved-{number}",
                    one.triplet,
                    " ".join(one.triplet.fields),
                    one.chunk_ids,
                ),
                1.0 if one.triplet.confidence is None else one.triplet.confidence,
                one.chunk_ids,
            )
            for number, one in enumerate(ending.state.resolved)
        )
        found = ending.evidence
        return Evidence(
            found.chunks if self.keeps_chunks else (),
            known + (found.hits if self.keeps_hits else ()),
            found.notes,
        )
