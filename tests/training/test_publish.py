"""The hub is a folder: huggingface_hub's client is replaced where it would go to the network."""

import shutil
from types import SimpleNamespace

import huggingface_hub
import pytest

from triax.models.weights import WeightsError
from triax.training.publish import PublishError, load, push

FILES = {"adapter.safetensors": b"weights", "config.json": b"{}", "README.md": b"# card"}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "notes.txt").write_text("private")
    return folder


@pytest.fixture(name="hub")
def fixture_hub(tmp_path, monkeypatch):
    """Repositories below a folder, one folder a revision; as HfApi and snapshot_download see it."""
    root = tmp_path / "hub"
    seen = SimpleNamespace(root=root, private={}, messages=[], fetched=[], fault=None)

    class Api:
        def __init__(self, **given):
            pass

        def create_repo(self, name, *, private, exist_ok):
            if seen.fault:
                raise seen.fault
            assert exist_ok
            seen.private.setdefault(name, private)

        def upload_folder(self, *, repo_id, folder_path, allow_patterns, commit_message):
            revision = f"c{len(seen.messages)}"
            for target in (revision, "main"):
                into = root / repo_id / target
                shutil.rmtree(into, ignore_errors=True)
                into.mkdir(parents=True)
                for path in folder_path.iterdir():
                    if path.name in allow_patterns:
                        shutil.copy(path, into)
            seen.messages.append(commit_message)
            return SimpleNamespace(oid=revision)

        def model_info(self, name, *, revision, timeout):
            here = root / name / revision
            if not here.is_dir():
                raise FileNotFoundError(f"404 {name} {revision}")
            files = [SimpleNamespace(rfilename=path.name) for path in here.iterdir()]
            return SimpleNamespace(siblings=files, sha=revision)

    def snapshot_download(name, *, revision, local_dir, **given):
        seen.fetched.append((name, revision))
        for path in (root / name / revision).iterdir():
            shutil.copy(path, local_dir)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setenv("TRIAX_WEIGHTS", "cache,hub")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return seen


def test_weights_go_out_and_come_back(folder, hub, tmp_path):
    first = push(folder, "me/solver")
    assert hub.private == {"me/solver": True}
    assert sorted(path.name for path in (hub.root / "me/solver" / first).iterdir()) == sorted(FILES)
    (folder / "adapter.safetensors").write_bytes(b"better")
    second = push(folder, "me/solver", message="Better")
    assert hub.messages == ["Weights of Triax", "Better"]
    cache = tmp_path / "cache"
    for revision, content in ((first, b"weights"), (second, b"better"), ("main", b"better")):
        for _ in range(2):
            got = load("me/solver", revision, cache)
            assert (got / "adapter.safetensors").read_bytes() == content
    # The second time nothing is fetched.
    assert hub.fetched == [("me/solver", first), ("me/solver", second), ("me/solver", "main")]


def test_a_repository_is_public_only_if_asked(folder, hub):
    push(folder, "me/open", private=False)
    assert hub.private == {"me/open": False}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_folder_without_one_of_the_files_is_refused(folder, hub, name):
    (folder / name).write_bytes(b"")
    with pytest.raises(PublishError, match=f"{name} is missing or empty"):
        push(folder, "me/solver")
    (folder / name).unlink()
    with pytest.raises(PublishError, match=f"{name} is missing or empty"):
        push(folder, "me/solver")
    assert hub.private == {}


def test_too_large_a_folder_is_refused(folder, hub):
    total = sum(map(len, FILES.values()))
    with pytest.raises(PublishError, match=f"has {total} bytes .*at most {total - 1} are pushed"):
        push(folder, "me/solver", max_bytes=total - 1)
    assert hub.private == {}
    assert push(folder, "me/solver", max_bytes=total)


@pytest.mark.parametrize("name", ["solver", "/solver", "me/", "a/b/c"])
def test_a_name_without_owner_is_refused(folder, hub, name):
    with pytest.raises(PublishError, match="expected owner/name"):
        push(folder, name)


def test_a_refusal_of_the_hub_is_told(folder, hub):
    hub.fault = OSError("401 Client Error: Unauthorized\nmore")
    with pytest.raises(PublishError, match="OSError: 401 Client Error: Unauthorized.*HF_TOKEN"):
        push(folder, "me/solver")


def test_what_is_not_there_or_no_adapter_is_named(hub, tmp_path):
    with pytest.raises(WeightsError, match="404 me/none main"):
        load("me/none", cache=tmp_path / "cache")
    other = hub.root / "me/other/main"
    other.mkdir(parents=True)
    (other / "model.safetensors").write_bytes(b"x")
    with pytest.raises(PublishError, match="me/other at main has no adapter.safetensors"):
        load("me/other", cache=tmp_path / "cache")


def test_a_local_folder_is_taken_as_it_is(folder):
    assert load(str(folder)) == folder
