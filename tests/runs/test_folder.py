import json
import os
import subprocess
import sys

import pytest

from triax.runs.folder import RunFolderError, claim

CONFIG = {"name": "x", "pipeline": {"num_chunks": 5, "max_rounds": 3}, "paths": {"runs": "a"}}


def changed(**pipeline):
    return CONFIG | {"pipeline": CONFIG["pipeline"] | pipeline}


def test_a_new_folder_keeps_its_configuration(tmp_path):
    folder = claim(tmp_path / "deep" / "run", CONFIG)
    assert folder.path == tmp_path / "deep" / "run"
    assert json.loads((folder / "config.json").read_text(encoding="utf-8")) == CONFIG
    assert "versions" in json.loads((folder / "environment.json").read_text(encoding="utf-8"))


def test_the_same_run_goes_on(tmp_path):
    claim(tmp_path, CONFIG).release()
    (tmp_path / "traces.jsonl").write_text("{}\n", encoding="utf-8")
    environment = (tmp_path / "environment.json").read_bytes()
    claim(str(tmp_path), json.loads(json.dumps(CONFIG))).release()
    assert (tmp_path / "traces.jsonl").exists()
    assert (tmp_path / "environment.json").read_bytes() == environment


def test_r28_another_configuration_is_refused_with_both_values(tmp_path):
    claim(tmp_path, CONFIG).release()
    with pytest.raises(RunFolderError) as caught:
        claim(tmp_path, changed(num_chunks=10, max_rounds=4))
    assert str(caught.value) == (
        f"{tmp_path} holds a run with another configuration (pipeline.max_rounds: 3 -> 4; "
        "pipeline.num_chunks: 5 -> 10); use a new name=, or delete the folder"
    )
    # A refusal changes nothing, and lets the folder go.
    claim(tmp_path, CONFIG).release()


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        (CONFIG | {"new": 1}, "new: None -> 1"),
        ({"name": "x", "paths": {"runs": "a"}}, "pipeline.num_chunks: 5 -> None"),
        (CONFIG | {"pipeline": "t2rag"}, "pipeline: None -> 't2rag'"),
        (changed(num_chunks="5"), "pipeline.num_chunks: 5 -> '5'"),
        (changed(num_chunks=[5]), "pipeline.num_chunks: 5 -> [5]"),
    ],
)
def test_r28_added_missing_and_retyped_keys_are_changes(tmp_path, other, shown):
    claim(tmp_path, CONFIG).release()
    with pytest.raises(RunFolderError) as caught:
        claim(tmp_path, other)
    assert shown in str(caught.value)


def test_ignored_keys_may_differ(tmp_path):
    claim(tmp_path, CONFIG, ["paths"]).release()
    moved = CONFIG | {"paths": {"runs": "b", "cache": "c"}}
    claim(tmp_path, moved, ["paths"]).release()
    claim(tmp_path, changed(max_rounds=9), ["pipeline.max_rounds"]).release()
    with pytest.raises(RunFolderError):
        claim(tmp_path, moved, ["path"])
    with pytest.raises(RunFolderError):
        claim(tmp_path, changed(max_rounds=9), ["pipeline.max"])
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8")) == CONFIG


def test_r30_a_claimed_folder_is_refused_at_once_with_its_process(tmp_path):
    held = claim(tmp_path, CONFIG)
    with pytest.raises(RunFolderError) as caught:
        claim(tmp_path, CONFIG)
    assert str(caught.value) == (
        f"{tmp_path} is in use by process {os.getpid()}; wait for it, or use a new name="
    )
    held.release()
    claim(tmp_path, CONFIG).release()


CLAIM = (
    "import sys\n"
    "from triax.runs.folder import RunFolderError, claim\n"
    "try:\n"
    "    claim(sys.argv[1], {'a': 1})\n"
    "except RunFolderError as error:\n"
    "    sys.exit(str(error))\n"
    "print('claimed', flush=True)\n"
    "sys.stdin.read()\n"
)


def start(path):
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_r30_a_second_process_is_refused_until_the_first_is_dead(tmp_path):
    with start(tmp_path) as first:
        assert first.stdout.readline() == "claimed\n"
        with pytest.raises(RunFolderError, match=f"in use by process {first.pid};"):
            claim(tmp_path, {"a": 1})
        second = start(tmp_path)
        _, said = second.communicate(timeout=60)
        assert second.returncode == 1
        assert f"in use by process {first.pid};" in said
        first.kill()
    # The lock of a killed process is no lock.
    claim(tmp_path, {"a": 1}).release()


def test_a_damaged_configuration_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"config\.json is no JSON .*; delete the folder"):
        claim(tmp_path, CONFIG)


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("triax.runs.folder.fcntl.flock", refuse)
    with pytest.raises(RunFolderError, match=r"cannot be locked \(No locks available\)"):
        claim(tmp_path, CONFIG)
