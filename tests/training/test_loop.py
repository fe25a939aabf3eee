import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import load_adapter
from triax.training.loop import Schedule, TrainingError, TrainingStopped, fit

sys.path.insert(0, str(Path(__file__).parent))

import toy
from toy import ToyTask, train, weights


class Spy:
    def __init__(self):
        self.rows, self.resumed, self.figures = [], [], {}

    def resume(self, step):
        self.resumed.append(step)

    def log(self, metrics, step):
        self.rows.append((step, dict(metrics)))

    def summary(self, metrics):
        self.figures = dict(metrics)

    def table(self, name, rows):
        pass

    def figure(self, name, path):
        pass

    def artifact(self, made):
        pass

    def finish(self, *, failed=False):
        pass

    def steps(self, name):
        return [step for step, metrics in self.rows if name in metrics]


def metrics_of(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    drop = "train/steps_per_s"  # the only number that hangs on the clock
    return [{k: v for k, v in json.loads(line).items() if k != drop} for line in lines]


def test_training_learns_and_says_so(tmp_path):
    spy = Spy()
    plan = {"eval_every": 20, "log_every": 8, "checkpoint_every": 100}
    before = ToyTask().validate(ToyTask().build(0))["score"]
    result = train(tmp_path, steps=60, tracker=spy, **plan)
    assert spy.resumed == [0]
    assert spy.steps("train/loss") == [8, 16, 24, 32, 40, 48, 56, 60]
    assert spy.steps("dev/score") == [20, 40, 60]
    scores = [metrics["dev/score"] for _, metrics in spy.rows if "dev/score" in metrics]
    # The sine of one feature is all that two layers learn in so few steps.
    assert max(scores) > before / 2
    assert result.best_step == 20 * (1 + int(np.argmax(scores)))
    assert result.metrics == {"score": max(scores)}
    assert spy.figures == result.metrics | {"best_step": float(result.best_step)}
    assert (result.steps, result.stopped_early) == (60, False)
    assert result.folder == tmp_path / "weights"


def test_batches_are_asked_for_in_order_and_progress_is_told(tmp_path):
    task, done = ToyTask(), []
    fit(task, toy.optimizer, tmp_path, Spy(), Schedule(3, 3, 3), progress=done.append)
    assert done == [1, 2, 3]
    assert [step for step in task.asked if step < toy.HELD_OUT] == [0, 1, 2]


def start(folder, die_at, plan):
    given = {"folder": str(folder), "task": {"noise": 0.1, "die_at": die_at}, "plan": plan}
    done = subprocess.run(
        [sys.executable, toy.__file__, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == (-signal.SIGKILL if die_at else 0), done.stderr[-3000:]


def test_a_run_killed_twice_ends_in_the_same_bits(tmp_path):
    """kill -9 within steps 7 and 11 of 12; there are checkpoints after 4 and 8."""
    plan = {"steps": 12, "seed": 3}
    for die_at in ([6], [10], []):
        start(tmp_path / "killed", die_at, plan)
    train(tmp_path / "whole", ToyTask(noise=0.1), **plan)
    killed, whole = weights(tmp_path / "killed"), weights(tmp_path / "whole")
    assert killed.keys() == whole.keys()
    for name, value in whole.items():
        assert value.tobytes() == killed[name].tobytes(), name
    # Each step stands once in the log, with the same numbers.
    assert metrics_of(tmp_path / "killed") == metrics_of(tmp_path / "whole")


def test_a_run_that_is_asked_to_end_goes_on_to_the_same_bits(tmp_path):
    """Asked after steps 3 and 9 of 12; the checkpoints that are due come after 4 and 8."""
    plan = {"steps": 12, "seed": 3}
    for step, made in ((3, 3), (9, 6)):
        calls = iter(range(1, 13))
        stop = lambda made=made, calls=calls: next(calls) == made  # noqa: E731
        with pytest.raises(TrainingStopped, match=f"after step {step} of 12") as stopped:
            train(tmp_path / "asked", ToyTask(noise=0.1), stop=stop, **plan)
        assert stopped.value.done == step
        assert not (tmp_path / "asked" / "weights").exists()
    result = train(tmp_path / "asked", ToyTask(noise=0.1), stop=lambda: False, **plan)
    train(tmp_path / "whole", ToyTask(noise=0.1), **plan)
    assert result.steps == 12
    asked, whole = weights(tmp_path / "asked"), weights(tmp_path / "whole")
    for name, value in whole.items():
        assert value.tobytes() == asked[name].tobytes(), name
    assert metrics_of(tmp_path / "asked") == metrics_of(tmp_path / "whole")


def test_a_run_that_is_asked_at_its_end_is_finished(tmp_path):
    result = train(tmp_path, steps=1, stop=lambda: True)
    assert result.steps == 1 and (tmp_path / "weights").exists()


def test_a_finished_run_is_not_trained_again(tmp_path):
    train(tmp_path, steps=4)
    before, task = weights(tmp_path), ToyTask()
    result = train(tmp_path, task, steps=4)
    assert [step for step in task.asked if step < toy.HELD_OUT] == []
    assert result.steps == 4 and not result.stopped_early
    for name, value in weights(tmp_path).items():
        assert np.array_equal(value, before[name])


def test_it_stops_without_progress_and_keeps_the_best(tmp_path):
    # Better at steps 2 and 4, then three times not (equal is not better).
    scores = [0.1, 0.5, 0.4, 0.5, 0.3, 0.9]
    plan = {"eval_every": 2, "checkpoint_every": 100, "patience": 3}
    task = ToyTask(scores=[*scores[:5], -1.0])
    result = train(tmp_path / "stopped", task, steps=40, **plan)
    assert (result.steps, result.best_step, result.stopped_early) == (10, 4, True)
    # The weights are those of the same run after step 4; the rate has the same 40 steps.
    found = weights(tmp_path / "stopped")
    task = ToyTask(scores=[0.1, 0.5, 0.4, -1.0])
    four = train(tmp_path / "four", task, steps=40, **plan | {"patience": 1})
    assert four.best_step == 4 and four.steps == 6
    for name, value in weights(tmp_path / "four").items():
        assert np.array_equal(found[name], value)
    # Taken up again, it stays stopped.
    again = ToyTask(scores=[-1.0])
    assert train(tmp_path / "stopped", again, steps=40, **plan).best_step == 4
    assert [step for step in again.asked if step < toy.HELD_OUT] == []


def test_patience_is_counted_over_a_resume(tmp_path):
    plan = {"eval_every": 2, "checkpoint_every": 2, "patience": 3}
    broken = ToyTask(scores=[0.5, 0.4, 0.3], die_at=[6])
    broken.die = RuntimeError
    with pytest.raises(RuntimeError):
        train(tmp_path, broken, steps=40, **plan)
    result = train(tmp_path, ToyTask(scores=[0.2, -1.0]), steps=40, **plan)
    assert (result.steps, result.best_step) == (8, 2)


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    task = ToyTask(nan_from=5)
    with pytest.raises(TrainingError, match="loss is nan at step 6; lower the learning rate"):
        train(tmp_path, task, log_every=2)
    # The weights before are kept, and the run can go on from there.
    result = train(tmp_path, ToyTask(), log_every=2)
    assert result.steps == 12
    assert all(np.isfinite(value).all() for value in weights(tmp_path).values())


def test_no_checkpoint_is_made_of_what_is_no_number(tmp_path):
    """Between two lines of the log too."""
    with pytest.raises(TrainingError, match="is nan at step 8"):
        train(tmp_path, ToyTask(nan_from=5), log_every=100)
    task = ToyTask()
    train(tmp_path, task, log_every=100)
    assert [step for step in task.asked if step < toy.HELD_OUT][0] == 4


def test_saved_weights_go_back_into_the_model(tmp_path):
    train(tmp_path, steps=4)
    model = ToyTask().build(9)
    load_adapter(tmp_path / "weights", model, ToyTask.trainable)
    flat = nnx.to_flat_state(nnx.state(model, ToyTask.trainable))
    full = weights(tmp_path)
    for path, value in flat:
        expected = full[".".join(map(str, path))]
        assert np.array_equal(value[...], expected.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("name", ["steps", "eval_every", "checkpoint_every", "accumulate"])
def test_an_empty_schedule_is_named(name):
    given = {"steps": 1, "eval_every": 1, "checkpoint_every": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} is 0, expected 1 or more"):
        Schedule(**given)
