import multiprocessing
import os
import time
from dataclasses import replace

import optuna
import pytest

from triax.runs.attempts import Worker
from triax.runs.statuses import SILENCE_S, JobStatus, save, status_path
from triax.runs.trials import Search, SearchError

SPACE = {
    "k": optuna.distributions.IntDistribution(1, 10),
    "x": optuna.distributions.FloatDistribution(-1.0, 1.0),
    "part": optuna.distributions.CategoricalDistribution(["a", "b"]),
}


def open_search(folder, trials=4, shared=None, **more):
    return Search(folder / "x", SPACE, {"corpus": "demo"} | (shared or {}), trials=trials, **more)


def finish(search, folder, trial, worker, value):
    save(folder / "x", JobStatus(trial.name, "finished", worker))
    return search.tell(trial, value)


def score(settings):
    return -((settings["k"] - 4) ** 2) - settings["x"] ** 2


def work(folder, trials, out):
    search, worker = open_search(folder, trials), Worker.this()
    while (trial := search.propose(worker)) is not None:
        time.sleep(0.01)
        finish(search, folder, trial, worker, score(trial.settings))
        out.put((trial.number, trial.name, os.getpid()))


def test_processes_share_the_trials(tmp_path):
    """As many as were asked for, each once, by whoever is free; the best is the best of all."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    processes = [context.Process(target=work, args=(tmp_path, 8, out)) for _ in range(2)]
    for one in processes:
        one.start()
    done = [out.get(timeout=120) for _ in range(8)]
    for one in processes:
        one.join(30)
    assert sorted(number for number, _, _ in done) == list(range(8))
    assert {name for _, name, _ in done} == {f"x-{number:03d}" for number in range(8)}
    assert out.empty()
    best = open_search(tmp_path, 8).best()
    assert (best.finished, best.failed, best.running) == (8, 0, 0)
    assert best.value == score(best.settings)
    assert 1 <= best.settings["k"] <= 10 and best.settings["part"] in "ab"


def test_a_failed_trial_counts_and_is_not_the_best(tmp_path):
    search, worker = open_search(tmp_path, 2, direction="minimize"), Worker.this()
    assert search.best() is None
    first = search.propose(worker)
    finish(search, tmp_path, first, worker, None)
    second = search.propose(worker)
    finish(search, tmp_path, second, worker, 3.0)
    assert search.propose(worker) is None
    best = search.best()
    assert (best.name, best.value, best.failed) == (second.name, 3.0, 1)


def test_a_search_can_be_made_longer(tmp_path):
    worker = Worker.this()
    for trials in (1, 3):
        search, count = open_search(tmp_path, trials), 0
        while (trial := search.propose(worker)) is not None:
            finish(search, tmp_path, trial, worker, 0.0)
            count += 1
        assert count == (1 if trials == 1 else 2)


def test_equal_seeds_draw_equal_settings(tmp_path):
    drawn = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        search, worker = open_search(tmp_path / name, seed=seed), Worker.this()
        drawn.append([])
        while (trial := search.propose(worker)) is not None:
            drawn[-1].append(dict(trial.settings))
            finish(search, tmp_path / name, trial, worker, 0.0)
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({str(one) for one in drawn[0]}) == 4


FIRST = Worker("7_0", 0, "n1", 1, "a")


@pytest.mark.parametrize("how", ["requeued", "silent"])
def test_a_trial_of_a_dead_process_goes_on_under_its_name(tmp_path, how):
    search = open_search(tmp_path, 2)
    lost = search.propose(FIRST)
    # Another job sees that it runs, and leaves it alone.
    other = Worker("8_0", 0, "n2", 2, "b")
    second = search.propose(other)
    assert second.name != lost.name and search.propose(other) is None
    finish(search, tmp_path, second, other, 1.0)
    assert search.propose(other) is None and search.best().running == 1
    heir = replace(FIRST, restart=1, token="c")
    if how == "silent":
        heir = other
        then = time.time() - SILENCE_S - 5
        os.utime(status_path(tmp_path / "x", lost.name), (then, then))
    again = search.propose(heir)
    assert (again.name, dict(again.settings)) == (lost.name, dict(lost.settings))
    assert search.propose(heir) is None
    # The first was alive after all, cut off from the others: its word comes too late.
    assert not search.tell(lost, 9.0)
    assert finish(search, tmp_path, again, heir, 2.0)
    best = search.best()
    assert (best.value, best.finished, best.failed, best.running) == (2.0, 2, 0, 0)


def test_a_trial_whose_run_has_ended_is_left_to_who_is_about_to_tell(tmp_path):
    search, other = open_search(tmp_path, 1), Worker("8_0", 0, "n2", 2, "b")
    trial = search.propose(FIRST)
    save(tmp_path / "x", JobStatus(trial.name, "finished", FIRST))
    assert search.propose(other) is None
    assert search.tell(trial, 1.0) and search.best().finished == 1


@pytest.mark.parametrize("how", ["requeued", "silent"])
def test_a_trial_whose_process_died_before_it_told_is_run_again(tmp_path, how):
    search = open_search(tmp_path, 1)
    lost = search.propose(FIRST)
    save(tmp_path / "x", JobStatus(lost.name, "finished", FIRST))
    heir = replace(FIRST, restart=1, token="c")
    if how == "silent":
        heir = Worker("8_0", 0, "n2", 2, "b")
        then = time.time() - SILENCE_S - 5
        os.utime(status_path(tmp_path / "x", lost.name), (then, then))
    assert search.propose(heir).name == lost.name


def test_other_settings_are_refused(tmp_path):
    open_search(tmp_path)
    with pytest.raises(SearchError, match=r"other settings \(corpus: 'demo' -> 'hotpotqa'\)"):
        open_search(tmp_path, shared={"corpus": "hotpotqa"})
    with pytest.raises(SearchError, match="is to maximize, now it says minimize"):
        open_search(tmp_path, direction="minimize")
