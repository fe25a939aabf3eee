"""What a method derives from an index, kept beside it: summaries, communities, trees.

    <index>.<kind>/<hash>/...             what the method wrote
    <index>.<kind>/<hash>/manifest.json   settings, encoder, what the language model has cost
    <index>.<kind>/<hash>.work/           while it is made; taken up again after a kill (R4)

An index never changes once it is there, so neither does what is derived from it; other settings
are another folder, so that two can never be mixed (R28).
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triax.indexing.store import TripletIndex
from triax.records.files import write_json
from triax.records.trace_json import usage_from_json, usage_to_json
from triax.records.usage import Usage

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Derived:
    """An opened folder: its files, and what a language model cost that wrote them."""

    folder: Path
    cost: Usage
    manifest: Mapping[str, Any]


def open_derived(
    index: TripletIndex,
    kind: str,
    settings: Mapping[str, Any],
    build: Callable[[Path], Usage],
) -> Derived:
    """Opens what was derived with these settings, or has it made.

    Args:
        index: what it is derived from.
        kind: the method, in one word; names the folder beside the index.
        settings: all that decides the content but the index: versions of prompts, the model's
            name, numbers. Anything that JSON can hold.
        build: writes the content into the folder that it is given and returns what the language
            model cost. It is called again with the same folder after a kill, and may keep there
            what it has done so far; of two processes, one builds and the other waits for it (R30).

    Raises:
        ValueError: the folder was written in another schema.
    """
    given = json.dumps({"kind": kind, **settings}, sort_keys=True, ensure_ascii=False)
    name = hashlib.sha256(given.encode("utf-8")).hexdigest()[:16]
    place = index.folder.with_name(f"{index.folder.name}.{kind}") / name
    if not (place / "manifest.json").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place.with_name(f"{name}.lock")):
            if not (place / "manifest.json").exists():
                _make(place, settings, build)
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    if manifest.get("schema") != SCHEMA:
        raise ValueError(
            f"{place} has schema {manifest.get('schema')!r}, expected {SCHEMA}; delete it, it will "
            "be made again"
        )
    return Derived(place, usage_from_json(manifest["cost"]), manifest)


def _make(place: Path, settings: Mapping[str, Any], build: Callable[[Path], Usage]) -> None:
    work = place.with_name(f"{place.name}.work")
    work.mkdir(exist_ok=True)
    cost = build(work)
    manifest = {"schema": SCHEMA, "settings": dict(settings), "cost": usage_to_json(cost)}
    write_json(work / "manifest.json", manifest)
    # Left there by nobody but a hand: without its manifest it is not whole.
    shutil.rmtree(place, ignore_errors=True)
    os.rename(work, place)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Holds a lock, which ends with the process whatever becomes of it."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
