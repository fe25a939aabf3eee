"""The state of one question: what is resolved, what can be searched, what is fuzzy."""

from collections.abc import Iterable
from dataclasses import dataclass

from triax.records.query_triplets import QueryTriplet
from triax.records.triplets import Triplet


@dataclass(frozen=True, slots=True)
class Resolved:
    """A triplet with nothing unknown, where it came from and in which round (0: the question)."""

    triplet: Triplet
    chunk_ids: tuple[str, ...] = ()
    round: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """T2RAG's three sets (section 3.2), each in the order of arrival and without repeats."""

    resolved: tuple[Resolved, ...] = ()
    searchable: tuple[QueryTriplet, ...] = ()
    fuzzy: tuple[QueryTriplet, ...] = ()

    @classmethod
    def of(cls, queries: Iterable[QueryTriplet]) -> "State":
        """Sorts query triplets by their kind."""
        queries = tuple(dict.fromkeys(queries))
        return cls(
            tuple(Resolved(query.as_triplet()) for query in queries if query.kind == "resolved"),
            tuple(query for query in queries if query.kind == "searchable"),
            tuple(query for query in queries if query.kind == "fuzzy"),
        )

    @property
    def is_resolved(self) -> bool:
        """Nothing is left to find."""
        return not self.searchable and not self.fuzzy
