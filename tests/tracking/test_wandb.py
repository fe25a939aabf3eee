"""The files that W&B writes offline are read back with its own record definitions."""

import json
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from offline_runs import read_newest, read_runs

from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Artifact
from triax.tracking.wandb import FINISHED_FILE, WandbTracker

PROGRAM = """
import os, signal, sys
from triax.tracking.composite import open_trackers
from triax.tracking.wandb import WandbTracker

def offline(**given):
    return WandbTracker(project="p", mode="offline", **given)

first, last, kill = map(int, sys.argv[2:])
tracker = open_trackers(sys.argv[1], "n", {"task": {"rank": 8}}, [offline])
tracker.resume(first)
for step in range(first + 1, last + 1):
    tracker.log({"train/loss": 1 / step}, step)
    tracker.log({"dev/f1": step / 8}, step)
if kill:
    os.kill(os.getpid(), signal.SIGKILL)
tracker.summary({"best": 0.5})
tracker.finish()
"""


def start(folder, *numbers):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *map(str, numbers)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"HOME": str(folder), "WANDB_ERROR_REPORTING": "false"},
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]


def test_a_killed_run_goes_on_under_its_id_and_is_whole(tmp_path):
    pytest.importorskip("wandb")
    start(tmp_path, 0, 4, 1)
    kept = json.loads((tmp_path / "wandb.json").read_text())["run"]
    # The checkpoint was after step 2: 3 and 4 are made again.
    start(tmp_path, 2, 5, 0)
    killed, whole = read_runs(tmp_path)
    assert killed.folder.name.endswith(kept)
    assert (whole.id, whole.name) == (kept, "n")
    assert whole.config["task"] == {"rank": 8}
    assert whole.metrics() == [
        {"_step": step, "train/step": step, "train/loss": 1 / step, "dev/f1": step / 8}
        for step in (1, 2, 3, 4, 5)
    ]
    assert whole.step_metrics == {"train/step": "", "*": "train/step"}
    assert whole.summary["best"] == 0.5
    # Only the process that came to its end says so, and that nothing failed.
    assert (killed.exit_code, whole.exit_code) == (None, 0)
    assert [(part.folder / FINISHED_FILE).exists() for part in (killed, whole)] == [False, True]


class FakeRun:
    """Keeps what it is given; fails at the verbs in `broken`."""

    def __init__(self, given, broken):
        self.given, self.broken = given, broken
        self.settings = type("Settings", (), {"sync_dir": given["dir"]})
        self.logged, self.sent, self.used, self.exit_code = [], [], [], None
        self.summary = {}

    def _do(self, verb):
        if verb in self.broken:
            raise OSError(28, "No space left on device")

    def define_metric(self, name, step_metric=None):
        self._do("define_metric")

    def log(self, metrics, step=None):
        self._do("log")
        self.logged.append((step, metrics))

    def log_artifact(self, artifact, aliases):
        self._do("log_artifact")
        self.sent.append((artifact, aliases))

    def use_artifact(self, name):
        self._do("use_artifact")
        self.used.append(name)

    def finish(self, exit_code):
        self._do("finish")
        self.exit_code = exit_code


@pytest.fixture
def fake(monkeypatch):
    """W&B without its processes: `runs` started so far, `broken` verbs, `refused` modes."""

    module = types.ModuleType("wandb")
    module.runs, module.broken, module.refused = [], set(), set()

    def init(**given):
        if given["mode"] in module.refused:
            raise ConnectionError("no server")
        module.runs.append(FakeRun(given, module.broken))
        return module.runs[-1]

    module.Settings, module.init = dict, init
    module.Table = module.Html = lambda *args, **given: (args, given)
    for name in ("WANDB_MODE", "SLURM_ARRAY_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def open_run(folder, mode="online", **given):
    return WandbTracker(folder, name="n", config={"seed": 1}, mode=mode, **given)


def test_numbers_that_json_lacks_are_not_handed_over_again(tmp_path, fake):
    JsonlTracker(tmp_path).log({"loss": float("nan"), "rate": 2.0}, 1)
    tracker = open_run(tmp_path, entity="team", group="g")
    tracker.log({"rate": 3.0}, 2)
    (run,) = fake.runs
    assert {key: run.given[key] for key in ("mode", "resume", "id")} == {
        "mode": "online",
        "resume": "allow",
        "id": tracker.id,
    }
    assert [run.given[key] for key in ("project", "entity", "group")] == ["triax", "team", "g"]
    assert run.logged == [
        (1, {"train/step": 1, "rate": 2.0}),
        (2, {"train/step": 2, "rate": 3.0}),
    ]


def test_a_run_says_what_it_belongs_to(tmp_path, fake, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "71")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "70")
    tags = ("corpus:demo", "x" * 80)
    open_run(tmp_path / "a", study="hotpot", job_type="answer", tags=tags)
    open_run(tmp_path / "b", job_type="score")
    open_run(tmp_path / "c", study="hotpot", group="mine")
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID")
    open_run(tmp_path / "d")
    given = [run.given for run in fake.runs]
    assert [one["group"] for one in given] == ["hotpot", "70", "mine", None]
    assert [one["job_type"] for one in given] == ["answer", "score", "run", "run"]
    assert given[0]["tags"] == ["corpus:demo", "x" * 64]
    assert given[0]["config"] == {
        "seed": 1,
        "slurm": {"slurm_job_id": "71", "slurm_array_job_id": "70"},
    }


