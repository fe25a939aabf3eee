"""Which way a question goes, and the examples that a router learns from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Route = Literal["vanilla", "graph"]


@dataclass(frozen=True, slots=True)
class Routing:
    """A decision. The probabilities are those that the side suffices; None where a rule decided."""

    route: Route
    p_vanilla: float | None = None
    p_graph: float | None = None


@dataclass(frozen=True, slots=True)
class RouterExample:
    """A question with the sides that find its gold documents (R2Adapter, section 3.1).

    `vanilla` and `graph` say which side is good enough: both where they are equally good.
    `vanilla_rank` and `graph_rank` are the average ranks of the gold documents, None where a side
    does not find them all. A question with `vanilla` False is one that needs the graph.
    """

    id: str
    question: str
    kind: str
    vanilla: bool
    graph: bool
    vanilla_rank: float | None
    graph_rank: float | None
    num_gold: int

    @property
    def needs_graph(self) -> bool:
        """Whether vanilla retrieval does not suffice."""
        return not self.vanilla

    def to_json(self) -> dict[str, Any]:
        """A JSON line."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "RouterExample":
        """Reads what `to_json` wrote.

        Raises:
            ValueError: a field is missing.
        """
        if missing := [name for name in cls.__slots__ if name not in row]:
            raise ValueError(
                f"a router example lacks {missing}, it has {sorted(row)}; "
                "make the labels again with train/label_router.py"
            )
        return cls(**{name: row[name] for name in cls.__slots__})
