from triax.runs.settings import differences, flat, shown_differences


def test_differences_of_nested_settings():
    before = flat({"a": {"b": 1, "c": []}, "d": {}})
    assert before == {"a.b": 1, "a.c": [], "d": {}}
    assert differences(before, flat({"a": {"b": 2, "c": []}})) == {"a.b": (1, 2), "d": ({}, None)}
    assert differences({"a.b": 1, "ab": 1}, {"a.b": 2, "ab": 2}, ["a"]) == {"ab": (1, 2)}


def test_differences_are_told_with_both_values():
    assert shown_differences({"a.b": (1, "x"), "c": (None, 2)}) == "a.b: 1 -> 'x'; c: None -> 2"
