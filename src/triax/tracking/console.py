"""Numbers as lines of the log, for whoever watches."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triax.tracking.tracker import Artifact

_log = logging.getLogger(__name__)


class ConsoleTracker:
    """Logs one line a call: `step 20: loss 0.6931, grad_norm 1.2`."""

    def resume(self, step: int) -> None:
        """Says where the run goes on."""
        if step > 0:
            _log.info("resumed after step %d", step)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Logs the numbers of a step."""
        _log.info("step %d: %s", step, _shown(metrics))

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Logs the numbers of the whole run."""
        _log.info("whole run: %s", _shown(metrics))

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Logs how long the table is."""
        _log.info("table %s: %d rows", name, len(rows))

    def figure(self, name: str, path: Path) -> None:
        """Logs where the figure is."""
        _log.info("figure %s: %s", name, path)

    def artifact(self, made: Artifact) -> None:
        """Logs what was made, and from what."""
        _log.info("made %s from %s", made.name, ", ".join(sorted(made.inputs)) or "nothing else")

    def finish(self, *, failed: bool = False) -> None:
        """Says so if the run failed."""
        if failed:
            _log.info("the run failed")


def _shown(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {float(value):.4g}" for name, value in metrics.items())
