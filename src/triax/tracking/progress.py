"""Progress of long steps: a bar on a terminal, a line now and then in a log (R22)."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


@contextmanager
def track(label: str, total: int, every_s: float = 30.0) -> Iterator[Callable[[int], None]]:
    """Gives a function that is called with the number of items done so far.

    On a terminal it draws a bar; elsewhere it logs a line at most every `every_s` seconds, so
    that the log of a cluster job stays readable. The last line says how long all took.
    """
    started = time.monotonic()
    done = 0
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        name = TextColumn("{task.description}", markup=False)
        columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)

            def advance(count: int) -> None:
                nonlocal done
                done = count
                bar.update(task, completed=count)

            yield advance
    else:
        last = started

        def advance(count: int) -> None:
            nonlocal done, last
            done = count
            if time.monotonic() - last >= every_s:
                last = time.monotonic()
                _log.info("%s: %d of %d, %.0f s", label, count, total, last - started)

        yield advance
    _log.info("%s: %d of %d done in %.1f s", label, done, total, time.monotonic() - started)