def test_a_requeued_task_has_its_id_though_its_file_is_not_there(tmp_path, fake):
    """Study, name, program and folder make it; each of them tells two runs apart."""
    first = open_run(tmp_path / "a", study="s", job_type="answer").id
    (tmp_path / "a" / "wandb.json").unlink()
    assert open_run(tmp_path / "a", study="s", job_type="answer").id == first
    assert open_run(tmp_path / "a", study="s", job_type="score").id != first
    assert open_run(tmp_path / "b", study="s", job_type="answer").id != first
    (tmp_path / "a" / "wandb.json").unlink()
    assert open_run(tmp_path / "a", study="other", job_type="answer").id != first


def test_the_programs_of_one_folder_have_a_run_each_and_keep_it(tmp_path, fake):
    answer, score = (open_run(tmp_path, job_type=program).id for program in ("answer", "score"))
    assert answer != score
    assert [open_run(tmp_path, job_type=one).id for one in ("score", "answer")] == [score, answer]
    # Another group later, as when a finished run is opened by hand: still the same run.
    assert open_run(tmp_path, job_type="answer", study="late").id == answer


def test_the_scores_of_an_agents_job_are_the_run_of_its_sweep(tmp_path, fake, monkeypatch):
    monkeypatch.setenv("WANDB_SWEEP_ID", "swp")
    monkeypatch.setenv("WANDB_RUN_ID", "abc123")
    assert open_run(tmp_path, job_type="score").id == "abc123"
    assert open_run(tmp_path, job_type="answer").id != "abc123"
    monkeypatch.delenv("WANDB_SWEEP_ID")
    assert open_run(tmp_path, job_type="score").id != "abc123"


def test_a_server_that_is_away_makes_an_offline_run(tmp_path, fake, caplog):
    fake.refused = {"online"}
    tracker = open_run(tmp_path)
    tracker.log({"loss": 1.0}, 1)
    assert (fake.runs[0].given["mode"], tracker.mode) == ("offline", "offline")
    assert fake.runs[0].given["id"] == tracker.id
    assert "no online run of W&B could be started: no server" in caplog.text


def test_a_run_goes_on_without_w_and_b(tmp_path, fake, caplog):
    fake.refused = {"online", "offline"}
    tracker = open_run(tmp_path)
    tell_everything(tracker, tmp_path)
    assert tracker.mode == "disabled" and fake.runs == []
    assert caplog.text.count("could be started") == 2


def tell_everything(tracker, folder):
    (folder / "figure.svg").write_text("<svg/>")
    tracker.resume(0)
    for step in (1, 2, 3):
        tracker.log({"loss": 1.0}, step)
    tracker.summary({"f1": 0.5})
    tracker.table("rows", [{"a": 1}])
    tracker.figure("figure", folder / "figure.svg")
    tracker.artifact(Artifact("answers-n", "answers", "ab", inputs={"corpus-n": "cd"}))
    tracker.finish()


def test_faults_are_told_once_a_kind_and_end_nothing(tmp_path, fake, caplog):
    fake.broken = {"log", "log_artifact", "use_artifact", "finish"}
    tell_everything(open_run(tmp_path), tmp_path)
    assert caplog.text.count("W&B took no metrics") == 1
    assert "No space left on device" in caplog.text
    assert "did not take everything (3 of metrics, 1 of table, 1 of figure" in caplog.text
    assert not (tmp_path / FINISHED_FILE).exists()


@pytest.mark.parametrize("failed", [False, True])
def test_a_failed_run_is_one(tmp_path, fake, failed):
    tracker = open_run(tmp_path, "offline")
    tracker.finish(failed=failed)
    tracker.finish()
    assert fake.runs[0].exit_code == failed


def test_only_an_online_run_links_its_inputs(tmp_path, fake, monkeypatch):
    sent = "triax.tracking.wandb.make_artifact"
    monkeypatch.setattr(sent, lambda wandb, made, limit: (made.name, limit))
    made = Artifact("index a", "index", "f" * 64, inputs={"triplets/a": "0123456789abcdef"})
    for mode, used in (("online", ["triplets_a:0123456789ab"]), ("offline", [])):
        tracker = open_run(tmp_path / mode, mode, max_upload_mb=3)
        tracker.artifact(made)
        tracker.artifact(made)
        assert fake.runs[-1].used == used
        assert fake.runs[-1].sent[0] == (("index a", 3), ["latest", "f" * 12])


