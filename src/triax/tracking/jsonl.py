"""Numbers as JSON lines in the run folder: one row a call, each step once."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from triax.records.files import atomic_write, json_line, read_jsonl, write_json

METRICS_FILE = "metrics.jsonl"
SUMMARY_FILE = "summary.json"


class JsonlTracker:
    """Appends to `metrics.jsonl`; a resumed run goes on in the same file.

    Each row is {"step": ..., metric: value, ...} and is on disk when `log` returns. Rows of steps
    that a resumed run makes again are dropped first, and so is half a line that a killed process
    left. A number that is not finite becomes null, which is all that JSON has for it.
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

    def finish(self) -> None:
        """Nothing to do: every row is on disk already."""

    def _end_at_a_line(self) -> None:
        content = self.path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(self.path, content.rfind(b"\n") + 1)


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    values = {name: float(value) for name, value in metrics.items()}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
