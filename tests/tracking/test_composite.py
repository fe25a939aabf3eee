import json

import pytest

from triax.tracking.composite import CompositeTracker, open_trackers


class Spy:
    def __init__(self, folder=None, name="", config=None, fault=None):
        self.given = (folder, name, config)
        self.calls = []
        self.fault = fault

    def resume(self, step):
        self.calls.append(("resume", step))

    def log(self, metrics, step):
        self.calls.append(("log", dict(metrics), step))

    def summary(self, metrics):
        self.calls.append(("summary", dict(metrics)))

    def finish(self):
        self.calls.append(("finish",))
        if self.fault:
            raise self.fault


def test_each_tracker_gets_every_call():
    spies = [Spy(), Spy()]
    tracker = CompositeTracker(spies)
    tracker.resume(3)
    tracker.log({"loss": 1.0}, 4)
    tracker.summary({"f1": 0.5})
    tracker.finish()
    calls = [("resume", 3), ("log", {"loss": 1.0}, 4), ("summary", {"f1": 0.5}), ("finish",)]
    assert [spy.calls for spy in spies] == [calls, calls]


def test_all_are_closed_though_one_fails(caplog):
    broken, whole = Spy(fault=OSError("no network")), Spy()
    with pytest.raises(OSError, match="no network"):
        CompositeTracker([broken, whole]).finish()
    assert whole.calls == [("finish",)]
    assert "Spy could not be closed: no network" in caplog.text


def test_rows_are_always_kept_and_others_are_told_of_the_run(tmp_path):
    tracker = open_trackers(tmp_path, "first", {"seed": 1}, others=[Spy])
    tracker.log({"loss": 1.0}, 1)
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 1, "loss": 1.0}
    spy = tracker.trackers[-1]
    assert spy.given == (tmp_path, "first", {"seed": 1})
    assert spy.calls == [("log", {"loss": 1.0}, 1)]
