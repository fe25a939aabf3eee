"""Calls that were made before are not made again (R4, R6)."""

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from triax.llm.arrivals import OnResult, complete_each
from triax.llm.shared_calls import SharedCalls
from triax.records.completions import Completion, CompletionRequest
from triax.records.files import write_jsonl
from triax.records.verbs import Completer

SCHEMA = 1
APPLICATION_ID = 0x54524C43  # "TRLC", in the file's header: tells our files from other databases
_BUSY_S = 30.0
_LABELS = ("stage", "question_id")
_log = logging.getLogger(__name__)


def call_of(identity: Mapping[str, Any], request: CompletionRequest) -> dict[str, Any]:
    """All that decides an output: who is asked, the messages, every parameter and the grammar."""
    asked = asdict(request) | {"temperature": float(request.temperature)}  # 0 and 0.0 are one
    return {
        "completer": dict(identity),
        "request": {name: value for name, value in asked.items() if name not in _LABELS},
    }


def key_of(call: Mapping[str, Any]) -> str:
    """The sha256 of a call's JSON with sorted keys, in hex."""
    text = json.dumps(call, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class CachedCompleter:
    """Keeps the successful calls of another completer in an sqlite file.

    Each result is stored when it arrives, so a killed process loses none that had come; with a
    completer that has no `complete_each` it loses one batch of `batch_size` at most. Equal
    requests of one call are sent once; give samples that are to differ different seeds. Failed
    calls are not kept. A hit has `is_cached` True, and the tokens and seconds of the call that was
    made; a hit needs neither network nor key.

    Several processes may share the file, on a local disk: sqlite's write-ahead log does not work
    over network file systems. Processes on several nodes share a folder instead: each takes over
    what lies there when it starts, and puts what it was answered there at once. Where another
    process holds the file for more than 30 s, results are passed on without being stored, with a
    warning, and are counted in `num_unsaved`.

    Args:
        completer: has `identity`, a JSON mapping that says which model answers and where.
        path: the file, made where it is absent.
        batch_size: see above; None takes the completer's own, or 32.
        shared: folder that is shared with other nodes; None for none.

    Raises:
        TypeError: the completer has no `identity`.
        ValueError: the file is no call cache, or one of another version.
    """

    def __init__(
        self,
        completer: Completer,
        path: Path | str,
        batch_size: int | None = None,
        shared: Path | str | None = None,
    ) -> None:
        if not isinstance(getattr(completer, "identity", None), Mapping):
            raise TypeError(
                f"{type(completer).__name__} has no mapping `identity` to build cache keys from; "
                "give it one that names the model, its revision and the endpoint"
            )
        self.model = completer.model
        self.path = Path(path)
        self.batch_size = batch_size
        self.num_hits = 0
        self.num_misses = 0
        self.num_unsaved = 0
        self._completer = completer
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection = _open(self.path)
        self._inherited: sqlite3.Connection | None = None  # held, since to drop it is to close it
        self._shared = None if shared is None else SharedCalls(shared)
        if self._shared is not None:
            self._take_over(self._shared)

    @property
    def identity(self) -> Mapping[str, Any]:
        """That of the completer inside."""
        return self._completer.identity  # type: ignore[attr-defined]

    def close(self) -> None:
        """Closes the file; a later call opens it again."""
        with self._lock:
            self._connection.close()
            self._process = -1

    async def complete(self, requests: Sequence[CompletionRequest]) -> list[Completion]:
        """One completion for each request, in order, from the file where it has it."""
        return await self.complete_each(requests, lambda position, completion: None)

    async def complete_each(
        self, requests: Sequence[CompletionRequest], on_result: OnResult
    ) -> list[Completion]:
        """As `complete`; calls `on_result(position, completion)` when each is there and stored."""
        calls = [call_of(self.identity, request) for request in requests]
        positions: dict[str, list[int]] = {}
        for position, call in enumerate(calls):
            positions.setdefault(key_of(call), []).append(position)
        found: dict[int, Completion] = {}

        def deliver(key: str, completion: Completion) -> None:
            for position in positions[key]:
                found[position] = completion
                on_result(position, completion)
                completion = replace(completion, is_cached=True)  # the others made no call

        missing = []
        for key in positions:
            stored = self._load(key)
            if stored is None:
                missing.append(key)
            else:
                deliver(key, stored)
        self.num_hits += len(requests) - len(missing)
        self.num_misses += len(missing)
        asked = [requests[positions[key][0]] for key in missing]
        can_save = True

        def arrived(number: int, completion: Completion) -> None:
            nonlocal can_save
            key = missing[number]
            if completion.text is not None and completion.error is None:
                # One wait for a file that is held is enough: 30 s a result would never end.
                can_save = can_save and self._save(
                    key, calls[positions[key][0]], asked[number].stage, completion
                )
                self.num_unsaved += not can_save
            deliver(key, completion)

        if asked:
            await complete_each(self._completer, asked, arrived, self.batch_size)
        return [found[position] for position in range(len(requests))]

    def purge(self, predicate: Callable[[Mapping[str, Any]], bool]) -> int:
        """Deletes the calls that the predicate holds of, and returns their number.

        It is given rows as `rows` yields them: `{"key", "stage", "call", "completion"}`.
        """
        keys = [row["key"] for row in self.rows() if predicate(row)]
        for key in keys:
            self._execute("DELETE FROM calls WHERE key = ?", (key,))
        return len(keys)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields all stored calls, by their keys."""
        for key, stage, call, completion in self._execute(
            "SELECT key, stage, call, completion FROM calls ORDER BY key"
        ):
            yield {
                "key": key,
                "stage": stage,
                "call": json.loads(call),
                "completion": json.loads(completion),
            }

    def export_jsonl(self, path: Path | str) -> int:
        """Writes all stored calls, one JSON object a line, and returns their number."""
        return write_jsonl(path, self.rows())

    def _take_over(self, shared: SharedCalls) -> None:
        self._execute("BEGIN IMMEDIATE")
        try:
            for row in shared.rows():
                self._insert(row["key"], row["call"], row["stage"], row["completion"])
        finally:
            self._execute("COMMIT")

    def _load(self, key: str) -> Completion | None:
        rows = self._execute("SELECT completion FROM calls WHERE key = ?", (key,))
        if not rows:
            return None
        return Completion(**json.loads(rows[0][0]), is_cached=True)

    def _save(self, key: str, call: Mapping[str, Any], stage: str, completion: Completion) -> bool:
        stored = asdict(completion)
        del stored["is_cached"]
        try:
            self._insert(key, call, stage, stored)
        except sqlite3.OperationalError as error:
            _log.warning("%s: results are passed on but not stored (%s)", self.path, error)
            return False
        if self._shared is not None:
            try:
                self._shared.append(
                    {"key": key, "stage": stage, "call": call, "completion": stored}
                )
            except OSError as error:
                _log.warning("%s: results are shared no more (%s)", self._shared.path, error)
                self._shared = None
        return True

    def _insert(
        self, key: str, call: Mapping[str, Any], stage: str, completion: Mapping[str, Any]
    ) -> None:
        row = (key, stage, json.dumps(call), json.dumps(completion), time.time())
        self._execute("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?)", row)

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            if self._process != os.getpid():  # closed, or a fork, which may not touch the parent's
                self._inherited = self._connection
                self._connection = _open(self.path)
                self._process = os.getpid()
            return self._connection.execute(statement, values).fetchall()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = None
    try:
        connection = sqlite3.connect(
            path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        if not _is_ours(connection, path):
            _make(connection, path)
        # What a killed process had stored stays; only a power cut may take the last few.
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise ValueError(
                f"{path} is no call cache but some other file; give another path, or move it away"
            ) from None
        raise ValueError(f"{path} cannot be opened as a call cache: {error}") from None
    except ValueError:
        connection.close()
        raise
    return connection


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a cache of this version, False for an empty file, else an error."""
    is_inside = connection.in_transaction
    if not is_inside:
        connection.execute("BEGIN")  # one view of all three, while another process may write them
    application, version, tables = (
        connection.execute(query).fetchone()[0]
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if not is_inside:
        connection.execute("COMMIT")
    if application == APPLICATION_ID and version == SCHEMA:
        return True
    if application == APPLICATION_ID:
        raise ValueError(
            f"{path} is a call cache of version {version}, expected {SCHEMA}; use the release that "
            "wrote it, or give another path"
        )
    if application or version or tables:
        raise ValueError(f"{path} is a database but no call cache; give another path")
    return False


def _make(connection: sqlite3.Connection, path: Path) -> None:
    """Turns an empty file into a cache; another process may be doing the same."""
    until = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # sqlite does not wait at this statement
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ours(connection, path):
            connection.execute(
                "CREATE TABLE calls (key TEXT PRIMARY KEY, stage TEXT NOT NULL, call TEXT NOT NULL,"
                " completion TEXT NOT NULL, created REAL NOT NULL) WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
