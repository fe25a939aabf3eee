"""Calls of many processes on many nodes, in a folder that all of them see."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_NAMES = {"key", "stage", "call", "completion"}


class SharedCalls:
    """Each process appends to a file of its own, and reads those of the others when it starts.

    So nothing needs a lock, which network file systems keep badly, and what a killed process had
    written stays. A row is a call as `CachedCompleter.rows` yields it.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        self.path = self.folder / name

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of all files; other lines, such as one that a kill cut, are left out."""
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as stream:
                for line in stream:
                    try:
                        row = json.loads(line)
                    except ValueError:
                        continue
                    if isinstance(row, dict) and _NAMES <= row.keys():
                        yield row

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a row by one write.

        Raises:
            OSError: the file cannot be written.
        """
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, f"{json.dumps(row)}\n".encode())
        finally:
            os.close(handle)
