import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from triax.runs.attempts import Worker
from triax.runs.execute import JobHeld, run_job
from triax.runs.statuses import JobStatus, load, save


@pytest.fixture
def programs(tmp_path):
    """Two programs that write down their arguments; `fail` in them makes the first fail."""
    found = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.py"
        path.write_text(
            "import os, sys, time\n"
            f"print(os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True)\n"
            f"log = open({str(tmp_path / 'log')!r}, 'a')\n"
            f"print('{name}', *sys.argv[1:], file=log, flush=True)\n"
            "print('a warning', file=sys.stderr)\n"
            "if 'wait' in sys.argv: time.sleep(60)\n"
            "if 'fail' in sys.argv: sys.exit('error: no such reader')\n"
            f"open({str(tmp_path / 'result')!r}, 'w')\n"
        )
        found.append(path)
    return found


def run(tmp_path, programs, *overrides, worker=None, **more):
    result = tmp_path / "result"
    worker = worker or Worker.this()
    return run_job(tmp_path, "x", programs, overrides, result, worker, **more)


def calls(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


def test_a_job_goes_through_its_programs_once(tmp_path, programs):
    status = run(tmp_path, programs, "k=1", "corpus=demo")
    assert (status.state, status.program, status.exit_code) == ("finished", "second", 0)
    assert load(tmp_path, "x") == status
    assert calls(tmp_path) == ["first k=1 corpus=demo", "second k=1 corpus=demo"]
    assert run(tmp_path, programs, "k=1", "corpus=demo") == status
    assert len(calls(tmp_path)) == 2
    (tmp_path / "result").unlink()
    run(tmp_path, programs, "k=1", "corpus=demo")
    assert len(calls(tmp_path)) == 4


def test_one_that_fails_ends_the_job_and_is_tried_again(tmp_path, programs, capfd):
    status = run(tmp_path, programs, "fail")
    assert (status.state, status.program, status.exit_code) == ("failed", "first", 1)
    assert status.said == "a warning\nerror: no such reader"
    assert "error: no such reader" in capfd.readouterr().err
    assert calls(tmp_path) == ["first fail"]
    assert run(tmp_path, programs).state == "finished"


def test_a_job_without_its_result_has_failed(tmp_path, programs):
    status = run_job(tmp_path, "x", programs, (), tmp_path / "elsewhere", Worker.this())
    assert status.state == "failed" and "elsewhere is not there" in status.said


def test_a_job_that_another_process_runs_is_left_to_it(tmp_path, programs):
    save(tmp_path, JobStatus("x", "running", Worker("7_2", 0, "n1", 1, "a"), "answer"))
    with pytest.raises(JobHeld, match="x is running: answer in job 7_2 on n1"):
        run(tmp_path, programs)
    assert run(tmp_path, programs, worker=Worker("7_2", 1, "n2", 1, "b")).state == "finished"


def test_a_long_program_renews_its_status(tmp_path, programs):
    def kill_once_renewed():
        while not (status := load(tmp_path, "x")) or not status.seconds:
            time.sleep(0.02)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    watcher = threading.Thread(target=kill_once_renewed)
    watcher.start()
    status = run(tmp_path, programs, "wait", beat_s=0.5)
    watcher.join()
    assert (status.state, status.exit_code) == ("failed", -signal.SIGKILL)


def test_a_process_that_is_asked_to_end_hands_it_on(tmp_path, programs):
    code = (
        "import sys\nfrom triax.runs.execute import *\nfrom triax.runs.attempts import Worker\n"
        f"try: run_job({str(tmp_path)!r}, 'x', {list(map(str, programs))}, ['wait'], 'r', "
        "Worker.this())\nexcept JobStopped as error: sys.exit(str(error))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "log").exists():
        time.sleep(0.05)
    process.terminate()
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "x was stopped in first" in said
    assert load(tmp_path, "x").state == "stopped"
    assert run(tmp_path, programs).state == "finished"
