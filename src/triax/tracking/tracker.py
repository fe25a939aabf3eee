"""What a program tells while it trains: numbers by step, and a few at the end."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class Tracker(Protocol):
    """Takes the numbers of one run. Steps never fall within one process."""

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

    def finish(self) -> None:
        """All is on disk, or sent, when this returns; nothing is logged afterwards."""
        ...
