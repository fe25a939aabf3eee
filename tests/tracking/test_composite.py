import json

import pytest

from triax.tracking.composite import CompositeTracker, open_trackers
from triax.tracking.tracker import Artifact


class Spy:
    def __init__(self, folder=None, name="", config=None, fault=None, **facts):
        self.given = (folder, name, config)
        self.facts = facts
        self.calls = []
        self.fault = fault

    def resume(self, step):
        self.calls.append(("resume", step))

    def log(self, metrics, step):
        self.calls.append(("log", dict(metrics), step))

    def summary(self, metrics):
        self.calls.append(("summary", dict(metrics)))

    def table(self, name, rows):
        self.calls.append(("table", name, list(rows)))

    def figure(self, name, path):
        self.calls.append(("figure", name, path))

    def artifact(self, made):
        self.calls.append(("artifact", made))

    def finish(self, *, failed=False):
        self.calls.append(("finish", failed))
        if self.fault:
            raise self.fault


def test_each_tracker_gets_every_call(tmp_path):
    spies = [Spy(), Spy()]
    made = Artifact("corpus-x", "corpus", "ab")
    tracker = CompositeTracker(spies)
    tracker.resume(3)
    tracker.log({"loss": 1.0}, 4)
    tracker.summary({"f1": 0.5})
    tracker.table("rows", [{"a": 1}])
    tracker.figure("f1 over k", tmp_path / "figure.svg")
    tracker.artifact(made)
    tracker.finish(failed=True)
    calls = [("resume", 3), ("log", {"loss": 1.0}, 4), ("summary", {"f1": 0.5})]
    calls += [("table", "rows", [{"a": 1}]), ("figure", "f1 over k", tmp_path / "figure.svg")]
    calls += [("artifact", made), ("finish", True)]
    assert [spy.calls for spy in spies] == [calls, calls]


def test_all_are_closed_though_one_fails(caplog):
    broken, whole = Spy(fault=OSError("no network")), Spy()
    with pytest.raises(OSError, match="no network"):
        CompositeTracker([broken, whole]).finish()
    assert whole.calls == [("finish", False)]
    assert "Spy could not be closed: no network" in caplog.text


def test_rows_are_always_kept_and_others_are_told_of_the_run(tmp_path):
    tracker = open_trackers(tmp_path, "first", {"seed": 1}, others=[Spy])
    tracker.log({"loss": 1.0}, 1)
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 1, "loss": 1.0}
    spy = tracker.trackers[-1]
    assert spy.given == (tmp_path, "first", {"seed": 1})
    assert spy.facts == {"study": None, "job_type": "run", "tags": ()}
    assert spy.calls == [("log", {"loss": 1.0}, 1)]


def test_others_are_told_what_the_run_belongs_to(tmp_path):
    facts = {"study": "hotpot", "job_type": "answer", "tags": ["corpus:demo"]}
    tracker = open_trackers(tmp_path, "first", {}, others=[Spy], **facts)
    assert tracker.trackers[-1].facts == facts | {"tags": ("corpus:demo",)}


def test_the_second_process_of_a_run_keeps_nothing(tmp_path):
    tracker = open_trackers(tmp_path / "run", "first", {}, others=[Spy], process_index=1)
    tracker.log({"loss": 1.0}, 1)
    tracker.table("rows", [{"a": 1}])
    tracker.finish()
    assert tracker.trackers == () and not (tmp_path / "run").exists()
