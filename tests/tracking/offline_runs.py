"""Reads back what Weights & Biases wrote offline, with its own definitions of records."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# LevelDB's log format: records in blocks, a record cut where a block ends; W&B puts a mark before.
BLOCK, HEADER = 32768, 7
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


@dataclass
class OfflineRun:
    """One part of a run: what one process wrote."""

    folder: Path
    id: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    project: str = ""
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    step_metrics: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None

    def metrics(self) -> list[dict[str, Any]]:
        """The rows without what W&B adds to them, but with its step."""
        return [
            {key: row[key] for key in row if key == "_step" or not key.startswith("_")}
            for row in self.rows
        ]

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a logged table, from its file."""
        (row,) = (row for row in self.rows if f"{name}/path" in row)
        held = json.loads((self.folder / "files" / row[f"{name}/path"]).read_text("utf-8"))
        return [dict(zip(held["columns"], values, strict=True)) for values in held["data"]]


def records(path: Path) -> Iterator[Any]:
    """The whole records of a .wandb file; half a one at its end is left out."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, position, held = path.read_bytes(), HEADER, b""
    assert data[:4] == b":W&B", data[:8]
    while position + HEADER <= len(data):
        left = BLOCK - position % BLOCK
        if left < HEADER:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + HEADER])
        position += HEADER
        if kind not in (WHOLE, FIRST, MIDDLE, LAST) or position + length > len(data):
            return
        held += data[position : position + length]
        position += length
        if kind in (WHOLE, LAST):
            record = pb.Record()
            record.ParseFromString(held)
            held = b""
            yield record


def read_run(folder: Path) -> OfflineRun:
    """What is in a folder offline-run-<time>-<id>."""
    found = OfflineRun(folder)
    (path,) = folder.glob("*.wandb")
    for record in records(path):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
            found.id, found.name, found.project = run.run_id, run.display_name, run.project
            found.group, found.job_type, found.tags = run.run_group, run.job_type, list(run.tags)
            found.config |= _items(run.config.update)
        elif kind == "history":
            found.rows.append(_items(record.history.item))
        elif kind == "summary":
            found.summary |= _items(record.summary.update)
        elif kind == "metric":
            one = record.metric
            found.step_metrics[one.name or one.glob_name] = one.step_metric
        elif kind == "exit":
            found.exit_code = record.exit.exit_code
        elif kind == "artifact":
            found.artifacts[record.artifact.name] = _artifact(record.artifact)
    return found


def read_runs(folder: Path) -> list[OfflineRun]:
    """Every part below a folder, in the order of their starts."""
    places = {path.parent for path in folder.rglob("offline-run-*/*.wandb")}
    return [read_run(place) for place in sorted(places, key=lambda place: place.name)]


def read_newest(folder: Path) -> OfflineRun:
    """The newest part below a folder."""
    return read_runs(folder)[-1]


def _items(found: Any) -> dict[str, Any]:
    values = {(item.key or "/".join(item.nested_key)): item.value_json for item in found}
    return {key: json.loads(text) for key, text in values.items()}


def _artifact(found: Any) -> dict[str, Any]:
    return {
        "kind": found.type,
        "aliases": set(found.aliases),
        "metadata": json.loads(found.metadata or "{}"),
        "files": {one.path: one.ref or one.local_path for one in found.manifest.contents},
    }
