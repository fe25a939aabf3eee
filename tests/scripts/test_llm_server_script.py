"""slurm/llm_server.sbatch as plain bash: what it calls, when it publishes, and what it notices."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the script needs curl")


@pytest.fixture
def start(tmp_path):
    """Starts the script with a stand-in for vLLM on the path."""
    fake = tmp_path / "bin" / "vllm"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/scripts/fake_vllm.py "$@"\n')
    fake.chmod(0o755)
    (tmp_path / "site.env").write_text(f"TRIAX_VENV={sys.prefix}\n")
    kept = {key: one for key, one in os.environ.items() if not key.startswith("SLURM_")}
    env = kept | {
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "TRIAX_SITE": str(tmp_path / "site.env"),
        "TRIAX_ENDPOINTS": str(tmp_path / "endpoints"),
        "FAKE_VLLM": str(tmp_path),
    }
    started = []

    def begin(*arguments, **environment):
        process = subprocess.Popen(
            ["bash", "slurm/llm_server.sbatch", *arguments],
            cwd=ROOT,
            env=env | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.terminate()
        process.communicate(timeout=30)


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / "endpoints").glob("*"))


def calls(tmp_path):
    path = tmp_path / "called"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def until(true, what):
    for _ in range(300):
        if found := true():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within 30 s: {what}")


def published(tmp_path, process):
    def read():
        assert process.poll() is None, process.communicate()
        return [json.loads((tmp_path / "endpoints" / name).read_text()) for name in files(tmp_path)]

    [row] = until(read, "the server publishes itself")
    return row


def test_vllm_is_called_with_what_was_asked_and_published_when_healthy(start, tmp_path):
    process = start("org/Name-7B", "--max-model-len", "8192")
    until(lambda: calls(tmp_path), "vLLM is called")
    assert files(tmp_path) == []  # it loads
    row = published(tmp_path, process)
    [called] = calls(tmp_path)
    port = called[called.index("--port") + 1]
    job = f"local-{process.pid}"
    served = ["--served-model-name", "org/Name-7B", f"triax-{job}-0"]
    assert called == ["serve", "org/Name-7B", *served, "--host", "127.0.0.1", "--port", port] + [
        "--max-model-len",
        "8192",
    ]
    assert files(tmp_path) == [f"{job}.json"]
    assert row == {
        "base_url": f"http://127.0.0.1:{port}/v1",
        "model": "org/Name-7B",
        "job": job,
        "restart": 0,
        "host": "127.0.0.1",
    }
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143 and files(tmp_path) == []
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health")


def test_a_server_that_dies_ends_the_job_and_its_file(start, tmp_path):
    process = start("m")
    address = published(tmp_path, process)["base_url"]
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{address}/die", data=b"{}")
    assert process.wait(30) == 1 and files(tmp_path) == []
    assert "the server ended with 7" in process.stderr.read()


def test_a_server_that_dies_while_it_loads_is_never_published(start, tmp_path):
    (tmp_path / "broken").touch()
    process = start("m")
    assert process.wait(30) == 1 and files(tmp_path) == []
    assert "ended with 3 before it was healthy" in process.stderr.read()
    assert len(calls(tmp_path)) == 1


def test_a_port_that_is_taken_meanwhile_is_given_up(start, tmp_path):
    (tmp_path / "taken").touch()
    process = start("m")
    row = published(tmp_path, process)
    ports = [call[call.index("--port") + 1] for call in calls(tmp_path)]
    assert len(ports) == 2 and ports[0] != ports[1] and f":{ports[1]}/" in row["base_url"]


def test_a_server_that_is_to_end_soon_withdraws_and_serves_on(start, tmp_path):
    process = start("m")
    address = published(tmp_path, process)["base_url"]
    process.send_signal(signal.SIGUSR1)
    until(lambda: not files(tmp_path), "it withdraws")
    assert process.poll() is None
    assert urllib.request.urlopen(f"{address}/models").status == 200


def test_the_file_of_a_later_start_is_left_alone(start, tmp_path):
    process = start("m")
    row = published(tmp_path, process)
    [name] = files(tmp_path)
    later = json.dumps(row | {"restart": 1, "host": "elsewhere"})
    (tmp_path / "endpoints" / name).write_text(later)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert (tmp_path / "endpoints" / name).read_text() == later


def test_a_key_is_handed_on_and_stands_on_no_command_line(start, tmp_path):
    process = start("m", TRIAX_LLM_KEY="sk-test-0123456789")
    address = published(tmp_path, process)["base_url"]
    assert "sk-test" not in json.dumps(calls(tmp_path))
    with pytest.raises(OSError, match="401"):
        urllib.request.urlopen(f"{address}/models")


def test_a_task_of_an_array_is_named_for_both_numbers(start, tmp_path):
    numbers = {"SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3", "SLURM_RESTART_COUNT": "2"}
    row = published(tmp_path, start("m", **numbers))
    assert files(tmp_path) == ["12_3.json"] and (row["job"], row["restart"]) == ("12_3", 2)


@pytest.mark.parametrize(
    "arguments, environment, said",
    [
        ((), {}, "the model: a name"),
        (("m", "--port", "80"), {}, "--port is set by this script"),
        (("m", "--served-model-name=x"), {}, "is set by this script"),
        (("m",), {"ENGINE": "other"}, "expected vllm or llama"),
        (("m",), {"VLLM": "no-such-vllm"}, "no-such-vllm is not on the PATH"),
    ],
)
def test_what_cannot_be_is_said(start, arguments, environment, said):
    process = start(*arguments, **environment)
    assert process.wait(30) in (1, 2) and said in process.stderr.read()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_finds_nothing():
    command = ["shellcheck", "-x", "slurm/llm_server.sbatch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "" and done.returncode == 0
