"""Tests of the loop compile small programs: nothing of them is kept on disk."""

import pytest


@pytest.fixture(autouse=True)
def fixture_no_compile_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("triax.training.loop.use_compile_cache", lambda: None)
    monkeypatch.setenv("TRIAX_CACHE", str(tmp_path / "cache"))
