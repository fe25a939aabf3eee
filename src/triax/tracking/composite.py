"""Several trackers as one."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triax.tracking.console import ConsoleTracker
from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Artifact, Tracker

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

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Each takes the table."""
        for tracker in self.trackers:
            tracker.table(name, rows)

    def figure(self, name: str, path: Path) -> None:
        """Each takes the figure."""
        for tracker in self.trackers:
            tracker.figure(name, path)

    def artifact(self, made: Artifact) -> None:
        """Each is told what was made."""
        for tracker in self.trackers:
            tracker.artifact(made)

    def finish(self, *, failed: bool = False) -> None:
        """Closes each."""
        faults = []
        for tracker in self.trackers:
            try:
                tracker.finish(failed=failed)
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
    *,
    study: str | None = None,
    job_type: str = "run",
    tags: Sequence[str] = (),
    process_index: int = 0,
) -> CompositeTracker:
    """The trackers of a run: rows in its folder and lines in the log, always, and the `others`.

    Args:
        folder: the run folder.
        name: of the run.
        config: what the run is made from, for trackers that show it.
        others: constructors that take `folder`, `name`, `config`, `study`, `job_type` and `tags`.
        study: what the run is one of several of, if it is.
        job_type: the program, such as "answer" or "train_router".
        tags: words that runs are found by.
        process_index: of this process among those that make the run together. All but the first
            one get a tracker that keeps nothing.
    """
    if process_index != 0:
        return CompositeTracker(())
    made: list[Tracker] = [JsonlTracker(folder), ConsoleTracker()]
    facts = {"study": study, "job_type": job_type, "tags": tuple(tags)}
    made += [make(folder=Path(folder), name=name, config=config, **facts) for make in others]
    return CompositeTracker(made)
