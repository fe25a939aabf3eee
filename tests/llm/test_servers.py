import json

import pytest

from triax.llm.servers import Server, is_of, job_states, read_servers

ROW = {"base_url": "http://n1:80/v1", "model": "m", "job": "12_3", "restart": 0, "host": "n1"}


def put(folder, name, row):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(row))


def test_the_files_of_a_folder_are_its_servers(tmp_path):
    put(tmp_path, "12_3.json", ROW)
    put(tmp_path, "4.json", ROW | {"job": "4", "restart": 2})
    put(tmp_path, ".5.0.tmp", ROW)
    assert read_servers(tmp_path) == (
        [
            Server("12_3.json", "http://n1:80/v1", "m", "12_3", 0, "n1"),
            Server("4.json", "http://n1:80/v1", "m", "4", 2, "n1"),
        ],
        [],
    )


def test_a_folder_that_is_not_there_holds_none(tmp_path):
    assert read_servers(tmp_path / "none") == ([], [])


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"model": "m"}', json.dumps(ROW | {"restart": "x"})]
)
def test_other_files_are_named(tmp_path, text):
    put(tmp_path, "1.json", ROW)
    (tmp_path / "other.json").write_text(text)
    servers, others = read_servers(tmp_path)
    assert [one.file for one in servers] == ["1.json"] and others == ["other.json"]


def test_a_file_that_goes_away_meanwhile_is_passed_over(tmp_path):
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    assert read_servers(tmp_path) == ([], [])


@pytest.mark.parametrize(
    "job, is_its", [("12", True), ("12_3", True), ("1", False), ("12_", False), ("2_3", False)]
)
def test_an_array_owns_its_tasks(job, is_its):
    assert is_of(job, Server("a.json", "http://n1:80/v1", "m", "12_3", 0, "n1")) is is_its


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Puts a stand-in for squeue on the path, which runs the lines that are given."""

    def install(*lines):
        path = tmp_path / "bin" / "squeue"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *lines]))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return install


def test_slurm_tells_the_state_of_every_task(squeue, tmp_path):
    squeue(f'echo "$@" > {tmp_path}/asked', "echo '12_0 RUNNING'", "echo '12_1 NODE_FAIL'")
    assert job_states("12") == {"12_0": "RUNNING", "12_1": "NODE_FAIL"}
    asked = (tmp_path / "asked").read_text()
    assert "--jobs=12" in asked and "--states=all" in asked


def test_a_job_that_slurm_has_forgotten_has_no_task(squeue):
    squeue("echo 'slurm_load_jobs error: Invalid job id specified' >&2", "exit 1")
    assert job_states("12") == {}


def test_a_controller_that_does_not_answer_says_nothing(squeue):
    squeue("echo 'Unable to contact slurm controller' >&2", "exit 1")
    assert job_states("12") is None


def test_without_slurm_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert job_states("12") is None
