"""A long list of items in shards that many machines work on; each shard is published once (R30).

    manifest.json            what was planned: inputs, counts, the hash of the items of each shard
    items/000003.jsonl       the items of a shard
    attempts/000003/<name>/  working files of one attempt, in which nobody else writes
    finished/000003/         its result: files and `done.json`; whole or not there, never changed
    broken/                  results whose files were altered, put aside to be made again

A node that is cut off goes on working while its task is started again elsewhere, and file locks
need not hold between the nodes of a cluster. So nothing rests on locks: whatever two may do at
once is a rename of a folder to a name where no folder stands, and one of them wins.
`triax.runs.attempts` makes results; this module plans and checks.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triax.records.files import atomic_write, json_line, read_jsonl, write_json

SCHEMA = 1
DONE = "done.json"


class ShardError(RuntimeError):
    """A plan or its shards cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What was planned, and what has become of it. Shards are numbered from 0."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the plan was made for, as it was given."""
        return self.manifest["inputs"]

    @property
    def num_shards(self) -> int:
        """How many there are; 0 for no items."""
        return len(self.manifest["shards"])

    def num_items(self, number: int) -> int:
        """How many items a shard has."""
        return self.manifest["shards"][number]["items"]

    def items_sha256(self, number: int) -> str:
        """The hash of the items of a shard, as planned."""
        return self.manifest["shards"][number]["sha256"]

    def items(self, number: int) -> list[dict[str, Any]]:
        """The items of a shard, in order.

        Raises:
            ShardError: the file is not the one that was planned.
        """
        path = _items_path(self.folder, number)
        found = hash_file(path) if path.exists() else None
        if found != self.items_sha256(number):
            raise ShardError(
                f"{path} has sha256 {found}, planned was {self.items_sha256(number)}; delete "
                f"{self.folder} and plan again"
            )
        return list(read_jsonl(path))

    def finished(self, number: int) -> Path:
        """The folder of a shard's result, whether it is there or not."""
        return self.folder / "finished" / f"{number:06d}"

    def attempts(self, number: int) -> Path:
        """The folder of the attempts at a shard that are under way, were killed or failed."""
        return self.folder / "attempts" / f"{number:06d}"

    def record(self, number: int) -> dict[str, Any]:
        """What a finished shard says of itself: hashes, who made it, and what it cost."""
        return json.loads((self.finished(number) / DONE).read_text(encoding="utf-8"))

    def fault(self, number: int, is_verified: bool = True) -> str:
        """Why a shard is not finished; "" if it is.

        With `is_verified` every file is read and its hash compared, else its size alone.
        """
        place = self.finished(number)
        return fault_of(place, self.items_sha256(number), is_verified)

    def faults(self, is_verified: bool = True) -> dict[int, str]:
        """The shards that are not finished, and why."""
        found = {number: self.fault(number, is_verified) for number in range(self.num_shards)}
        return {number: reason for number, reason in found.items() if reason}

    def require_complete(self) -> None:
        """Makes sure that every shard is finished and whole.

        Raises:
            ShardError: some are not; the message lists them.
        """
        if faults := self.faults():
            listed = "; ".join(f"shard {number}: {reason}" for number, reason in faults.items())
            raise ShardError(
                f"{len(faults)} of {self.num_shards} shards of {self.folder} are not finished "
                f"({listed}); submit the same again, which makes only these"
            )


def write_plan(
    folder: Path | str,
    items: Iterable[Mapping[str, Any]],
    inputs: Mapping[str, Any],
    shard_size: int,
) -> ShardPlan:
    """Cuts items into shards of `shard_size` and writes the plan, once.

    `inputs` (JSON) say what the plan is for. A plan of the same items and inputs that is already
    there is opened.

    Raises:
        ValueError: `shard_size` is not positive.
        ShardError: the folder holds another plan, or something else.
    """
    if shard_size < 1:
        raise ValueError(f"shard_size is {shard_size}, expected at least 1")
    folder = Path(folder)
    lines = [json_line(item).encode("utf-8") for item in items]
    parts = [lines[start : start + shard_size] for start in range(0, len(lines), shard_size)]
    manifest = {
        "schema": SCHEMA,
        "inputs": json.loads(json.dumps(inputs)),
        "shard_size": shard_size,
        "num_items": len(lines),
        "shards": [
            {"items": len(part), "sha256": hashlib.sha256(b"".join(part)).hexdigest()}
            for part in parts
        ],
    }
    if not (folder / "manifest.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for number, part in enumerate(parts):
                with atomic_write(_items_path(temporary, number), "wb") as stream:
                    stream.writelines(part)
            write_json(temporary / "manifest.json", manifest)
            os.chmod(temporary, 0o755)
            put_folder(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    plan = open_plan(folder)
    _refuse_other(plan, manifest)
    return plan


def open_plan(folder: Path | str) -> ShardPlan:
    """Opens what `write_plan` wrote.

    Raises:
        ShardError: there is no plan, or one of another schema.
    """
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise ShardError(
            f"{folder} holds no plan; run `python eval/plan_shards.py` with the same settings first"
        )
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if manifest.get("schema") != SCHEMA:
        raise ShardError(
            f"{folder} has schema {manifest.get('schema')!r}, expected {SCHEMA}; delete it and "
            "plan again"
        )
    return ShardPlan(Path(folder), manifest)


def fault_of(place: Path, items_sha256: str, is_verified: bool = True) -> str:
    """Why the folder of a result cannot be used; "" if it can."""
    try:
        done = json.loads((place / DONE).read_text(encoding="utf-8"))
        if done["items_sha256"] != items_sha256:
            return "made from other items than were planned"
        for name, expected in done["files"].items():
            size = (place / name).stat().st_size
            if size != expected["bytes"]:
                return f"{name} has {size} bytes, expected {expected['bytes']}"
            if is_verified and (found := hash_file(place / name)) != expected["sha256"]:
                return f"{name} was altered: sha256 {found}, expected {expected['sha256']}"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing" if place.exists() else "missing"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{DONE} cannot be read ({error!r})"
    return ""


def put_folder(temporary: Path, place: Path) -> bool:
    """Renames a folder to `place`, where nothing may stand; False where another was first."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(temporary, place)
    except FileNotFoundError:
        # Over NFS a rename whose answer was lost is sent again, and finds its source gone.
        if temporary.exists() or not place.exists():
            raise
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    handle = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def hash_file(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_other(plan: ShardPlan, manifest: Mapping[str, Any]) -> None:
    def flat(value: Mapping[str, Any]) -> dict[str, Any]:
        rest = {key: value[key] for key in ("shard_size", "num_items", "shards")}
        return {**value["inputs"], **rest}

    there, given = flat(plan.manifest), flat(manifest)
    changed = [key for key in {**there, **given} if there.get(key) != given.get(key)]
    if changed:
        shown = "; ".join(
            "other items"
            if key == "shards"
            else f"{key}: {there.get(key)!r} there, {given.get(key)!r} given"
            for key in changed
        )
        raise ShardError(
            f"{plan.folder} was planned from something else ({shown}); go on with what is there, "
            "or delete the folder, and with it the shards that are finished, and plan again"
        )


def _items_path(folder: Path, number: int) -> Path:
    return folder / "items" / f"{number:06d}.jsonl"
