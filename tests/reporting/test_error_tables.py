from triax.reporting.error_tables import error_tables

SHARES = {"errors/accuracy": 0.67, "errors/accuracy/low": 0.5, "errors/accuracy/high": 0.75}
ALL = {"count/questions": 500.0, "count/wrong": 165.0, **SHARES}
COVERED = {"errors/m1": 0.904, "errors/m1_reasoning": 0.824, "errors/m3": 0.882}
CLASSED = {"errors/class/failed": 0.0, "errors/class/missing_retrieval": 0.25}


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_for_each_part_of_a_run():
    text = error_tables(
        {"a": {"all": ALL | COVERED, "kind/bridge": SHARES}, "b": {"all": ALL}}, "S"
    )
    lines = text.split("\n")
    assert lines[0].startswith("S. M1: the answer is in what was read")
    head, _, first, kind, second = map(cells, lines[2:])
    assert head[:3] == ["run", "questions", "accuracy"] and "reasoning share, M3" in head
    shown = dict(zip(head, first, strict=True))
    assert shown["questions"] == "500" and shown["accuracy"] == "67.0 [50.0, 75.0]"
    assert (shown["M1"], shown["reasoning share, M1"], shown["M3"]) == ("90.4", "82.4", "88.2")
    assert (kind[0], second[0]) == ("a, kind bridge", "b")
    assert dict(zip(head, second, strict=True))["M1"] == "–"


def test_classes_of_the_runs_that_have_a_state():
    runs = {"loop": {"all": ALL | CLASSED, "state/resolved": ALL | CLASSED}, "plain": {"all": ALL}}
    head, _, whole, part = map(cells, error_tables(runs, "S").split("\n")[-4:])
    assert "missing retrieval" in head and "hallucinated, of all" in head
    assert dict(zip(head, whole, strict=True))["missing retrieval"] == "25.0"
    assert (whole[:2], part[0]) == (["loop", "165"], "loop, resolved")
    assert "hallucination" not in error_tables({"plain": {"all": ALL}}, "S")
