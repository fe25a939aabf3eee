"""Recognition memory as a protocol: which of the triplets that a question was linked to help."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from triax.records.triplets import Proposition
from triax.records.usage import Usage
from triax.retrieval.row_scores import Groups


@dataclass(frozen=True, slots=True)
class Kept:
    """The places that are kept of a group's candidates, and what it cost to choose them."""

    places: Sequence[int]
    usage: Usage = Usage()


@runtime_checkable
class TripletFilter(Protocol):
    """Says for each group of queries which of its candidates help to answer it.

    No place at all drops the link altogether, so that the question is answered by passage scores.
    """

    def keep(self, groups: Groups, candidates: Sequence[Sequence[Proposition]]) -> list[Kept]: ...
