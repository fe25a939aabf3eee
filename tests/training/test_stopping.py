import os
import signal
import threading

import pytest

from triax.training.stopping import StopRequest


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_is_noticed_and_does_not_kill(number):
    with StopRequest() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
    assert stop()


def test_what_was_there_before_comes_back():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("before"))
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop() and seen == ["before"]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_outside_of_the_main_thread_none_comes():
    found = []

    def work():
        with StopRequest() as stop:
            found.append(stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
