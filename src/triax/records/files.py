"""JSON lines in and out, and writes that are whole or not there (R5)."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Opens a temporary sibling and renames it to `path` once all is written and synced."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding = None if "b" in mode else "utf-8"
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, mode, encoding=encoding) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read_jsonl(path: Path | str) -> Iterator[dict[str, Any]]:
    """Yields the objects of a .jsonl or .jsonl.gz file.

    Raises:
        ValueError: a line is no JSON object; the message names file and line.
    """
    path = Path(path)
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
    with opened as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: no JSON ({error}); one object a line") from None
            if not isinstance(value, dict):
                raise ValueError(f"{path}:{number}: a {type(value).__name__}, expected an object")
            yield value


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes one JSON object a line, atomically; returns the number of lines."""
    count = 0
    with atomic_write(path) as stream:
        for count, row in enumerate(rows, 1):  # noqa: B007
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def write_json(path: Path | str, value: Any) -> None:
    """Writes one readable JSON file with sorted keys, atomically."""
    with atomic_write(path) as stream:
        json.dump(value, stream, ensure_ascii=False, indent=2, sort_keys=True)
        stream.write("\n")
