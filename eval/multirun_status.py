"""The status of each job of `-m`, as other drivers of a sweep write it.

Hydra starts the jobs then, in this process or by a launcher elsewhere, and a launcher's job in
Slurm ends as completed though the run in it failed. conf/sweep/ names this callback.
"""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.core.utils import JobStatus as HydraStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig

from triax.runs.attempts import Worker
from triax.runs.statuses import BEAT_S, JobStatus, save

# A planner goes through the same jobs and runs none of them.
PROGRAMS = ("answer", "score")


class MultirunStatus(Callback):
    """Writes runs/studies/<study>/status/<name>.json at the start and the end of a job."""

    def __init__(self, beat_s: float = BEAT_S) -> None:
        self._beat_s = beat_s
        self._now: tuple[Path, JobStatus, threading.Event, threading.Thread] | None = None

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Says that the run runs, until its end."""
        job = config.hydra.job
        if config.hydra.mode != RunMode.MULTIRUN or job.name not in PROGRAMS:
            return
        folder = Path(config.paths.runs).expanduser() / "studies" / config.study
        status = JobStatus(config.name, "running", Worker.this(), job.name)
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(folder, status, ended), daemon=True)
        save(folder, status)
        renewing.start()
        self._now = folder, status, ended, renewing

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Says how it ended."""
        if self._now is None:
            return
        folder, status, ended, renewing = self._now
        self._now = None
        ended.set()
        renewing.join()  # its last word must not come after ours
        if job_return.status == HydraStatus.COMPLETED:
            save(folder, replace(status, state="finished", exit_code=0))
        else:
            said = f"{type(job_return._return_value).__name__}: {job_return._return_value}"
            save(folder, replace(status, state="failed", exit_code=1, said=said))

    def _renew(self, folder: Path, status: JobStatus, ended: threading.Event) -> None:
        while not ended.wait(self._beat_s):
            save(folder, status)
