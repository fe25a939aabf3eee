"""Jobs of a study, one after the other: answers and scores each.

python eval/run_jobs.py manifest=runs/studies/hotpot/manifest.jsonl

In a task of a Slurm array it takes its share of them, every so many; else all. What became of a job
stands in runs/studies/<study>/status/<name>.json. Finished jobs are skipped, so that failed tasks,
or all, can be submitted again; one that fails leaves the others. Ends with 1 if a job failed, with
75 ("try again") if another live process holds one.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hydra
from omegaconf import DictConfig

from triax.runs.attempts import Worker
from triax.runs.execute import JobHeld, JobStopped, run_job
from triax.runs.jobs import Job, PlanError, read_jobs, share
from triax.tracking.wandb_sweeps import chosen_values

HERE = Path(__file__).parent
RUN = (HERE / "answer.py", HERE / "score.py")
PREPARE = (HERE / "extract.py", HERE / "index.py")
AGAIN = 75
STOPPED = 143


@hydra.main(version_base="1.3", config_path="../conf", config_name="run_jobs")
def main(cfg: DictConfig) -> None:
    say_why()
    manifest = Path(cfg.manifest).expanduser()
    try:
        jobs = read_jobs(manifest)
        if cfg.chosen:
            jobs = [_chosen(jobs, cfg.chosen)]
        elif cfg.prepare:
            jobs = share(list(_first_of_each_index(jobs)), *_task())
        else:
            jobs = share(jobs, *_task())
    except (PlanError, ValueError) as error:
        sys.exit(f"error: {error}")
    codes = []
    for number, job in enumerate(jobs, 1):
        print(f"job {job.number} ({number} of {len(jobs)} here): {job.name}", flush=True)
        codes.append(_run(manifest.parent, job, cfg.prepare))
    if code := 1 if 1 in codes else max(codes, default=0):
        sys.exit(code)


def say_why() -> None:
    """Lets the last line of a job that fails be its fault, not advice on how to see it."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")


def _run(folder: Path, job: Job, is_prepared: bool) -> int:
    """0, or why the job is not done: 1 it failed, 75 another process holds it."""
    name = f"prepare-{Path(job.index).name}" if is_prepared else job.name
    programs = PREPARE if is_prepared else RUN
    if is_prepared:
        result = Path(job.index) / "manifest.json"
    else:
        result = folder.parent.parent / "answer" / job.name / "metrics.json"
    try:
        status = run_job(folder, name, programs, job.overrides, result, Worker.this())
    except JobHeld as error:
        print(error, flush=True)
        return AGAIN
    except JobStopped as error:
        print(error, flush=True)
        sys.exit(STOPPED)
    print(f"{name} {status.told()}", flush=True)
    return int(status.state == "failed")


def _task() -> tuple[int, int]:
    """This task's number from 0, and how many tasks there are."""
    known = os.environ
    first = int(known.get("SLURM_ARRAY_TASK_MIN") or 0)
    task = int(known.get("SLURM_ARRAY_TASK_ID") or first) - first
    return task, int(known.get("SLURM_ARRAY_TASK_COUNT") or 1)


def _first_of_each_index(jobs: list[Job]) -> Iterator[Job]:
    seen = set()
    for job in jobs:
        if job.index and job.index not in seen:
            seen.add(job.index)
            if not (Path(job.index) / "manifest.json").exists():
                yield job


def _chosen(jobs: list[Job], path: str) -> Job:
    values = chosen_values(path)
    for job in jobs:
        if job.settings == values:
            return job
    raise PlanError(f"no job has {values}; the W&B sweep is not that of this plan, make a new one")


if __name__ == "__main__":
    main()
