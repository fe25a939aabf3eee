"""How well SPARQL was written in answered runs.   python eval/sparql.py 'names=[first,second]'

Of runs with reader=sparql, or one that may take it: the share of queries that rdflib parses, their
patterns and bound variables, and how often the model abstained.
"""

import json
import sys

import hydra
import wiring
from omegaconf import DictConfig

from triax.reasoning.sparql import read_thoughts
from triax.records.files import read_jsonl
from triax.reporting.tables import markdown_table
from triax.scoring.significance import mean_interval
from triax.scoring.sparql import parses

COLUMNS = {
    "questions": "questions",
    "coverage/with_query": "query",
    "coverage/parsed": "parsed",
    "patterns": "patterns",
    "coverage/bound": "variables bound",
    "coverage/abstained": "abstained",
}


@hydra.main(version_base="1.3", config_path="../conf", config_name="sparql")
def main(cfg: DictConfig) -> None:
    table = {}
    for name in cfg.names:
        path = wiring.run_folder(cfg, name) / "traces.jsonl"
        if not path.exists():
            sys.exit(f"error: {path} is not there; run `python eval/answer.py name={name}` first")
        # The last row of a question is the one that counts: a failed one was asked again.
        traces = list({row["question_id"]: row for row in read_jsonl(path)}.values())
        table[name] = _measured([one for one in traces if one["error"] is None])
    print("Parse rate of the queries that were written, by rdflib; shares in per cent.\n")
    print(markdown_table(table, COLUMNS))
    print(json.dumps(table))


def _measured(traces: list[dict]) -> dict[str, float | int]:
    thoughts = [read_thoughts(one.get("written", "")) for one in traces]
    queries = [one for one in thoughts if one.query]
    found: dict[str, float | int] = {"questions": len(traces)}
    if traces:
        found["coverage/with_query"] = len(queries) / len(traces)
        found["coverage/abstained"] = sum(one["answer"] is None for one in traces) / len(traces)
    if queries:
        parsed = [float(parses(one.query)) for one in queries]
        interval = mean_interval(parsed)
        found["coverage/parsed"] = sum(parsed) / len(parsed)
        found |= {"coverage/parsed/low": interval.low, "coverage/parsed/high": interval.high}
        found["patterns"] = sum(len(one.patterns) for one in queries) / len(queries)
        found["coverage/bound"] = sum(map(_bound, queries)) / len(queries)
    return found


def _bound(thoughts) -> float:
    """The share of a query's variables that have a value."""
    names = {one.name for triplet in thoughts.patterns for one in triplet.placeholders}
    given = {name.removeprefix("?") for name in thoughts.bindings}
    return len(names & given) / len(names) if names else 0.0


if __name__ == "__main__":
    main()
