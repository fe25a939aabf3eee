"""Runs the programs as a user does: in a process of their own, from another folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(home, room, program, *overrides, check=True):
    """`python <room>/<program>.py <overrides>` in the folder and environment `home`."""
    done = subprocess.run(
        [sys.executable, str(ROOT / room / f"{program}.py"), *overrides],
        env=os.environ | home,
        cwd=home["HOME"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done
