"""Which job of Slurm this process is, read from its environment alone."""

import os
from collections.abc import Mapping

# What tells one attempt at one part of a job from another, and where it ran.
_NAMES = (
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_RESTART_COUNT",
    "SLURMD_NODENAME",
)


def slurm_ids(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Job, array, node and count of restarts, by their variables in small letters.

    Outside of Slurm it is empty.

    >>> slurm_ids({"SLURM_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "HOME": "/"})
    {'slurm_job_id': '7', 'slurm_array_task_id': '2'}
    """
    return {name.lower(): environment[name] for name in _NAMES if environment.get(name)}


def array_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """The id that all tasks of a job array share; None outside of one."""
    return environment.get("SLURM_ARRAY_JOB_ID") or None
