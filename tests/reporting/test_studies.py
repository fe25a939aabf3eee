import pytest

from triax.reporting.studies import best_so_far, lines_over, settings_of, shown, varied

CONFIGS = {
    "a": {"name": "a", "pipeline": {"k": 1, "resolver": {"min_here": 0.5}}, "paths": {"runs": "x"}},
    "b": {"name": "b", "pipeline": {"k": 3, "resolver": {"min_here": 0.5}}, "paths": {"runs": "y"}},
    "c": {"name": "c", "pipeline": {"k": 3, "resolver": None}, "paths": {"runs": "y"}},
}


def test_settings_that_differ():
    found = varied(CONFIGS, ("name", "paths"))
    assert found == ["pipeline.k", "pipeline.resolver.min_here"]
    assert varied({"a": CONFIGS["a"]}) == [] and varied({}) == []
    assert "paths.runs" in varied(CONFIGS, ("path",))  # a beginning ends at a dot


def test_another_class_stands_for_what_goes_with_it():
    one = {"_target_": "triax.dense", "num_chunks": 5}
    two = {"_target_": "triax.t2rag", "num_chunks": 5, "rounds": 3, "resolver": {"_target_": "r"}}
    found = varied({"a": {"pipeline": one, "seed": 0}, "b": {"pipeline": two, "seed": 1}})
    assert found == ["pipeline._target_", "seed"]


def test_values_of_settings():
    names = ["pipeline.k", "pipeline.resolver.min_here"]
    assert settings_of(CONFIGS["b"], names) == dict(zip(names, (3, 0.5)))
    assert settings_of(CONFIGS["c"], names) == dict(zip(names, (3, None)))
    assert shown(settings_of(CONFIGS["b"], names)) == "k=3, min_here=0.5"


ROWS = [
    ({"k": 5, "model": "a"}, {"f1": 0.5}),
    ({"k": 1, "model": "a"}, {"f1": 0.25}),
    ({"k": 1, "model": "b"}, {"f1": 0.75}),
    ({"k": 3, "model": "b"}, {}),
]


def test_a_line_for_each_choice_of_the_others():
    assert lines_over(ROWS, "k", "f1") == {
        "model=a": [(1.0, 0.25), (5.0, 0.5)],
        "model=b": [(1.0, 0.75)],
    }
    assert lines_over([({"k": 2}, {"f1": 1.0})], "k", "f1") == {"f1": [(2.0, 1.0)]}


@pytest.mark.parametrize("value", ["many", None, True])
def test_only_numbers_can_be_drawn_over(value):
    with pytest.raises(ValueError, match=r"k has the value .*expected numbers"):
        lines_over([({"k": value}, {"f1": 1.0})], "k", "f1")


def test_the_best_so_far_of_a_search():
    found = best_so_far([0.5, None, 0.25, 0.75])
    assert found == {
        "best so far": [(1.0, 0.5), (3.0, 0.5), (4.0, 0.75)],
        "each trial": [(1.0, 0.5), (3.0, 0.25), (4.0, 0.75)],
    }
    assert best_so_far([0.5, 0.25], "minimize")["best so far"] == [(1.0, 0.5), (2.0, 0.25)]
    with pytest.raises(ValueError, match="'up', expected maximize or minimize"):
        best_so_far([], "up")
