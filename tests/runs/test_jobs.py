import json

import pytest

from triax.runs.jobs import Job, PlanError, Planned, grid, plan, read_jobs, share

SWEPT = "pipeline.num_chunks"


def planned(value, name=None, **more):
    config = {"corpus": "demo", "pipeline": {"num_chunks": value, "k": "${pipeline.num_chunks}"}}
    name = name or f"x-k{value}"
    return Planned(name, (f"{SWEPT}={value}", "corpus=demo"), {SWEPT: value}, config | more)


def pairs(ks, ns):
    return [
        Planned(f"x-{k}-{n}", (f"a={k}", f"b={n}"), {"a": k, "b": n}, {"a": k, "b": n, "c": 1})
        for k in ks
        for n in ns
    ]


def test_jobs_are_numbered_in_order_and_read_again(tmp_path):
    jobs = plan(tmp_path, [planned(1), planned(3)])
    assert jobs == read_jobs(tmp_path / "manifest.jsonl")
    assert [(job.number, job.name, job.settings) for job in jobs] == [
        (0, "x-k1", {SWEPT: 1}),
        (1, "x-k3", {SWEPT: 3}),
    ]
    assert jobs[1].overrides == ("pipeline.num_chunks=3", "corpus=demo")


def test_the_same_again_changes_nothing_and_more_values_come_behind(tmp_path):
    plan(tmp_path, [planned(1), planned(3)])
    before = (tmp_path / "manifest.jsonl").stat().st_ino
    plan(tmp_path, [planned(1), planned(3)])
    assert (tmp_path / "manifest.jsonl").stat().st_ino == before
    jobs = plan(tmp_path, [planned(0), planned(1)])
    assert [job.name for job in jobs] == ["x-k1", "x-k3", "x-k0"]


def test_other_settings_are_refused_and_named(tmp_path):
    plan(tmp_path, [planned(1)])
    kept = (tmp_path / "manifest.jsonl").read_bytes()
    with pytest.raises(PlanError, match=r"other settings \(corpus: 'demo' -> 'hotpotqa'\)"):
        plan(tmp_path, [planned(3, corpus="hotpotqa")])
    with pytest.raises(PlanError, match=r"seed: None -> 1"):
        plan(tmp_path, [planned(3, seed=1)])
    assert (tmp_path / "manifest.jsonl").read_bytes() == kept
    assert len(plan(tmp_path, [planned(3, seed=1)], ignored=["seed"])) == 2


def test_a_part_that_is_chosen_by_name_may_bring_settings_of_its_own(tmp_path):
    def chosen(name):
        config = {"pipeline": {"_target_": name, name: 1}, "solver": name, "corpus": "demo"}
        return Planned(name, (f"pipeline={name}",), {"pipeline": name}, config)

    plan(tmp_path, [chosen("dense"), chosen("bm25")])
    assert len(plan(tmp_path, [chosen("t2rag"), chosen("bm25")])) == 3


def test_two_jobs_of_one_name_are_refused(tmp_path):
    with pytest.raises(PlanError, match=r"two jobs have the name x.*must say what is swept"):
        plan(tmp_path, [planned(1, "x"), planned(3, "x")])
    plan(tmp_path, [planned(1, "x")])
    with pytest.raises(PlanError, match=r"x is planned with .*1.*now it has .*3"):
        plan(tmp_path, [planned(3, "x")])


@pytest.mark.parametrize("name", ["a/b", "..", "a b", ""])
def test_a_name_is_that_of_a_folder(tmp_path, name):
    one = Planned(name, (), {SWEPT: 1}, {})
    with pytest.raises(PlanError, match="is no name of a run"):
        plan(tmp_path, [one])


def test_nothing_swept_and_something_else_swept(tmp_path):
    with pytest.raises(PlanError, match="nothing is swept"):
        plan(tmp_path, [Planned("x", (), {}, {})])
    with pytest.raises(PlanError, match="no job to plan"):
        plan(tmp_path, [])
    plan(tmp_path, [planned(1)])
    with pytest.raises(PlanError, match=r"sweeps \['pipeline.num_chunks'\], now \['a', 'b'\]"):
        plan(tmp_path, pairs([1], [1]))


def test_a_grid_grows_to_a_grid(tmp_path):
    plan(tmp_path, pairs([1, 3], [1, 2]))
    with pytest.raises(PlanError, match=r"1 of the grid are missing.*'a': 1, 'b': 5"):
        plan(tmp_path, pairs([3], [5]) + pairs([5], [1, 2, 5]))
    jobs = plan(tmp_path, pairs([1, 3, 5], [1, 2]))
    assert grid(jobs) == {"a": [1, 3, 5], "b": [1, 2]}
    assert [job.name for job in jobs[4:]] == ["x-5-1", "x-5-2"]


def test_a_manifest_that_is_none(tmp_path):
    path = tmp_path / "manifest.jsonl"
    with pytest.raises(PlanError, match="run eval/plan_sweep.py first"):
        read_jobs(path)
    row = {"number": 1, "name": "x", "overrides": [], "settings": {}, "index": None}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(PlanError, match=r"numbers \[1\], expected 0 to 0"):
        read_jobs(path)
    path.write_text('{"number": 0}\n')
    with pytest.raises(PlanError, match="no list of jobs"):
        read_jobs(path)
    path.write_text(json.dumps(row | {"number": 0}) + "\n")
    assert read_jobs(path) == [Job(0, "x", (), {})]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 9])
def test_each_job_is_taken_by_one_task(of):
    taken = [share(range(7), task, of) for task in range(of)]
    assert sorted(one for part in taken for one in part) == list(range(7))
    assert max(map(len, taken)) - min(map(len, taken)) <= 1
