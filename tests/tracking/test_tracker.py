import json
from pathlib import Path

import pytest

from triax.tracking.composite import CompositeTracker
from triax.tracking.console import ConsoleTracker
from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Artifact, Tracker
from triax.tracking.wandb import WandbTracker


@pytest.mark.parametrize("kind", [JsonlTracker, ConsoleTracker, CompositeTracker, WandbTracker])
def test_each_tracker_has_the_verbs(kind):
    assert issubclass(kind, Tracker)


def test_what_cannot_take_numbers_is_no_tracker():
    assert not isinstance([], Tracker)


def test_an_artifact_is_a_row_of_json():
    made = Artifact("index-x", "index", "ab", Path("i"), ("a", "b"), {"chunks": 3}, {"t": "cd"})
    assert json.loads(json.dumps(made.to_json())) == {
        "name": "index-x",
        "kind": "index",
        "digest": "ab",
        "folder": "i",
        "counts": {"chunks": 3},
        "inputs": {"t": "cd"},
    }
    assert Artifact("corpus-x", "corpus", "ab").to_json()["folder"] is None
