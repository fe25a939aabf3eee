"""JSON lines in and out, and writes that are whole or not there (R5)."""

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: Path | str, mode: str = "w", makes_folder: bool = True) -> Iterator[IO[Any]]:
    """Opens a temporary sibling and renames it to `path` once all is written and synced.

    Without `makes_folder` a folder that is not there is a FileNotFoundError.
    """
    path = Path(path)
    if makes_folder:
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
        ValueError: a line is no JSON object, no UTF-8, or the file ends inside its compressed
            data; the message names file and line.
    """
    path = Path(path)
    opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
    number = 0
    with opened as stream:
        try:
            for number, line in enumerate(stream, 1):
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    yield _object(line, f"{path}:{number}")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}:{number + 1}: damaged gzip data ({error}); get the file again"
            ) from None


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: no UTF-8 ({error.reason}); convert the file") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{place}: no JSON ({error}); one object a line") from None
    if not isinstance(value, dict):
        raise ValueError(f"{place}: a {type(value).__name__}, expected an object")
    return value


def json_line(row: Mapping[str, Any]) -> str:
    """One JSON object with its line end, in characters that UTF-8 can hold.

    Half of a surrogate pair, which a model or a corpus may give, is written as an escape.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes one JSON object a line, atomically, packed if the name ends in .gz.

    Equal rows give equal bytes. Returns the number of lines.
    """
    count = 0
    with ExitStack() as stack:
        stream = stack.enter_context(atomic_write(path, "wb"))
        if Path(path).suffix == ".gz":
            # Name and time would make each file differ.
            stream = stack.enter_context(gzip.GzipFile("", "wb", fileobj=stream, mtime=0))
        for count, row in enumerate(rows, 1):  # noqa: B007
            stream.write(json_line(row).encode("utf-8"))
    return count


def write_json(path: Path | str, value: Any) -> None:
    """Writes one readable JSON file with sorted keys, atomically.

    Raises:
        ValueError: a number is not finite.
    """
    with atomic_write(path) as stream:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True)
        stream.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
