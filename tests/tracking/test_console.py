import logging

from triax.tracking.console import ConsoleTracker
from triax.tracking.tracker import Artifact


def test_numbers_become_lines_of_the_log(caplog, capsys, tmp_path):
    caplog.set_level(logging.INFO, "triax.tracking.console")
    tracker = ConsoleTracker()
    tracker.resume(0)
    tracker.resume(10)
    tracker.log({"train/loss": 0.693147, "tokens": 123456.0}, 20)
    tracker.summary({"f1": 0.5})
    tracker.table("per_question", [{"em": 1.0}, {"em": 0.0}])
    tracker.figure("f1 over k", tmp_path / "figure.svg")
    inputs = {"weights-b": "02", "corpus-a": "01"}
    tracker.artifact(Artifact("corpus-a", "corpus", "01"))
    tracker.artifact(Artifact("triplets-a", "triplets", "03", inputs=inputs))
    tracker.finish()
    assert caplog.messages == [
        "resumed after step 10",
        "step 20: train/loss 0.6931, tokens 1.235e+05",
        "whole run: f1 0.5",
        "table per_question: 2 rows",
        f"figure f1 over k: {tmp_path / 'figure.svg'}",
        "made corpus-a from nothing else",
        "made triplets-a from corpus-a, weights-b",
    ]
    assert capsys.readouterr().out == ""


def test_a_failed_run_is_told(caplog):
    caplog.set_level(logging.INFO, "triax.tracking.console")
    ConsoleTracker().finish(failed=True)
    assert caplog.messages == ["the run failed"]
