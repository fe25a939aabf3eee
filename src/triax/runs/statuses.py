"""What has become of each job, as it says itself: one small file a run.

What a scheduler says of a job is no guide: one that was handed to it by another program can end as
completed though the run in it failed, and one on a node that was cut off runs on.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from triax.records.files import write_json
from triax.runs.attempts import Worker

FOLDER = "status"
# A status that is older than this is of a process that is gone: it is renewed every `BEAT_S`.
SILENCE_S = 120.0
BEAT_S = 20.0
STATES = ("running", "finished", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a run: running, finished, failed, or stopped (asked to end before its end).

    `program` is the one that runs or ended last, `seconds` how long the run took so far in this
    attempt, `said` the last words of its stderr.
    """

    name: str
    state: str
    attempt: Worker
    program: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    said: str = ""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "JobStatus":
        """The status of a row as `save` writes it."""
        return cls(**{**row, "attempt": Worker(**row["attempt"])})

    def told(self) -> str:
        """In a few words, such as `failed: answer ended with 1 in job 7_2: error: no reader`."""
        last = self.said.strip().splitlines()[-1:] or [""]
        where = f"in job {self.attempt.job} on {self.attempt.host}"
        if self.attempt.restart:
            where += f" (start {self.attempt.restart + 1})"
        if self.state == "failed":
            return f"failed: {self.program} ended with {self.exit_code} {where}: {last[0]}"
        return f"{self.state}: {self.program} {where}, {self.seconds:.0f} s"


def status_path(folder: Path | str, name: str) -> Path:
    """Where the status of a run of a study lies."""
    return Path(folder) / FOLDER / f"{name}.json"


def save(folder: Path | str, status: JobStatus) -> None:
    """Writes a status."""
    write_json(status_path(folder, status.name), asdict(status))


def load(folder: Path | str, name: str) -> JobStatus | None:
    """The status of a run; None if it never began.

    A status that says running, and that nobody renews, is given as stopped.

    Raises:
        ValueError: the file is no status.
    """
    path = status_path(folder, name)
    try:
        status = JobStatus.from_json(json.loads(path.read_text("utf-8")))
        if status.state == "running" and age(path) > SILENCE_S:
            return replace(status, state="stopped")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no status ({error}); delete it") from None
    return status


def load_all(folder: Path | str) -> dict[str, JobStatus]:
    """The statuses of all runs of a study by name."""
    names = sorted(path.stem for path in (Path(folder) / FOLDER).glob("*.json"))
    found = {name: load(folder, name) for name in names}
    return {name: status for name, status in found.items() if status is not None}


def is_held(status: JobStatus, attempt: Worker) -> bool:
    """Whether another live process than `attempt` runs the job of a status, as `load` gives it.

    One that was the same job of Slurm before a restart is dead, whatever it wrote.
    """
    if status.state != "running" or status.attempt == attempt:
        return False
    return not is_before(status.attempt, attempt)


def is_before(other: Worker, attempt: Worker) -> bool:
    """Whether `other` was the same job of Slurm before a restart: it is no more then."""
    return other.job == attempt.job != "local" and other.restart < attempt.restart


def age(path: Path) -> float:
    """Seconds since a file was written, by the clock of the file system it lies on."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".now.") as probe:
        return os.stat(probe.name).st_mtime - path.stat().st_mtime
