"""How well SPARQL was written in answered runs.   python eval/sparql.py 'names=[first,second]'

Of runs with reader=sparql: the share of questions, and of written queries, that rdflib parses, the
queries' patterns and bound variables, and how often the model abstained. reader=by_question_type
keeps only what its last reader wrote, so its queries are a selection.
"""

import json
import sys

import hydra
import wiring
from omegaconf import DictConfig

from triax.reasoning.sparql import read_thoughts
from triax.records.files import read_jsonl
from triax.reporting.tables import markdown_table
from triax.scoring.sparql import sparql_figures

COLUMNS = {
    "questions": "questions",
    "coverage/with_query": "query",
    "coverage/parsed": "parsed, of questions",
    "coverage/parsed_queries": "parsed, of queries",
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
        traces = {row["question_id"]: row for row in read_jsonl(path)}.values()
        # A text without a final answer is an error of the trace, but it was written.
        told = [one for one in traces if one["error"] is None or one.get("written")]
        table[name] = sparql_figures(
            [read_thoughts(one.get("written", "")) for one in told],
            [one["error"] is None and one["answer"] is None for one in told],
        )
    print("SPARQL that was written, parsed by rdflib; shares in per cent, with 95% intervals.\n")
    print(markdown_table(table, COLUMNS))
    print(json.dumps(table))


if __name__ == "__main__":
    main()
