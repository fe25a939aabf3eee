from triax.reporting.systems import COLUMNS, systems_table

ROWS = [
    {
        "system": "dense",
        "answer/em": 0.5,
        "answer/f1": 0.625,
        "answer/f1/low": 0.5,
        "answer/f1/high": 0.75,
        "cost/index_tokens": 0.0,
        "cost/weighted_tokens": 1234.5,
        "difference": [-0.0625, -0.125, 0.03125],
    },
    {"system": "t2rag", "answer/f1": 0.6875, "cost/calls": 3.0},
]


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_a_row_a_system_with_its_difference_and_its_costs():
    text = systems_table(ROWS, "demo, 20 questions", "t2rag")
    about, _, head, _, dense, base = text.split("\n")
    assert about.startswith("demo, 20 questions. ") and "F1 of t2rag" in about
    assert cells(head) == ["run", *COLUMNS.values()]
    wanted = ["dense", "50.0", "62.5 [50.0, 75.0]", "-6.2 [-12.5, +3.1]", "–", "–", "–", "0.0"]
    assert cells(dense)[:8] == wanted and cells(dense)[8] == "1,234"
    # The baseline has no difference, and what was not measured is a dash (R29).
    assert cells(base)[:4] == ["t2rag", "–", "68.8", "–"] and cells(base)[9] == "3.0"


def test_an_empty_table_has_a_head():
    assert len(systems_table([], "nothing", "t2rag").split("\n")) == 4