NOTHING = """
import sys
from triax.tracking.wandb import WandbTracker
tracker = WandbTracker(sys.argv[1], name="n", config={}, mode=sys.argv[2])
tracker.log({"loss": 1.0}, 1)
tracker.table("t", [{"a": 1}])
tracker.finish()
print("wandb" in sys.modules, tracker.id)
"""


@pytest.mark.parametrize(
    "mode, environment", [("disabled", {"WANDB_MODE": "online"}), ("online", "disabled")]
)
def test_a_disabled_run_loads_and_writes_nothing(tmp_path, mode, environment):
    if isinstance(environment, str):
        environment = {"WANDB_MODE": environment}
    done = subprocess.run(
        [sys.executable, "-c", NOTHING, str(tmp_path), mode],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ | environment,
    )
    assert done.stdout.strip() == "False None"
    assert list(tmp_path.iterdir()) == []


BROKEN = """
import os, signal, sys
import psutil
from triax.tracking.wandb import WandbTracker
tracker = WandbTracker(sys.argv[1], name="n", config={}, mode="offline")
tracker.log({"loss": 1.0}, 1)
children = psutil.Process().children(recursive=True)
assert any("wandb-core" in one.name() for one in children), children
for one in children:
    one.kill()
for step in range(2, 9):
    tracker.log({"loss": 1.0}, step)
tracker.table("t", [{"a": 1}])
tracker.finish()
print("went on")
"""


def test_a_run_outlives_the_process_of_w_and_b(tmp_path):
    pytest.importorskip("wandb")
    pytest.importorskip("psutil")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"HOME": str(tmp_path), "WANDB_ERROR_REPORTING": "false"},
    )
    assert "went on" in done.stdout, done.stderr[-2000:]
    assert "W&B took no" in done.stderr


WHOLE = """
import sys
from pathlib import Path
from triax.tracking.tracker import Artifact
from triax.tracking.wandb import WandbTracker
folder = Path(sys.argv[1])
tracker = WandbTracker(
    folder, name="n", config={}, mode="offline", study="s", job_type="answer", tags=("a:b",)
)
tracker.table("per_question", [{"id": "q1", "em": 1.0}, {"id": "q2", "answers": ["x", "y"]}])
tracker.figure("figure", folder / "figure.svg")
made = Artifact(
    "answers-n", "answers", "ab" * 32, folder, ("answers.jsonl", "gone.jsonl"), {"questions": 2},
    {"corpus-demo": "cd" * 32},
)
tracker.artifact(made)
tracker.finish(failed=True)
"""


def test_tables_figures_and_artifacts_are_in_the_run_folder(tmp_path):
    """Also what W&B sends later: a home of a node is not where the sending is done."""
    pytest.importorskip("wandb")
    folder, home = tmp_path / "run", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "figure.svg").write_text("<svg id='curves'/>")
    (folder / "answers.jsonl").write_text("{}\n")
    subprocess.run(
        [sys.executable, "-c", WHOLE, str(folder)],
        check=True,
        timeout=120,
        env=os.environ
        | {"HOME": str(home), "WANDB_ERROR_REPORTING": "false", "WANDB_MODE": "online"},
    )
    run = read_newest(folder)
    assert (run.group, run.job_type, run.tags) == ("s", "answer", ["a:b"])
    assert run.exit_code == 1
    assert run.table("per_question") == [
        {"id": "q1", "em": 1.0, "answers": None},
        {"id": "q2", "em": None, "answers": '["x", "y"]'},
    ]
    (page,) = (row["figure/path"] for row in run.rows if "figure/path" in row)
    assert "<svg id='curves'/>" in (run.folder / "files" / page).read_text()
    made = run.artifacts["answers-n"]
    assert made["kind"] == "answers" and made["aliases"] == {"latest", "ab" * 6}
    assert made["metadata"]["hash"] == "ab" * 32
    assert made["metadata"]["inputs"] == {"corpus-demo": "cd" * 32}
    assert made["metadata"]["counts"] == {"questions": 2}
    assert set(made["files"]) == {"answers.jsonl", "facts.json"}
    sent = [path for one in run.artifacts.values() for path in one["files"].values()]
    assert all(Path(path).is_file() and Path(path).is_relative_to(folder) for path in sent)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'triax\[wandb\]'"):
        WandbTracker(tmp_path / "run", name="n", config={}, mode="offline")
    assert not (tmp_path / "run").exists()


def test_an_unknown_mode_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"'on', expected one of \['disabled', 'offline', 'online"):
        WandbTracker(tmp_path, name="n", config={}, mode="on")
