"""Runs the programs of one job, one after the other, and keeps its status up to date."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path

from triax.runs.attempts import Worker
from triax.runs.statuses import BEAT_S, JobStatus, is_held, load, save

_LAST_LINES = 12
_LAST_CHARACTERS = 2000


class JobHeld(RuntimeError):
    """Another live process runs the job."""


class JobStopped(RuntimeError):
    """The process was asked to end (SIGTERM) while the job ran; it takes up there next time."""


def run_job(
    folder: Path | str,
    name: str,
    programs: Sequence[Path | str],
    overrides: Sequence[str],
    result: Path | str,
    attempt: Worker,
    beat_s: float = BEAT_S,
) -> JobStatus:
    """Runs each program with these overrides until one fails, and writes `status/<name>.json`.

    What the programs say goes where it always goes, and the end of stderr into the status too.
    A job that is finished and has its result is not run again.

    Args:
        folder: of the study.
        name: of the run.
        programs: Python files, called in this order.
        overrides: what each is called with.
        result: the file that the last program writes.
        attempt: who runs it.
        beat_s: seconds after which the status is renewed.

    Raises:
        JobHeld: another live process runs it.
        JobStopped: this process got SIGTERM; the program got it too and has ended.
    """
    before = load(folder, name)
    if before and before.state == "finished" and Path(result).exists():
        return before
    if before and is_held(before, attempt):
        raise JobHeld(f"{name} is {before.told()}; it is left to that process")
    status = JobStatus(name, "running", attempt)
    for program in map(Path, programs):
        status = _run(folder, program, overrides, status, beat_s)
        if status.state != "running":
            break
    else:
        if Path(result).exists():
            status = replace(status, state="finished")
        else:
            said = f"{result} is not there; are TRIAX_RUNS and TRIAX_ARTIFACTS those of the plan?"
            status = replace(status, state="failed", said=said)
    save(folder, status)
    if status.state == "stopped":
        raise JobStopped(f"{name} was stopped in {status.program}; start it again to go on")
    return status


def _run(
    folder: Path | str, program: Path, overrides: Sequence[str], status: JobStatus, beat_s: float
) -> JobStatus:
    """The status after one program: running as before, failed or stopped."""
    started = time.monotonic() - status.seconds
    status = replace(status, program=program.stem)
    save(folder, status)
    said: deque[str] = deque(maxlen=_LAST_LINES)
    command = [sys.executable, str(program), *overrides]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
    reader = threading.Thread(target=_pass_on, args=(process.stderr, said), daemon=True)
    reader.start()
    with _terminating(process) as asked_to_stop:
        while (code := _wait(process, beat_s)) is None:
            save(folder, replace(status, seconds=_since(started)))
    reader.join(5)
    last = "\n".join(said)[-_LAST_CHARACTERS:]
    status = replace(status, exit_code=code, seconds=_since(started), said=last)
    if asked_to_stop or code == -signal.SIGTERM:
        return replace(status, state="stopped")
    return replace(status, state="failed") if code else status


def _since(started: float) -> float:
    return round(time.monotonic() - started, 1)


def _wait(process: subprocess.Popen, seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _pass_on(stream: TextIOWrapper, said: deque[str]) -> None:
    for line in stream:
        said.append(line.rstrip("\n"))
        sys.stderr.write(line)
        sys.stderr.flush()


@contextmanager
def _terminating(process: subprocess.Popen) -> Iterator[list[int]]:
    """Hands SIGTERM on to the program; gives a list that is filled once it came."""
    got: list[int] = []

    def hand_on(number: int, frame: object) -> None:
        got.append(number)
        process.terminate()

    if threading.current_thread() is not threading.main_thread():
        yield got
        return
    before = signal.signal(signal.SIGTERM, hand_on)
    try:
        yield got
    finally:
        signal.signal(signal.SIGTERM, before)
        if process.poll() is None:  # an exception came in between
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
