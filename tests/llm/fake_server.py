"""An OpenAI-compatible server on the loopback that fails on demand and remembers what it got."""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request as it came. `arrived` and `answered` are of time.monotonic()."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    arrived: float


@dataclass(frozen=True)
class Reply:
    """What to send instead of an answer; status 0 hangs up without a word."""

    status: int = 200
    body: Any = None  # bytes go out as they are, all else as JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


def chat_body(text: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion of 11 prompt tokens and one token a word."""
    num_tokens = len((text or "").split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": num_tokens},
    }


def error(status: int, message: str = "no", headers: Mapping[str, str] | None = None, **more: Any):
    """An error in OpenAI's form."""
    return Reply(status, {"error": {"message": message, **more}}, headers or {})


def meeting(parties: int) -> Callable[[Mapping[str, Any], int], None]:
    """A fault that is none: requests are answered once that many are there."""
    barrier = threading.Barrier(parties)

    def wait(body: Mapping[str, Any], before: int) -> None:
        barrier.wait(30)

    return wait


def vector_of(text: str, dimension: int) -> list[float]:
    """Numbers in [-1, 1) that depend on the text alone; not of length 1."""
    digest = b""
    while len(digest) < dimension:
        digest += hashlib.sha256(f"{len(digest)}{text}".encode()).digest()
    return [byte / 128 - 1 for byte in digest[:dimension]]


def echo(body: Mapping[str, Any]) -> str:
    return f"echo {body['messages'][-1]['content']}"


class FakeServer:
    """Serves chat completions and embeddings until the `with` block ends.

    Args:
        answer: text of a chat completion, from the request's body.
        fault: is asked first, with the body and how often that body came before; a Reply goes out
            as it is, None means answer as usual.
        latency_s: seconds between a request and its answer; many run at once.
        dimension: of the embeddings.
        host: the address it listens on; another than the loopback's for jobs on other nodes.

    `health` is the status that GET /health gives; 0 never answers.
    """

    def __init__(
        self,
        answer: Callable[[Mapping[str, Any]], str] = echo,
        fault: Callable[[Mapping[str, Any], int], Reply | None] | None = None,
        latency_s: float = 0.0,
        dimension: int = 8,
        host: str = "127.0.0.1",
    ) -> None:
        self.answer = answer
        self.fault = fault
        self.latency_s = latency_s
        self.dimension = dimension
        self.host = host
        self.health = 200
        self.received: list[Received] = []
        self.most_at_once = 0
        self._at_once = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> "FakeServer":
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                if fake.health == 0:
                    time.sleep(60)
                _send(self, Reply(fake.health if self.path == "/health" else 404, {}))

            def do_POST(self) -> None:
                fake._handle(self)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients of these tests hang up and get killed

        self._server = Server((self.host, 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Listens no more; what it was asked before it answers yet."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self._server.server_port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [received.body for received in self.received]

    def prompts(self) -> list[str]:
        """The last message of each chat request, in order of arrival."""
        return [body["messages"][-1]["content"] for body in self.bodies]

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        body = json.loads(raw)
        with self._lock:
            before = self._seen[raw.decode()]
            self._seen[raw.decode()] += 1
            self.received.append(
                Received(handler.path, dict(handler.headers), body, time.monotonic())
            )
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.fault(body, before) if self.fault else None
            if reply is None:
                reply = Reply(200, self._regular(handler.path, body), delay_s=self.latency_s)
            time.sleep(reply.delay_s)
        finally:
            with self._lock:
                self._at_once -= 1
        _send(handler, reply)

    def _regular(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if path.endswith("/chat/completions"):
            return chat_body(self.answer(body))
        rows = [
            {"object": "embedding", "index": i, "embedding": vector_of(text, self.dimension)}
            for i, text in enumerate(body["input"])
        ]
        return {"object": "list", "model": body["model"], "data": rows[::-1]}


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.status == 0:
        handler.close_connection = True
        return
    out = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    handler.send_response_only(reply.status)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(out))}
    for name, value in (headers | dict(reply.headers)).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(out)
