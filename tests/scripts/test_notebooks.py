"""The notebooks run from top to bottom."""

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, capsys):
    runpy.run_path(str(path))
    assert "answer: " in capsys.readouterr().out


def test_there_are_notebooks():
    assert NOTEBOOKS
