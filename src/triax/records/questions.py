"""Questions with what is known about their answers."""

from dataclasses import dataclass

from triax.records.query_triplets import QueryTriplet
from triax.records.triplets import Triplet


@dataclass(frozen=True, slots=True)
class Step:
    """One gold sub-question; `#1` in its text stands for the answer of step 1."""

    question: str
    answer: str
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Every tuple is empty where the data set does not say.

    `answers` holds the gold answer first, then its aliases. `gold_document_ids` are the documents
    that are needed to answer; `unmatched_gold` names gold documents that the corpus lacks (R19).
    `search` is what a retriever is asked instead of the text, where a rewriter has put one.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    kind: str = ""
    gold_document_ids: tuple[str, ...] = ()
    unmatched_gold: tuple[str, ...] = ()
    gold_triplets: tuple[Triplet, ...] = ()
    gold_query_triplets: tuple[QueryTriplet, ...] = ()
    steps: tuple[Step, ...] = ()
    search: str = ""

    @property
    def searched(self) -> str:
        """What a retriever is asked."""
        return self.search or self.text
