"""Stands in for `vllm serve`: writes down how it was called, loads a while, then is healthy.

It ends with 3 at once where the file `broken` lies beside it; POST /die ends it with 7.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(os.environ["FAKE_VLLM"])


def option(name):
    return sys.argv[sys.argv.index(name) + 1]


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        start = sys.argv.index("--served-model-name") + 1
        names = sys.argv[start : start + 2]
        key = os.environ.get("VLLM_API_KEY")
        if self.path == "/health":
            self.answer(200 if time.monotonic() > READY else 503, {})
        elif key and self.headers["Authorization"] != f"Bearer {key}":
            self.answer(401, {})
        else:
            self.answer(200, {"data": [{"id": name} for name in names]})

    def do_POST(self):
        os._exit(7)

    def log_message(self, *args):
        pass


(HERE / "called").open("a").write(json.dumps(sys.argv[1:]) + "\n")
if (HERE / "broken").exists():
    sys.exit(3)
if (HERE / "taken").exists():  # another process is faster at the first port
    (HERE / "taken").unlink()
    other = ThreadingHTTPServer(("127.0.0.1", int(option("--port"))), BaseHTTPRequestHandler)
    if os.fork() == 0:
        time.sleep(3)
    os._exit(1)
READY = time.monotonic() + 0.7
ThreadingHTTPServer((option("--host"), int(option("--port"))), Handler).serve_forever()
