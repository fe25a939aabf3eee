"""Which servers of a language model there are: a file for each, in a folder that all nodes see."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Words of squeue for a job that will not run again by itself.
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
_ANSWER_S = 30.0  # a controller that is restarted is given that long


class NoServerError(RuntimeError):
    """No server is there and none is to come; the message says where one was looked for."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server as its file tells of it; one that was started anew is another.

    Args:
        file: name of the file.
        base_url: address up to and including `/v1`.
        model: the name that requests give.
        job: of Slurm, `12` or `12_3` for a task of an array.
        restart: how often Slurm has started that job anew.
        host: the node.
    """

    file: str
    base_url: str
    model: str
    job: str
    restart: int
    host: str


def read_servers(folder: Path | str) -> tuple[list[Server], list[str]]:
    """The servers that files `*.json` of a folder tell of, and the names of other such files.

    A folder that is not there holds none. A file that goes away meanwhile is passed over.
    """
    found, others = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            row = json.loads(path.read_bytes())
            server = Server(
                path.name,
                str(row["base_url"]),
                str(row["model"]),
                str(row["job"]),
                int(row["restart"]),
                str(row["host"]),
            )
        except OSError:
            continue  # withdrawn; a network file system may say so in several ways
        except (ValueError, KeyError, TypeError):
            others.append(path.name)
        else:
            found.append(server)
    return found, others


def is_of(job: str, server: Server) -> bool:
    """Whether a server belongs to a job, or to an array of that number.

    >>> is_of("12", Server("12_3.json", "http://n1:1/v1", "m", "12_3", 0, "n1"))
    True
    """
    return server.job == job or server.job.startswith(f"{job}_")


def job_states(job: str) -> dict[str, str] | None:
    """The state of a job, or of each task of an array, by its number: `{"12_0": "RUNNING"}`.

    None where Slurm is not installed or does not answer; a job that it has forgotten has no task.
    """
    if shutil.which("squeue") is None:
        return None
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T", f"--jobs={job}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return {} if "Invalid job id" in done.stderr else None
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line.strip())
