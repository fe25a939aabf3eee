import pytest

from triax.tracking.composite import CompositeTracker
from triax.tracking.console import ConsoleTracker
from triax.tracking.jsonl import JsonlTracker
from triax.tracking.tracker import Tracker
from triax.tracking.wandb import WandbTracker


@pytest.mark.parametrize("kind", [JsonlTracker, ConsoleTracker, CompositeTracker, WandbTracker])
def test_each_tracker_has_the_verbs(kind):
    assert issubclass(kind, Tracker)


def test_what_cannot_take_numbers_is_no_tracker():
    assert not isinstance([], Tracker)
