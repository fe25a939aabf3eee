"""Compressors over the demo, without any model: the program as a user runs it."""

import json

from running import run

from triax.corpora.demo_corpus import load_demo
from triax.records.files import read_jsonl

SHARED = ["corpus=demo", "corpus.limit=12", "extractor=sentences", "encoder=hashing", "name=x"]
SHARED += ["token_counter=words", "num_chunks=20", "max_tokens=600"]


def test_a_table_of_what_is_left(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    home = {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}
    told = run(home, "eval", "compression", *SHARED).stdout
    folder = tmp_path / "runs" / "compression" / "x"
    rows = read_jsonl(folder / "per_question.jsonl")
    by_name = {}
    for row in rows:
        by_name.setdefault(row["compressor"], []).append(row)
    assert list(by_name) == ["whole", "graph_walk", "nearest", "truncation"]
    questions = load_demo().questions[:12]
    for name, found in by_name.items():
        assert [row["id"] for row in found] == [one.id for one in questions]
        assert name == "whole" or all(row["tokens"] <= 600 for row in found)
        # Yes and no stand in no context.
        said = [row["answer"] is None for row in found]
        assert said == [{"yes", "no"} >= set(one.answers) for one in questions]
    assert all(row["tokens"] > 600 for row in by_name["whole"])
    metrics = json.loads((folder / "metrics.json").read_text())
    table = metrics["table"]
    for name, found in by_name.items():
        assert table[name]["coverage/gold"] == sum(row["gold"] for row in found) / 12
    difference = table["graph_walk"]["coverage/gold"] - table["nearest"]["coverage/gold"]
    paired = metrics["differences"]["gold/graph_walk-nearest"]
    assert abs(paired["difference"] - difference) < 1e-12 and paired["questions"] == 12
    assert (folder / "table.md").read_text() in told
    other = run(home, "eval", "compression", *SHARED, "max_tokens=500", check=False)
    assert other.returncode != 0 and "max_tokens" in other.stderr
