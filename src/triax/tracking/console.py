"""Numbers as lines of the log, for whoever watches."""

import logging
from collections.abc import Mapping

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

    def finish(self) -> None:
        """Nothing to do."""


def _shown(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {float(value):.4g}" for name, value in metrics.items())
