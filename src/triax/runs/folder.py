"""Run folders: one configuration each, one process at a time (R28, R30)."""

import fcntl
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

from triax.records.files import write_json
from triax.runs.manifest import describe_environment
from triax.runs.settings import differences, flat, shown_differences

# Locks would be let go with the last reference to their file; a caller may keep the path only.
_HELD: set[IO[str]] = set()


class RunFolderError(RuntimeError):
    """The folder cannot be used for this run; the message says why and what to do."""


class RunFolder:
    """A claimed folder. Its lock is held until `release`, or until the process ends."""

    def __init__(self, path: Path, lock: IO[str]):
        self.path = path
        self._lock = lock

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def release(self) -> None:
        """Lets another process claim the folder."""
        _HELD.discard(self._lock)
        self._lock.close()


def claim(path: Path | str, config: Mapping[str, Any], ignored: Collection[str] = ()) -> RunFolder:
    """Takes a folder for a run, or takes it up again where the same run left off.

    The configuration is kept as `config.json` and the environment as `environment.json`. Keys in
    `ignored` (dotted) may differ between calls: those that do not change any result.

    Raises:
        RunFolderError: the folder holds a run of another configuration, or a live one.
    """
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    lock = (path / ".lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise RunFolderError(
            f"{path} is in use by process {holder}; wait for it, or use a new name="
        ) from None
    except OSError as error:
        lock.close()
        raise RunFolderError(
            f"{path} cannot be locked ({error.strerror}); use a folder on a file system with locks"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    try:
        _compare(path, config, ignored)
    except BaseException:
        lock.close()
        raise
    _HELD.add(lock)
    return RunFolder(path, lock)


def _compare(path: Path, config: Mapping[str, Any], ignored: Collection[str]) -> None:
    wanted = json.loads(json.dumps(config))
    stored_path = path / "config.json"
    if not stored_path.exists():
        write_json(stored_path, wanted)
        write_json(path / "environment.json", describe_environment())
        return
    try:
        stored = json.loads(stored_path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunFolderError(f"{stored_path} is no JSON ({error}); delete the folder") from None
    if changed := differences(flat(stored), flat(wanted), ignored):
        raise RunFolderError(
            f"{path} holds a run with another configuration ({shown_differences(changed)}); use "
            "a new name=, or delete the folder"
        )
