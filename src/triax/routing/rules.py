"""Routers without any training: the controls that a trained one must beat."""

import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from triax.records.questions import Question
from triax.records.routes import Route, Routing

_WORD = re.compile(r"\w+")
# A name: capitalised words, small ones between them allowed; a year or number is one too.
_NAME = re.compile(
    r"[A-Z][\w'’.&-]*(?:\s+(?:(?:of|the|de|la|von|van|and|for|in)\s+){0,2}[A-Z0-9][\w'’.&-]*)*"
    r"|\"[^\"]+\"|“[^”]+”|\b\d[\d,.]*\b"
)
_ASKING = frozenset(
    "a an the in on at by for from to of with and or which what who whom whose when where why how "
    "is are was were be do does did has have had can could will would between name are".split()
)


@dataclass(frozen=True, slots=True)
class FixedRouter:
    """Every question goes the same way."""

    side: Route
    name: str = "fixed"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """One routing a question."""
        return [Routing(self.side) for _ in questions]


@dataclass(frozen=True, slots=True)
class CountRouter:
    """Graph for questions with at least so many of something that is counted in their text.

    With `count_names` and 2 it is R2Adapter's NER router (fewer than two entities: vanilla), with
    `count_words` the control that the paper leaves out.
    """

    count: Callable[[str], int]
    least: int
    name: str = "count"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """One routing a question."""
        return [
            Routing("graph" if self.count(one.text) >= self.least else "vanilla")
            for one in questions
        ]


@dataclass(frozen=True, slots=True)
class KindRouter:
    """Graph for questions of certain types, as the data set names them (an oracle of the type)."""

    graph_kinds: Collection[str]
    name: str = "kind"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """One routing a question."""
        return [
            Routing("graph" if one.kind in self.graph_kinds else "vanilla") for one in questions
        ]


@dataclass(frozen=True, slots=True)
class OracleRouter:
    """Graph for the questions that need it, by their labels: the upper bound of routing.

    A question without a label, which neither side answers, goes to `otherwise`.
    """

    needs_graph: Mapping[str, bool]
    otherwise: Route = "vanilla"
    name: str = "oracle"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """One routing a question."""
        return [Routing(self._side(one)) for one in questions]

    def _side(self, question: Question) -> Route:
        if question.id not in self.needs_graph:
            return self.otherwise
        return "graph" if self.needs_graph[question.id] else "vanilla"


@dataclass(frozen=True, slots=True)
class RandomRouter:
    """Graph with a fixed probability: what any router must beat at the same graph ratio."""

    p_graph: float
    seed: int = 0
    name: str = "random"

    async def route(self, questions: Sequence[Question]) -> list[Routing]:
        """A question's route depends on its id and the seed alone."""
        draws = [random.Random(f"{self.seed}|{one.id}").random() for one in questions]
        return [Routing("graph" if draw < self.p_graph else "vanilla") for draw in draws]


def count_words(text: str) -> int:
    """Words of a question.

    >>> count_words("Who wrote Brand?")
    3
    """
    return len(_WORD.findall(text))


def count_names(text: str) -> int:
    """Names, quoted titles and numbers in a question, by their spelling alone.

    >>> count_names("Are Vertigo and Rear Window both by Alfred Hitchcock?")
    3
    """
    found = 0
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and words[0].casefold() in _ASKING:
            words = words[1:]
        # "and" may join two names, or stand inside one: two here, as entity taggers count.
        parts = " ".join(words).split(" and ")
        found += sum(bool(part.strip()) for part in parts)
    return found
