"""Several trackers as one."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triax.tracking.console import ConsoleTracker
from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Tracker

_log = logging.getLogger(__name__)


class CompositeTracker:
    """Hands every call to each of its trackers, in order.

    `finish` reaches all of them even if one fails: the first fault is raised once all are closed.
    """

    def __init__(self, trackers: Sequence[Tracker]):
        self.trackers = tuple(trackers)

    def resume(self, step: int) -> None:
        """Each drops what it keeps of later steps."""
        for tracker in self.trackers:
            tracker.resume(step)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Each takes the numbers of a step."""
        for tracker in self.trackers:
            tracker.log(metrics, step)

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Each takes the numbers of the whole run."""
        for tracker in self.trackers:
            tracker.summary(metrics)

    def finish(self) -> None:
        """Closes each."""
        faults = []
        for tracker in self.trackers:
            try:
                tracker.finish()
            except Exception as error:
                _log.warning("%s could not be closed: %s", type(tracker).__name__, error)
                faults.append(error)
        if faults:
            raise faults[0]


def open_trackers(
    folder: Path | str,
    name: str,
    config: Mapping[str, Any],
    others: Sequence[Callable[..., Tracker]] = (),
) -> CompositeTracker:
    """The trackers of a run: rows in its folder and lines in the log, always, and the `others`.

    Args:
        folder: the run folder.
        name: of the run.
        config: what the run is made from, for trackers that show it.
        others: constructors that take `folder`, `name` and `config`.
    """
    made: list[Tracker] = [JsonlTracker(folder), ConsoleTracker()]
    made += [make(folder=Path(folder), name=name, config=config) for make in others]
    return CompositeTracker(made)
