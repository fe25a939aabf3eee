import io
import logging
import sys

import pytest

from triax.tracking import progress
from triax.tracking.progress import track


@pytest.fixture(name="clock")
def fixture_clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_r22_a_log_gets_a_line_now_and_then(caplog, clock):
    caplog.set_level(logging.INFO, "triax.tracking.progress")
    with track("embed", 10, every_s=30.0) as advance:
        for count, now in ((1, 110), (2, 130), (3, 150), (4, 161), (10, 165)):
            clock[0] = now
            advance(count)
    assert caplog.messages == [
        "embed: 2 of 10, 30 s",
        "embed: 4 of 10, 61 s",
        "embed: 10 of 10 done in 65.0 s",
    ]


def test_the_last_line_says_what_was_done(caplog, clock):
    caplog.set_level(logging.INFO, "triax.tracking.progress")
    with track("embed", 3):
        pass
    assert caplog.messages == ["embed: 0 of 3 done in 0.0 s"]


def test_a_step_that_fails_is_not_done(caplog):
    caplog.set_level(logging.INFO, "triax.tracking.progress")
    with pytest.raises(KeyError), track("embed", 3) as advance:
        advance(1)
        raise KeyError("x")
    assert caplog.messages == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_r22_a_terminal_gets_a_bar(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "triax.tracking.progress")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with track("embed [x]", 4) as advance:
        advance(3)
    assert "embed [x]" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()
    assert caplog.messages[-1].startswith("embed [x]: 3 of 4 done in")


def test_nothing_goes_to_standard_output(capsys):
    with track("embed", 2) as advance:
        advance(2)
    assert capsys.readouterr().out == ""
