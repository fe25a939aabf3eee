"""A corpus in shards on the real Slurm: the whole chain, a killed task, a node that is cut off."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from gated_extractor import gate

ROOT = Path(__file__).resolve().parents[2]
# Three shards: passages 1-50, 51-100 and 101-130, read in tens.
SETTINGS = ["corpus=demo", "extractor=sentences", "encoder=hashing", "batch_size=10"]
GATED = [*SETTINGS, "extractor._target_=gated_extractor.GatedExtractor"]
LABELS = ["plan", "extract", "merge", "embed", "index"]


@pytest.fixture
def home(cluster, places, tmp_path):
    """The environment of programs and jobs, with an extractor that the test can stop."""
    (tmp_path / "gates").mkdir()
    return places | {
        "PYTHONPATH": str(Path(__file__).parent),
        "TRIAX_TEST_GATES": str(tmp_path / "gates"),
        "TRIAX_SBATCH": f"--cpus-per-task=1 --mem=2000 --output={tmp_path}/%x-%A_%a.out",
    }


def run(home, program, *settings, check=True):
    done = subprocess.run(
        [sys.executable, str(ROOT / "eval" / f"{program}.py"), *settings],
        env=os.environ | home,
        cwd=home["TRIAX_TEST_GATES"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done


def submit_chain(cluster, home, tasks, *settings):
    said = cluster.call("bash", "slurm/corpus.sh", tasks, *settings, **home)
    jobs = dict(line.split() for line in said.splitlines())
    assert list(jobs) == LABELS
    return jobs


def of_one_machine(home, tmp_path, *settings):
    """What eval/extract.py and eval/index.py make of the same."""
    alone = home | {"TRIAX_ARTIFACTS": str(tmp_path / "alone"), "TRIAX_RUNS": str(tmp_path / "r")}
    run(alone, "extract", *settings)
    run(alone, "index", *settings)
    return products(tmp_path / "alone")


def products(artifacts):
    """Every file of triplets and index that says nothing of time, machine or process."""
    told = {".lock", "environment.json", "report.json", "calls.jsonl"}
    return {
        path.relative_to(artifacts).as_posix(): path.read_bytes()
        for kind in ("triplets", "index")
        for path in sorted((Path(artifacts) / kind).rglob("*"))
        if path.is_file() and path.name not in told
    }


def plan_folder(home):
    (folder,) = (Path(home["TRIAX_ARTIFACTS"]) / "shards" / "demo").iterdir()
    return folder


def records(home):
    paths = sorted(plan_folder(home).glob("finished/*/done.json"))
    return {int(path.parent.name): json.loads(path.read_text()) for path in paths}


def asked(home):
    """How often each chunk was read."""
    text = Path(home["TRIAX_TEST_GATES"], "asked").read_text()
    return Counter(line.split()[1] for line in text.splitlines())


def output(tmp_path):
    return "".join(path.read_text() for path in tmp_path.glob("*.out"))


def nothing_is_left(home):
    """No working files of any attempt, and nothing hidden or half-written."""
    folder = plan_folder(home)
    assert [path for path in folder.glob("attempts/*/*")] == []
    hidden = [path for path in Path(home["TRIAX_ARTIFACTS"]).rglob(".*") if path.name != ".lock"]
    assert hidden == []
    assert list(Path(home["TRIAX_ARTIFACTS"]).rglob("*.embedding")) == []
    for number in range(3):
        files = sorted(path.name for path in (folder / "finished" / f"{number:06d}").iterdir())
        assert files == ["done.json", "triplets.jsonl"]


def test_the_chain_makes_what_one_machine_makes(cluster, home, tmp_path):
    jobs = submit_chain(cluster, home, 2, *SETTINGS, "shard_size=16")
    expected = of_one_machine(home, tmp_path, *SETTINGS)
    for label in LABELS:
        assert set(cluster.wait(jobs[label])) == {"COMPLETED"}, f"{label}: {output(tmp_path)}"
    assert products(home["TRIAX_ARTIFACTS"]) == expected and len(expected) > 6
    made_by = [record["made_by"]["job"] for record in records(home).values()]
    assert made_by == [f"{jobs['extract']}_{number % 2}" for number in range(9)]


def test_a_killed_task_stops_the_chain_and_is_made_again_alone(cluster, home, tmp_path):
    closed = [gate(home["TRIAX_TEST_GATES"], node, "demo-p071") for node in cluster.nodes]
    for path in closed:
        path.touch()
    jobs = submit_chain(cluster, home, 3, *GATED, "shard_size=50")
    reached = lambda: list(closed[0].parent.glob("*.reached"))  # noqa: E731
    cluster.until(reached, "task 1 is in the middle of its shard")
    cluster.until(lambda: {0, 2} <= records(home).keys(), "the others are finished")
    (working,) = plan_folder(home).glob("attempts/000001/*")
    os.kill(int(working.name.split(".")[3]), signal.SIGKILL)
    assert sorted(cluster.wait(jobs["extract"])) == ["COMPLETED", "COMPLETED", "FAILED"]
    for label in ("merge", "embed", "index"):
        assert set(cluster.wait(jobs[label])) == {"CANCELLED"}
    refused = run(home, "merge_shards", *GATED, check=False)
    assert refused.returncode == 1 and "1 of 3 shards" in refused.stderr
    assert "(shard 1: missing)" in refused.stderr
    rows = [json.loads(line) for line in run(home, "shard_status", *GATED).stdout.splitlines()]
    assert [(row.get("shard"), row.get("state")) for row in rows] == [(1, "started"), (None, None)]
    assert rows[0]["chunks_done"] == 20 and f"{jobs['extract']}_1" in rows[0]["last"]
    before = records(home)
    for path in closed:
        path.unlink()
    jobs = submit_chain(cluster, home, 3, *GATED, "shard_size=50")
    expected = of_one_machine(home | {"TRIAX_TEST_GATES": str(tmp_path)}, tmp_path, *GATED)
    assert set(cluster.wait(jobs["index"])) == {"COMPLETED"}, output(tmp_path)
    assert products(home["TRIAX_ARTIFACTS"]) == expected
    after = records(home)
    assert {0: after[0], 2: after[2]} == before
    assert after[1]["made_by"]["job"] == f"{jobs['extract']}_1" and after[1]["copied"] == 20
    assert set(asked(home).values()) == {1} and len(asked(home)) == 130


def test_a_node_that_is_cut_off_and_goes_on_does_no_harm(cluster, home, tmp_path):
    """Two copies of one task, each late at one shard: the first result of each shard stands."""
    gates = home["TRIAX_TEST_GATES"]
    cut = gate(gates, "n3", "demo-p031")
    late = [gate(gates, node, "demo-p081") for node in ("n1", "n2")]
    for path in (cut, *late):
        path.touch()
    reached = lambda path: Path(f"{path}.reached").exists()  # noqa: E731
    expected = of_one_machine(home, tmp_path, *GATED)
    Path(gates, "asked").unlink()
    run(home, "plan_shards", *GATED, "shard_size=50")
    cluster.until(
        lambda: not cluster.call("squeue", "-h", "-w", "n3"), "nothing else runs on n3", 300
    )
    job = cluster.submit(
        "extract_array.sbatch",
        "extract",
        *GATED,
        options=["--nodelist=n3"],
        folder=tmp_path,
        **home,
    )
    first = None
    try:
        cluster.until(lambda: reached(cut), "the task is in the middle of shard 0 on n3")
        (working,) = plan_folder(home).glob("attempts/000000/*")
        assert f"{job}.r0.n3." in working.name
        first = int(working.name.split(".")[3])
        cluster.cut("n3")
        cluster.until(lambda: "PENDING" in cluster.states(job), "Slurm gives the job up", 120)
        refused = run(home, "merge_shards", *GATED, check=False)
        assert refused.returncode == 1 and "3 of 3 shards" in refused.stderr
        cluster.call("scontrol", "update", f"JobId={job}", "ReqNodeList=")
        cluster.start_again(job)
        cluster.until(
            lambda: any(map(reached, late)), "the second copy is in the middle of shard 1"
        )
        assert records(home)[0]["made_by"]["restart"] == 1
        os.kill(first, 0)  # the first copy lives, and does not know
        cut.unlink()
        cluster.until(lambda: 2 in records(home), "the first copy goes on")
        assert [records(home)[number]["made_by"]["host"] for number in (1, 2)] == ["n3", "n3"]
        for path in late:
            path.unlink()
        assert cluster.wait(job) == ["COMPLETED"], output(tmp_path)
        cluster.until(lambda: not alive(first), "the first copy ends by itself")
    finally:
        cluster.call("scancel", job)
        if first and alive(first):
            os.kill(first, signal.SIGKILL)
        cluster.mend("n3")
    # Both came second once, and said so.
    assert output(tmp_path).count('"failed": []') == 2
    nothing = run(home, "extract_shards", *GATED)
    assert json.loads(nothing.stdout.splitlines()[-1])["made"] == []
    run(home, "merge_shards", *GATED)
    run(home, "embed_shards", *GATED)
    run(home, "merge_shards", "stage=embed", *GATED)
    assert products(home["TRIAX_ARTIFACTS"]) == expected
    nothing_is_left(home)
    # Read twice is what both had before them when they were cut from each other, and no more.
    twice = {chunk_id for chunk_id, count in asked(home).items() if count > 1}
    assert twice == {f"demo-p{number:03d}" for number in (*range(31, 51), *range(81, 101))}
    assert len(asked(home)) == 130 and max(asked(home).values()) == 2


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
