import logging

from triax.tracking.console import ConsoleTracker


def test_numbers_become_lines_of_the_log(caplog, capsys):
    caplog.set_level(logging.INFO, "triax.tracking.console")
    tracker = ConsoleTracker()
    tracker.resume(0)
    tracker.resume(10)
    tracker.log({"train/loss": 0.693147, "tokens": 123456.0}, 20)
    tracker.summary({"f1": 0.5})
    tracker.finish()
    assert caplog.messages == [
        "resumed after step 10",
        "step 20: train/loss 0.6931, tokens 1.235e+05",
        "whole run: f1 0.5",
    ]
    assert capsys.readouterr().out == ""
