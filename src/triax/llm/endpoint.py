"""One OpenAI-compatible endpoint: its key, its limits, and when a call is made again (R15, R23)."""

import asyncio
import json
import logging
import math
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
_log = logging.getLogger(__name__)

# What a request needs. The client library adds headers from OPENAI_* variables (organisation,
# project, and any header at all from OPENAI_CUSTOM_HEADERS); none of them was configured here.
_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
# By name: which of two HTTP libraries raises them depends on the release of the client.
_UNCONNECTED = frozenset({"ConnectError", "ConnectTimeout"})
_NO_KEY = "none"
_QUOTED = 300  # characters of a server's own words in an error


class MalformedReply(ValueError):
    """A reply with a good status whose body is not what was asked for."""


class EndpointError(RuntimeError):
    """A call that failed for good. `status` is the HTTP status, None where there was no reply.

    `is_lost` says that the connection could not be made or broke; `was_sent` is False where it
    could not be made, so that the server cannot have seen the call.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        is_transient: bool = False,
        retry_after_s: float | None = None,
        is_lost: bool = False,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_transient = is_transient
        self.retry_after_s = retry_after_s
        self.is_lost = is_lost
        self.was_sent = was_sent


@dataclass(slots=True)
class _Session:
    """What the calls of one event loop share while at least one of them runs."""

    client: "AsyncOpenAI"
    key: str
    slots: asyncio.Semaphore
    users: int = 0
    refusal: str = ""  # set by a 401: the calls that still wait would fail as well


class Endpoint:
    """Sends JSON to one address, with at most `max_concurrent` calls at once in an event loop.

    The key is read when a call is made, from the variable that `api_key_env` names, and goes to
    this address alone: redirects are not followed. Without `api_key_env` the word "none" is sent,
    whatever OPENAI_API_KEY holds. Failures that may pass (no connection, no answer in time, 408,
    409, 425, 429, most 5xx, a malformed body) are tried again up to `max_retries` times, after the
    time that the server names in Retry-After or else after a doubling, jittered `backoff_s`.

    Args:
        base_url: the address up to and including `/v1`.
        api_key_env: name of the environment variable that holds the key; None sends no key.
        max_concurrent: calls under way at once.
        max_retries: further tries of one call.
        timeout_s: seconds that one try may take.
        backoff_s: seconds before the first retry.
        max_wait_s: longest wait before a retry; a server that asks for more ends the call.
        max_requests_per_minute: pace of the calls, for endpoints with such a limit.
        is_one_of_many: a call whose connection fails ends at once, since another server can take
            it, and proxies that the environment names are passed by: they lead out of a cluster.

    Raises:
        ValueError: `base_url` is no http(s) address, or holds a password or a query.
    """

    def __init__(
        self,
        base_url: str,
        api_key_env: str | None = None,
        max_concurrent: int = 64,
        max_retries: int = 6,
        timeout_s: int | float = 300.0,
        backoff_s: int | float = 0.5,
        max_wait_s: int | float = 120.0,
        max_requests_per_minute: int | float | None = None,
        is_one_of_many: bool = False,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url {base_url!r}: expected http(s)://host[:port]/v1")
        if parts.username is not None or parts.password is not None or parts.query:
            raise ValueError(
                f"base_url of {parts.hostname} holds a user, a password or a query; keys belong in "
                "the environment variable that api_key_env names"
            )
        if max_concurrent < 1 or max_retries < 0:
            raise ValueError(f"{max_concurrent=}, {max_retries=}: expected at least 1 and 0")
        self.base_url = base_url.rstrip("/")
        self.api_key_env = api_key_env
        self.max_concurrent = max_concurrent
        self.max_retries = max_retries
        self.timeout_s = timeout_s
        self.backoff_s = backoff_s
        self.max_wait_s = max_wait_s
        self.is_one_of_many = is_one_of_many
        self.num_retries = 0
        self._interval_s = 60.0 / max_requests_per_minute if max_requests_per_minute else 0.0
        self._next_start = 0.0  # of time.monotonic(), by the pace
        self._not_before = 0.0  # of time.monotonic(), by the last Retry-After
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r}, api_key_env={self.api_key_env!r})"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[_Session]:
        """Keeps connections open for the calls inside; they close when the last user leaves."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = self._open()
        session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            if session.users == 0:
                self._sessions.pop(loop, None)
                await session.client.close()

    async def post(
        self, path: str, body: Mapping[str, Any], read: Callable[[dict[str, Any]], T]
    ) -> tuple[T, float]:
        """What `read` makes of the reply, and the seconds of the try that brought it.

        Args:
            path: below the base address, such as `/chat/completions`.
            body: sent as JSON.
            read: raises MalformedReply where the reply is not as expected.

        Raises:
            EndpointError: the call failed for good; its message never holds the key.
            ValueError: the variable that should hold the key is not set or holds no key.
        """
        async with self.session() as session, session.slots:
            attempt = 0
            while True:
                if session.refusal:
                    raise EndpointError(session.refusal, status=401)
                await self._turn()
                started = time.monotonic()
                try:
                    async with asyncio.timeout(self.timeout_s):
                        reply = await session.client.post(path, body=body, cast_to=object)
                    seconds = time.monotonic() - started
                    if not isinstance(reply, dict):
                        raise MalformedReply(f"no JSON object but {reply!r}")
                    return read(_scrub_all(reply, session.key)), seconds
                except Exception as error:  # every kind is sorted by _fault
                    fault = self._fault(error, session)
                wait_s = self._wait_s(fault, attempt)
                attempt += 1
                self.num_retries += 1
                _log.info("%s; try %d follows in %.1f s", fault, attempt + 1, wait_s)
                await asyncio.sleep(wait_s)

    def _open(self) -> _Session:
        import openai

        key = self._key()
        is_tls = self.base_url.startswith("https:")

        async def only_configured(request: Any) -> None:
            for name in list(request.headers):
                if name.lower() not in _HEADERS:
                    del request.headers[name]
            request.headers["Authorization"] = f"Bearer {key}"
            if not is_tls:
                # An idle connection holds a thread of llama.cpp's server for 5 s, and others wait.
                request.headers["Connection"] = "close"

        http = openai.DefaultAsyncHttpxClient(
            event_hooks={"request": [only_configured]},
            follow_redirects=False,
            # No TLS is spoken with an http address, and a set of trusted roots takes 20 ms to load.
            verify=is_tls,
            trust_env=not self.is_one_of_many,
        )
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            timeout=openai.Timeout(self.timeout_s, connect=min(10.0, self.timeout_s)),
            http_client=http,
        )
        return _Session(client, key, asyncio.Semaphore(self.max_concurrent))

    def _key(self) -> str:
        if self.api_key_env is None:
            return _NO_KEY
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ValueError(
                f"the environment variable {self.api_key_env} is not set or empty; it should hold "
                f"the key of {self.base_url}. Export it, or set api_key_env to null"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError(
                f"the environment variable {self.api_key_env} holds white space or characters "
                "that no HTTP header can carry; expected a key"
            )
        return key

    async def _turn(self) -> None:
        if self._interval_s:
            start = max(time.monotonic(), self._next_start)
            self._next_start = start + self._interval_s
            await asyncio.sleep(start - time.monotonic())
        while (wait_s := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait_s + random.uniform(0, 0.1 * wait_s))

    def _wait_s(self, fault: EndpointError, attempt: int) -> float:
        """Seconds before the next try; raises the fault where there is none."""
        if not fault.is_transient or (fault.is_lost and self.is_one_of_many):
            raise fault
        if attempt >= self.max_retries:
            raise EndpointError(f"{fault} (tried {attempt + 1} times)", fault.status)
        asked = fault.retry_after_s
        if asked is not None and asked > self.max_wait_s:
            raise EndpointError(
                f"{fault}; the server asks for a wait of {asked:.0f} s, more than max_wait_s="
                f"{self.max_wait_s:g}",
                fault.status,
            )
        backoff_s = min(self.backoff_s * 2.0**attempt, self.max_wait_s) * random.uniform(0.5, 1.0)
        if not asked:
            return backoff_s
        # The limit is the endpoint's, not the call's: every other call waits as well.
        self._not_before = max(self._not_before, time.monotonic() + asked)
        return asked + random.uniform(0, min(backoff_s, 0.1 * asked))

    def _fault(self, error: Exception, session: _Session) -> EndpointError:
        import openai

        where = self.base_url
        if type(error.__cause__).__name__ in _UNCONNECTED:
            words = _quote(f"{type(error.__cause__).__name__}: {error.__cause__}", session.key)
            return EndpointError(
                f"{where}: no connection ({words})", None, True, is_lost=True, was_sent=False
            )
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return EndpointError(f"{where}: no answer within {self.timeout_s:g} s", None, True)
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            words = _quote(f"{type(cause).__name__}: {cause}", session.key)
            return EndpointError(f"{where}: no connection ({words})", None, True, is_lost=True)
        if isinstance(error, openai.APIStatusError):
            return self._status_fault(error, session)
        malformed = (MalformedReply, json.JSONDecodeError, UnicodeDecodeError)
        words = _quote(str(error), session.key)
        if isinstance(error, (*malformed, openai.APIResponseValidationError)):
            return EndpointError(f"{where}: malformed reply ({words})", None, True)
        return EndpointError(f"{where}: {type(error).__name__}: {words}")

    def _status_fault(self, error: Any, session: _Session) -> EndpointError:
        status: int = error.status_code
        where = f"{self.base_url}: HTTP {status}"
        # A server's words about a key may hold the key or parts of it: they are not quoted.
        if status in (401, 403):
            held = f"the key in {self.api_key_env}" if self.api_key_env else "a call without a key"
            fault = EndpointError(f"{where}, {held} was refused; check api_key_env", status)
            session.refusal = str(fault) if status == 401 else session.refusal
            return fault
        body = error.body
        if isinstance(body, dict):
            body = body.get("message") or body
        words = _quote(body if isinstance(body, str) else json.dumps(body), session.key)
        if 300 <= status < 400:
            target = _quote(error.response.headers.get("location", "nowhere"), session.key)
            return EndpointError(
                f"{where}, sent on to {target}; redirects are not followed, so that the key stays "
                "here. Set base_url to the new address",
                status,
            )
        is_spent = "insufficient_quota" in (error.code, error.type)
        return EndpointError(
            f"{where}: {words}",
            status,
            is_transient=status in _RETRIED and not is_spent,
            retry_after_s=retry_after_s(error.response.headers),
        )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, from `retry-after-ms` or `Retry-After` (RFC 9110).

    A date is compared with the reply's own `Date` where there is one, so that the clocks of the
    two machines need not agree. None where nothing is asked or what is asked cannot be read.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return None if math.isnan(seconds) else max(0.0, seconds)
    try:
        until = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    try:
        now = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        now = time.time()
    return max(0.0, until - now)


def plain(value: Any) -> Any:
    """Mappings and sequences of any kind, a configuration library's say, as dicts and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return [plain(item) for item in value]


def _quote(text: str, key: str) -> str:
    text = " ".join(_scrub(text, key).split())  # before the cut, which could leave half a key
    return (text if len(text) <= _QUOTED else text[:_QUOTED] + "...") or "no reason given"


def _scrub(text: str, key: str) -> str:
    return text if key == _NO_KEY else text.replace(key, "[key]")


def _scrub_all(value: Any, key: str) -> Any:
    """A reply without the key in any of its strings, should a server echo what it got."""
    if isinstance(value, str):
        return _scrub(value, key)
    if isinstance(value, dict):
        return {_scrub(name, key): _scrub_all(item, key) for name, item in value.items()}
    if isinstance(value, list) and value and not isinstance(value[0], float):  # no vectors
        return [_scrub_all(item, key) for item in value]
    return value
