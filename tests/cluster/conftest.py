"""One real Slurm of three nodes for all tests of this folder (see cluster.sh)."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("cluster.sh")
STATE = Path(os.environ.get("TRIAX_TEST_CLUSTER", "/tmp/triax-cluster"))
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"}


class Cluster:
    """Submits to the cluster and watches; every call has a time limit, since a dead controller
    would hang its clients."""

    nodes = ("n1", "n2", "n3")

    def __init__(self, env):
        self.env = env

    def call(self, *command, timeout=60, check=True, **environment):
        """Runs a command of Slurm, from the root of the checkout."""
        done = subprocess.run(
            list(map(str, command)),
            env=self.env | {key: str(value) for key, value in environment.items()},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, script, *arguments, options=(), folder=None, **environment):
        """The id of a job of a script in slurm/; `options` are sbatch's.

        Without other options it asks for little, so that several run at once. Its output goes to
        files `<name>-<id>[_<task>].out` in `folder`.
        """
        path = Path(script) if "/" in str(script) else ROOT / "slurm" / script
        small = ["--cpus-per-task=1", "--mem=2000", "--open-mode=append"]
        out = ["--output", f"{folder}/%x-%A_%a.out"] if folder else []
        if folder and not any("--array" in one or one == "-a" for one in options):
            out = ["--output", f"{folder}/%x-%j.out"]
        command = ["sbatch", "--parsable", *small, *out, *options, path, *arguments]
        return self.call(*command, **environment).split(";")[0]

    def jobs(self, job):
        """What Slurm says of a job, or of each task of an array: one dict each."""
        lines = self.call("scontrol", "-o", "show", "job", job).splitlines()
        return [dict(pair.split("=", 1) for pair in line.split() if "=" in pair) for line in lines]

    def states(self, job):
        """The state of a job, or of each task of an array."""
        return [one["JobState"] for one in self.jobs(job)]

    def until(self, true, what, timeout=120):
        """Waits until `true()` is; returns what it gave."""
        limit = time.monotonic() + timeout
        while time.monotonic() < limit:
            if found := true():
                return found
            time.sleep(0.2)
        raise AssertionError(f"not within {timeout} s: {what}\n{self.call('squeue', '-l')}")

    def wait(self, job, timeout=300):
        """The states of a job's tasks once all have ended."""
        return self.until(
            lambda: (found := self.states(job)) and set(found) <= ENDED and found,
            f"job {job} ends; now {self.jobs(job)}",
            timeout,
        )

    def start_again(self, job, timeout=60):
        """A job that was requeued is held for two minutes; this starts it at once."""
        self.until(lambda: "PENDING" in self.states(job), f"job {job} is requeued", timeout)
        # A node refuses a job that begins in the second in which it was killed there.
        time.sleep(2)
        self.call("scontrol", "update", f"JobId={job}", "StartTime=now")

    def cut(self, node):
        """Takes the network link of a node down; what runs there goes on."""
        subprocess.run(["ip", "-n", f"triax{node[1:]}", "link", "set", "eth0", "down"], check=True)

    def mend(self, node):
        """Puts the link back and waits until the node serves again."""
        name = f"triax{node[1:]}"
        subprocess.run(["ip", "-n", name, "link", "set", "eth0", "up"], check=True)
        # The default route went away with the link.
        route = ["ip", "-n", name, "route", "replace", "default", "via", "10.77.0.1"]
        subprocess.run(route, check=True)
        self.until(
            lambda: (
                self.call("sinfo", "-h", "-n", node, "-p", "main", "-o", "%t")
                in ("idle", "mix", "alloc")
            ),
            f"node {node} serves again",
        )


def _refusal():
    """Why there can be no cluster here; None if there can."""
    missing = [name for name in ("slurmctld", "slurmd", "munged", "ip") if not shutil.which(name)]
    if missing and (os.geteuid() != 0 or not shutil.which("apt-get")):
        return (
            f"Slurm is not installed here ({', '.join(missing)}): tests/cluster/cluster.sh install"
        )
    if missing:
        pytest.fail(
            f"{', '.join(missing)} could be installed: run tests/cluster/cluster.sh install"
        )
    if os.geteuid() != 0:
        return "a test cluster needs root, for the network of its nodes"
    bridge = f"triax{os.getpid()}"
    tried = subprocess.run(["ip", "link", "add", bridge, "type", "bridge"], capture_output=True)
    if tried.returncode:
        return f"no network can be made here ({tried.stderr.decode().strip()})"
    subprocess.run(["ip", "link", "del", bridge], check=True)
    return None


def _answers(env):
    try:
        done = subprocess.run(["sinfo", "-h"], env=env, capture_output=True, timeout=5)
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return False
    return done.returncode == 0


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The cluster; one that is up already is used, and left up."""
    env = os.environ | {"SLURM_CONF": str(STATE / "slurm.conf")}
    env |= {"TRIAX_VENV": sys.prefix, "TRIAX_SITE": str(ROOT / "slurm" / "site" / "tests.env")}
    env |= {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    for name in [name for name in env if name.startswith(("SBATCH_", "SLURM_JOB"))]:
        del env[name]
    if reason := _refusal():
        pytest.skip(reason)
    is_ours = not _answers(env)
    if is_ours:
        subprocess.run([SCRIPT, "up"], check=True, timeout=120)
    yield Cluster(env)
    if is_ours:
        subprocess.run([SCRIPT, "down"], check=True, timeout=120)


@pytest.fixture
def places(tmp_path):
    """Where the programs of one test keep what they make."""
    names = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    return {key: str(tmp_path / name) for key, name in names.items()}
