"""A signal that asks a training to end early: it writes a checkpoint and goes on another time.

Slurm sends SIGUSR1 ahead of a time limit or of a preemption where a job asks for it
(`--signal=B:USR1@120`), and SIGTERM at the end.
"""

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_log = logging.getLogger(__name__)
SIGNALS = (signal.SIGUSR1, signal.SIGTERM)


class StopRequest:
    """Says whether a signal has come since it was entered: `with StopRequest() as stop: stop()`.

    What the signals did before is put back at the end. Outside of the main thread, where Python
    can take no signals, none ever comes.
    """

    def __init__(self) -> None:
        self._name = ""
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        """Whether one has come."""
        return bool(self._name)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for one in SIGNALS:
                self._before[one] = signal.signal(one, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one, before in self._before.items():
            signal.signal(one, before)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._name = signal.Signals(number).name
        _log.info("%s: a checkpoint follows", self._name)
