import getpass
import json
import platform
import re
import subprocess
from pathlib import Path

import numpy

from triax.runs import manifest
from triax.runs.manifest import describe_environment


def test_what_is_described():
    found = describe_environment()
    assert set(found) == {
        "time",
        "python",
        "machine",
        "cores",
        "versions",
        "git",
        "git_is_clean",
    }
    assert found["python"] == platform.python_version()
    assert found["versions"]["numpy"] == numpy.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["time"])
    assert found["git"] is None or re.fullmatch(r"[0-9a-f]{40}", found["git"])
    json.dumps(found, allow_nan=False)


def test_r23_no_user_host_or_path(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    text = json.dumps(describe_environment())
    assert platform.node() not in text
    assert "/" not in text
    assert "sk-secret" not in text
    if len(getpass.getuser()) > 3:
        assert getpass.getuser() not in text.replace("torch", "")
    assert str(Path.home()) not in text


def test_r29_what_cannot_be_had_is_none(monkeypatch):
    monkeypatch.setattr(manifest, "_PACKAGES", ("triax", "no-such-package-at-all"))

    def refuse(*arguments, **options):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", refuse)
    found = describe_environment()
    assert found["versions"]["no-such-package-at-all"] is None
    assert (found["git"], found["git_is_clean"]) == (None, None)


def test_the_state_of_the_tree(monkeypatch):
    for changes, is_clean in (("", True), (" M x.py\n", False)):

        def answer(command, changes=changes, **options):
            out = changes if "status" in command else "0" * 40 + "\n"
            return subprocess.CompletedProcess(command, 0, out, "")

        monkeypatch.setattr(subprocess, "run", answer)
        found = describe_environment()
        assert (found["git"], found["git_is_clean"]) == ("0" * 40, is_clean)
