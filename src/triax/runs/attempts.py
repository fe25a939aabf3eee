"""Attempts at a shard: private working files, and a result of which only the first one counts."""

import json
import logging
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from triax.records.files import write_json
from triax.runs.shards import DONE, ShardPlan, fault_of, hash_file, put_folder

FAILED = "failed.json"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that works on shards; `token` tells it from all others, on any machine."""

    job: str
    restart: int
    host: str
    process: int
    token: str

    @classmethod
    def this(cls) -> "Worker":
        """This process, with its Slurm job and how often that was requeued, if it is one."""
        known = os.environ
        job = known.get("SLURM_JOB_ID", "local")
        if "SLURM_ARRAY_JOB_ID" in known and "SLURM_ARRAY_TASK_ID" in known:
            job = f"{known['SLURM_ARRAY_JOB_ID']}_{known['SLURM_ARRAY_TASK_ID']}"
        restart = int(known.get("SLURM_RESTART_COUNT") or 0)
        host = known.get("SLURMD_NODENAME") or socket.gethostname()
        return cls(job, restart, host, os.getpid(), secrets.token_hex(3))

    @property
    def name(self) -> str:
        """All of it as the name of a file, such as `12_3.r1.n2.4711.9f03ab`."""
        parts = (self.job, f"r{self.restart}", self.host, str(self.process), self.token)
        return ".".join(re.sub(r"[^\w-]+", "-", part) for part in parts)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One worker at one shard. Its folder is its own: nobody else writes there."""

    plan: ShardPlan
    number: int
    worker: Worker

    @property
    def folder(self) -> Path:
        """Where its working files are."""
        return self.plan.attempts(self.number) / self.worker.name

    def left_by_others(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """JSON objects, one a line, in files of other attempts at the shard.

        They are copied, not taken: the other may be alive and write. So its last line counts only
        once it has its end, and no file is touched.
        """
        rows: list[dict[str, Any]] = []
        for folder in sorted(self.plan.attempts(self.number).glob("*")):
            if folder != self.folder:
                for name in names:
                    rows += _whole_lines(folder / name)
        return rows

    def publish(self, files: Sequence[str], record: Mapping[str, Any]) -> bool:
        """Makes files of the working folder the result of the shard; the first to do so wins.

        All files and `done.json` appear at once, by one rename. The working folder goes, whether
        this attempt was the first or not.

        Args:
            files: their names.
            record: what `done.json` says besides hashes, sizes and who made it.

        Returns:
            Whether this is the result now; if not, that of another attempt stands.
        """
        outgoing = self.folder / "outgoing"
        outgoing.mkdir()
        for name in files:
            os.rename(self.folder / name, outgoing / name)
        done = {
            **record,
            "shard": self.number,
            "items_sha256": self.plan.items_sha256(self.number),
            "made_by": asdict(self.worker),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": {name: _sync(outgoing / name) for name in files},
        }
        write_json(outgoing / DONE, done)
        is_first = put_folder(outgoing, self.plan.finished(self.number))
        self.discard()
        if not is_first:
            _log.warning("shard %d was finished by another meanwhile", self.number)
        return is_first

    def fail(self, reason: str) -> None:
        """Writes down why there is no result; the files stay, for the next attempt to copy."""
        write_json(self.folder / FAILED, {"reason": reason})

    def discard(self) -> None:
        """Removes the working folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def withdraw(self, is_sound: bool = False) -> None:
        """Takes the result of the shard away, so that it can be made again.

        A sound one is left alone, unless `is_sound` says that it is to be made better: then it
        becomes an attempt, whose lines this one copies. Others go to `broken/`.
        """
        place, expected = self.plan.finished(self.number), self.plan.items_sha256(self.number)
        if is_sound:
            aside = self.folder.with_name(f"{self.worker.name}.withdrawn")
        else:
            aside = self.plan.folder / "broken" / f"{self.number:06d}.{self.worker.name}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or (not is_sound and not fault_of(place, expected)):
            return
        try:
            os.rename(place, aside)
        except FileNotFoundError:  # another has done so
            return
        # Between look and rename another may have put a sound one there: it goes back.
        if not is_sound and not fault_of(aside, expected) and not put_folder(aside, place):
            shutil.rmtree(aside, ignore_errors=True)


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in text.split(b"\n")[:-1]:
        try:
            row = json.loads(line)
        except ValueError:  # a page that another machine has only half seen; it is made again
            continue
        if isinstance(row, dict):
            yield row


def _sync(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return {"sha256": hash_file(path), "bytes": path.stat().st_size}
