"""Finished items of a long run, one JSON line each, kept through a kill at any point (R4)."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from triax.records.files import json_line


class ItemLog:
    """An append-only file of rows that carry an id. The last row of an id counts."""

    def __init__(self, path: Path | str, key: str = "id"):
        self.path = Path(path)
        self._key = key
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._drop_torn_line()

    def rows(self) -> dict[str, dict[str, Any]]:
        """All finished rows by id, in order of their first appearance."""
        found: dict[str, dict[str, Any]] = {}
        for row in self._read():
            found[row[self._key]] = row
        return found

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows; they are on disk when this returns."""
        text = "".join(map(json_line, rows))
        with self.path.open("ab") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    row = json.loads(line)
                    row[self._key]
                except (ValueError, KeyError, TypeError):
                    raise ValueError(
                        f"{self.path}:{number} is no JSON object with {self._key!r}; delete that "
                        "line, and its item is done again"
                    ) from None
                yield row

    def _drop_torn_line(self) -> None:
        """A line without its end was being written when the process died: its item is redone."""
        if not self.path.exists():
            return
        with self.path.open("rb+") as stream:
            stream.seek(0, os.SEEK_END)
            size = position = stream.tell()
            while position > 0:
                start = max(0, position - 65536)
                stream.seek(start)
                if (found := stream.read(position - start).rfind(b"\n")) >= 0:
                    position = start + found + 1
                    break
                position = start
            if position < size:
                stream.truncate(position)
