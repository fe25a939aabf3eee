"""What a program tells of its run: numbers by step, a few at the end, tables, and what it made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that a run made, and what it was made from: one link of a lineage.

    The name and the digest together are what a later run calls an input by, so two artifacts of
    one name differ in their digests.
    """

    name: str
    kind: str  # such as "corpus", "triplets", "index", "answers", "scores", "weights"
    digest: str  # hexadecimal, of all that its content hangs on
    folder: Path | None = None  # where it lies; None for what is no folder
    files: tuple[str, ...] = ()  # those in the folder that belong to it; none named means all
    counts: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)  # digests by name

    def to_json(self) -> dict[str, Any]:
        """All but the files, as one row of a lineage."""
        return {
            "name": self.name,
            "kind": self.kind,
            "digest": self.digest,
            "folder": None if self.folder is None else str(self.folder),
            "counts": dict(self.counts),
            "inputs": dict(self.inputs),
        }


@runtime_checkable
class Tracker(Protocol):
    """Takes what one run tells. Steps never fall within one process."""

    def resume(self, step: int) -> None:
        """The run goes on after this step; what is kept of later ones will be made again.

        Calling it is optional: without it, the first step that is logged tells.
        """
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Numbers of one step; several calls may name the same step with other metrics."""
        ...

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Numbers of the whole run, such as the best score."""
        ...

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows of JSON values, such as one a question; they need not have the same keys."""
        ...

    def figure(self, name: str, path: Path) -> None:
        """A finished figure, an SVG file."""
        ...

    def artifact(self, made: Artifact) -> None:
        """What the run made, once it is whole."""
        ...

    def finish(self, *, failed: bool = False) -> None:
        """All is on disk, or sent, when this returns; nothing is told afterwards."""
        ...
