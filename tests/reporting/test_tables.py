import re

from triax.reporting.tables import COLUMNS, markdown_table

RUN = {
    "answer/em": 0.25,
    "answer/f1": 0.5,
    "answer/f1/low": 0.4,
    "answer/f1/high": 0.625,
    "retrieval/recall@5": 1.0,
    "rounds": 1.5,
    "cost/calls": 0.034,
    "cost/weighted_tokens": 12345.6,
    "cost/llm_seconds": 0.0,
}


def cells(table):
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.split("\n")
    ]


def test_one_row_a_run():
    head, rule, first, second = cells(markdown_table({"a": RUN, "b": RUN | {"rounds": 3}}))
    assert head == ["run", "EM", "F1", "R@5", "rounds", "calls", "tokens", "LLM s"]
    assert set("".join(rule)) == {"-"}
    assert first == ["a", "25.0", "50.0 [40.0, 62.5]", "100.0", "1.5", "0.034", "12,346", "0.0"]
    assert second[4] == "3"  # a count


def test_r29_what_was_not_measured_is_a_dash():
    table = markdown_table({"a": {"answer/em": 0.0}, "b": {"answer/em": None}})
    assert cells(table)[2] == ["a", "0.0", *["–"] * 6]
    assert cells(table)[3] == ["b", *["–"] * 7]


def test_lenient_accuracy_has_a_column_of_its_own_where_it_was_measured():
    head, _, first, second = cells(markdown_table({"a": RUN, "b": RUN | {"answer/lenient": 0.75}}))
    assert head == ["run", *COLUMNS.values()]
    assert (head[3], first[3], second[3]) == ("lenient", "–", "75.0")


def test_every_recall_is_in_per_cent():
    columns = {f"retrieval/{name}": name for name in ("recall@2", "recall@10", "all@10", "mrr")}
    columns["coverage/answer"] = "answer"
    runs = {"a": dict.fromkeys(columns, 0.5)}
    assert cells(markdown_table(runs, columns))[2] == ["a", "50.0", "50.0", "50.0", "0.5", "50.0"]


def test_an_interval_needs_both_ends():
    assert cells(markdown_table({"a": {"answer/f1": 0.5, "answer/f1/low": 0.4}}))[2][2] == "50.0"


def test_columns_are_aligned():
    lines = markdown_table({"a": RUN, "a longer name": {}}).split("\n")
    assert len({len(line) for line in lines}) == 1


def test_r24_a_name_stays_in_its_cell():
    table = markdown_table({"a|b\n| c \x1b[31m": {"x": 1.0}}, {"x": "x|y"})
    assert cells(table)[0] == ["run", "x\\|y"]
    assert cells(table)[2] == ["a\\|b \\| c [31m", "1.0"]


def test_no_runs_are_a_head():
    assert len(markdown_table({}).split("\n")) == 2
