"""Puts a pipeline together from parts that a configuration names.

Each part comes as a constructor (a `functools.partial`) that still lacks what only a run can give.
What that is, its parameters say by their names, which are those of `Parts`: a part that takes a
`completer`, an `index`, `chunks` gets them, however deep it stands in other parts. So a YAML file
says what a method is, a program what it runs on, and a new method needs no line here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from triax.records.documents import Chunk
from triax.records.triplets import Extraction
from triax.records.usage import Usage
from triax.records.verbs import Completer, Encoder

if TYPE_CHECKING:
    from triax.indexing.store import TripletIndex

GIVEN = ("completer", "encoder", "chunks", "index", "extractions")


@runtime_checkable
class Indexed(Protocol):
    """A part that stands on texts which a language model wrote when they were indexed."""

    index_cost: Usage


@dataclass
class Parts:
    """What a run stands on. Index and extractions are opened when a part first asks for them.

    `index_costs` gets, by the part's name, what the model's calls have cost that made what a part
    stands on: summaries, reports. That of the triplets is not among them, they are the index's;
    `reads_triplets` says whether a part that takes the index reads them (one that reads chunks and
    their vectors alone says `reads_triplets = False`).
    """

    completer: Completer
    encoder: Encoder
    chunks: Sequence[Chunk]
    open_index: Callable[[], "TripletIndex"]
    read_extractions: Callable[[], Sequence[Extraction]]
    index_costs: dict[str, Usage] = field(default_factory=dict)
    reads_triplets: bool = False

    @cached_property
    def index(self) -> "TripletIndex":
        """The triplet index, opened once."""
        return self.open_index()

    @cached_property
    def extractions(self) -> Sequence[Extraction]:
        """The triplets as they were extracted, read once; only the original's search needs them."""
        return tuple(self.read_extractions())


def assemble(part: Any, parts: Parts) -> Any:
    """Makes a part out of its constructor, and first the parts among its arguments.

    What is no constructor stays as it is. Among arguments, so does a constructor that lacks more
    than a run can give: it is a factory, which its owner calls (such as a search engine's).

    Raises:
        TypeError: the outermost constructor lacks more than a run can give.
    """
    if not isinstance(part, partial):
        return part
    if missing := _missing(part):
        raise TypeError(
            f"{_name(part)} lacks {', '.join(missing)}, which no run gives; name it in the "
            f"configuration (a run gives {', '.join(GIVEN)})"
        )
    given = {name: _inner(value, parts) for name, value in part.keywords.items()}
    takes = signature(part.func).parameters
    for name in GIVEN:
        if name in takes and name not in given:
            given[name] = getattr(parts, name)
    made = part.func(*(_inner(one, parts) for one in part.args), **given)
    if "index" in takes or "extractions" in takes:
        parts.reads_triplets |= getattr(made, "reads_triplets", True)
    if isinstance(made, Indexed):
        # Two parts may stand on the same texts, which were paid for once.
        parts.index_costs[_name(part)] = made.index_cost
    return made


def _inner(value: Any, parts: Parts) -> Any:
    """An argument; a mapping or a list of parts is assembled one by one."""
    if isinstance(value, partial):
        return value if _missing(value) else assemble(value, parts)
    if isinstance(value, Mapping) and any(isinstance(one, partial) for one in value.values()):
        return {key: _inner(one, parts) for key, one in value.items()}
    if isinstance(value, list | tuple) and any(isinstance(one, partial) for one in value):
        return [_inner(one, parts) for one in value]
    return value


def _missing(part: partial) -> list[str]:
    """Parameters without a value that neither the configuration nor a run gives."""
    open_kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    takes = list(signature(part.func).parameters.values())[len(part.args) :]
    return [
        one.name
        for one in takes
        if one.default is Parameter.empty
        and one.kind not in open_kinds
        and one.name not in part.keywords
        and one.name not in GIVEN
    ]


def _name(part: partial) -> str:
    return getattr(part.func, "__qualname__", repr(part.func))
