"""Training jobs: preempted and taken up, over two nodes, and asked to end on a laptop."""

import json
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp
import pytest
from safetensors.numpy import load_file

from triax.records.files import write_jsonl
from triax.records.routes import RouterExample

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["ann", "bob", "cid", "dan", "eva", "fay"]
STEPS = 1800
QUICK = [f"schedule.steps={STEPS}", "schedule.eval_every=600", "schedule.checkpoint_every=600"]


@pytest.fixture(scope="module")
def task(make_base, tmp_path_factory):
    """Settings of a router that a CPU trains in seconds."""
    base = make_base(["who", "is", "the", "mother", "of", "?", *NAMES], width=32, inner=48)
    labels = tmp_path_factory.mktemp("labels")
    rows = []
    for number in range(40):
        name, graph = NAMES[number % len(NAMES)], number % 4 == 0
        text = f"who is the mother of {name} ?" if graph else f"who is {name} ?"
        either = graph or number % 4 == 1
        rows.append(RouterExample(f"q{number}", text, "", not graph, either, None, None, 1))
    for part, found in (("train", rows), ("validation", rows[:12])):
        write_jsonl(labels / f"{part}.jsonl", [one.to_json() for one in found])
    shape = ["task.rank=4", "task.batch_size=16", "task.max_length=16", "++task.buckets=[16]"]
    return [f"task.labels={labels}", f"task.base={base}", *shape]


def folder_of(places, name):
    return Path(places["TRIAX_RUNS"]) / "train" / "router" / name


def rows_of(folder):
    """The numbers that were logged, without those of the clock."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    return [{key: row[key] for key in row if key != "train/steps_per_s"} for row in rows]


def last_step(folder):
    path = folder / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return lines[-1]["step"] if lines else 0


def leaves_of(folder, step=STEPS):
    """All arrays and numbers of a checkpoint."""
    kept = ocp.StandardCheckpointer().restore(folder / "checkpoints" / str(step) / "default")
    return {name: np.asarray(value) for name, value in kept.items()}


def test_a_router_that_is_preempted_twice_ends_in_the_same_bits(cluster, places, task, tmp_path):
    """All GPUs of a node go to a job of another partition, twice in the middle of the training."""
    node = ["--nodelist=n2", "--gpus-per-node=4"]
    settings = [*QUICK, *task]
    victim = cluster.submit(
        "train_router.sbatch",
        "name=preempted",
        *settings,
        options=["-p", "scavenge", *node],
        folder=tmp_path,
        **places,
    )
    folder = folder_of(places, "preempted")
    stops = []
    for _ in range(2):
        reached = stops[-1] + 100 if stops else 100
        cluster.until(lambda reached=reached: last_step(folder) >= reached, f"step {reached}")
        other = ["-p", "main", *node, "--mem=100", "--wait", "--output=/dev/null"]
        cluster.call("sbatch", *other, "--wrap", "sleep 1", timeout=120)
        stops.append(last_step(folder))  # it waits now
        cluster.start_again(victim)
    assert cluster.wait(victim) == ["COMPLETED"]
    assert cluster.jobs(victim)[0]["Restarts"] == "2"
    said = next(tmp_path.glob("*.out")).read_text()
    assert said.count("SIGUSR1: a checkpoint follows") == 2
    assert 100 <= stops[0] < stops[1] < STEPS
    # It went on from the steps of the signals: none of the steps that it told of was done again.
    taken_up = [int(step) for step in re.findall(r"taken up after step (\d+)", said)]
    assert len(taken_up) == 2 and taken_up[1] < STEPS
    assert all(step >= told for step, told in zip(taken_up, stops))
    whole = cluster.submit(
        "train_router.sbatch",
        "name=whole",
        *settings,
        options=["--gpus-per-node=1"],
        folder=tmp_path,
        **places,
    )
    assert cluster.wait(whole) == ["COMPLETED"]
    unbroken = folder_of(places, "whole")
    assert rows_of(folder) == rows_of(unbroken)
    one, two = leaves_of(folder), leaves_of(unbroken)
    assert one.keys() == two.keys() and len(one) > 20
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name
    kept = [one / "weights" / "adapter.safetensors" for one in (folder, unbroken)]
    assert kept[0].read_bytes() == kept[1].read_bytes()


def test_two_processes_on_two_nodes_equal_one(cluster, places, task, tmp_path):
    short = ["schedule.steps=60", "schedule.eval_every=20", "schedule.checkpoint_every=20"]
    sizes = {"one": ["--nodes=1"], "two": ["--nodes=2"]}
    for name, nodes in sizes.items():
        job = cluster.submit(
            "train_router.sbatch",
            f"name={name}",
            *short,
            *task,
            options=[*nodes, "--gpus-per-node=1"],
            folder=tmp_path,
            **places,
        )
        assert cluster.wait(job) == ["COMPLETED"]
    one, two = (
        load_file(folder_of(places, name) / "weights" / "adapter.safetensors") for name in sizes
    )
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert np.allclose(two[name], value, rtol=0, atol=1e-5), name
    # Both learnt, and the two did share the rows: the environment of the run says how many devices.
    card = (folder_of(places, "two") / "weights" / "README.md").read_text()
    assert "2 x cpu" in card
    for ours, theirs in zip(rows_of(folder_of(places, "one")), rows_of(folder_of(places, "two"))):
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            assert np.isclose(theirs[key], value, rtol=1e-4, atol=1e-5), (ours["step"], key)


def test_without_slurm_a_signal_ends_it_with_code_75_and_it_goes_on(
    cluster, places, task, tmp_path
):
    command = ["bash", "slurm/train_router.sbatch", "name=here", *QUICK, *task]
    folder = folder_of(places, "here")
    with (tmp_path / "said").open("w") as said:
        running = subprocess.Popen(command, cwd=ROOT, env=cluster.env | places, stderr=said)
        try:
            cluster.until(lambda: last_step(folder) >= 50, "step 50")
            running.send_signal(signal.SIGUSR1)
            assert running.wait(timeout=60) == 75
        finally:
            running.kill()
    stopped = last_step(folder)
    assert '"stopped_at": ' in (tmp_path / "said").read_text()
    assert not (folder / "weights").exists() and stopped < STEPS
    assert [int(path.name) >= stopped for path in (folder / "checkpoints").iterdir()] == [True]
