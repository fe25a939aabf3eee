"""Where and with what a run was made, so that its numbers can be made again."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("triax", "jax", "jaxlib", "flax", "numpy", "tokenizers", "datasets", "faiss-cpu")


def describe_environment() -> dict[str, Any]:
    """Time, machine, versions and the state of the source tree; no user, host or path.

    What cannot be had is None: a package that is not installed, git outside a checkout.
    """
    changes = _git("status", "--porcelain")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "git": _git("rev-parse", "HEAD"),
        "git_is_clean": None if changes is None else changes == "",
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
