"""What a run tells as JSON in its folder: a row a step, tables, and what was made from what."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triax.records.files import atomic_write, json_line, read_jsonl, write_json, write_jsonl
from triax.tracking.tracker import Artifact

METRICS_FILE = "metrics.jsonl"
SUMMARY_FILE = "summary.json"
LINEAGE_FILE = "lineage.jsonl"


class JsonlTracker:
    """Appends to `metrics.jsonl`; a resumed run goes on in the same file.

    Each row is {"step": ..., metric: value, ...} and is on disk when `log` returns. Rows of steps
    that a resumed run makes again are dropped first, and so is half a line that a killed process
    left. A number that is not finite becomes null, which is all that JSON has for it.
    Tables are `table-<name>.jsonl`; `lineage.jsonl` has one row an artifact, its newest.
    """

    def __init__(self, folder: Path | str):
        self.path = Path(folder) / METRICS_FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._is_resumed = False

    def resume(self, step: int) -> None:
        """Drops the rows after this step."""
        self._is_resumed = True
        if not self.path.exists():
            return
        self._end_at_a_line()
        kept = [row for row in read_jsonl(self.path) if row.get("step", 0) <= step]
        with atomic_write(self.path) as stream:
            stream.writelines(map(json_line, kept))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Appends a row."""
        if not self._is_resumed:
            self.resume(step - 1)
        with self.path.open("ab") as stream:
            stream.write(json_line({"step": step} | _finite(metrics)).encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Adds to `summary.json`, over what an earlier call said under the same names."""
        path = self.path.with_name(SUMMARY_FILE)
        held = json.loads(path.read_text("utf-8")) if path.exists() else {}
        write_json(path, held | _finite(metrics))

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes the table over an earlier one of that name."""
        safe = re.sub(r"[^\w.-]+", "-", name)
        write_jsonl(self.path.with_name(f"table-{safe}.jsonl"), map(_plain, rows))

    def figure(self, name: str, path: Path) -> None:
        """Nothing to do: it is a file already."""

    def artifact(self, made: Artifact) -> None:
        """Adds a row, in place of an earlier one of that name."""
        path = self.path.with_name(LINEAGE_FILE)
        held = list(read_jsonl(path)) if path.exists() else []
        kept = [row for row in held if row["name"] != made.name]
        write_jsonl(path, [*kept, made.to_json()])

    def finish(self, *, failed: bool = False) -> None:
        """Nothing to do: every row is on disk already."""

    def _end_at_a_line(self) -> None:
        content = self.path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(self.path, content.rfind(b"\n") + 1)


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    values = {name: float(value) for name, value in metrics.items()}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
