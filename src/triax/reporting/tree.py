"""One trace as a tree that a person can read."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.tree import Tree


def trace_tree(trace: Mapping[str, Any], num_propositions: int = 5) -> Tree:
    """The tree of a trace as `triax.records.trace_json` writes it.

    Text of questions, corpora and models is escaped, so that it cannot style the output (R24).
    """
    tree = Tree(f"[bold]{escape(trace['question'])}[/]  ({escape(trace['pipeline'])})")
    plan = tree.add(f"query triplets: {len(trace['decomposition'])}")
    for fields in trace["decomposition"]:
        plan.add(_triplet(fields))
    for one in trace["rounds"]:
        _add_round(tree, one, num_propositions)
    if trace["final"]:
        known = tree.add(f"resolved: {len(trace['final']['resolved'])}")
        for entry in trace["final"]["resolved"]:
            sources = ", ".join(entry["chunk_ids"][:3]) or "question"
            known.add(f"{_triplet(entry['triplet'])}  [dim]{escape(sources)}[/]")
    usage = trace["usage"]
    tree.add(
        f"stopped: {escape(trace['stop_reason'])}; {usage['calls']} calls, "
        f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens, "
        f"{trace['seconds']:.1f} s"
    )
    answer = "no answer" if trace["answer"] is None else escape(trace["answer"])
    tree.add(f"answer: [bold]{answer}[/]")
    if trace["error"]:
        tree.add(f"error: {escape(trace['error'])}")
    return tree


def _add_round(tree: Tree, one: Mapping[str, Any], num_propositions: int) -> None:
    branch = tree.add(f"round {one['number']}")
    asked = branch.add("searched")
    for query in one["queries"]:
        asked.add(escape(query))
    found = branch.add(
        f"found {len(one['propositions'])} propositions in {len(one['chunks'])} chunks"
    )
    for hit in one["propositions"][:num_propositions]:
        found.add(f"{hit['score']:.2f}  {escape(hit['text'])}")
    before = {tuple(entry["triplet"]) for entry in one["before"]["resolved"]}
    for entry in one["after"]["resolved"]:
        if tuple(entry["triplet"]) not in before:
            branch.add(f"resolved  {_triplet(entry['triplet'])}")
    for fields in one["after"]["searchable"]:
        if fields not in one["before"]["searchable"]:
            branch.add(f"newly searchable  {_triplet(fields)}")
    if one["note"]:
        branch.add(f"[dim]{escape(one['note'])}[/]")


def _triplet(fields: list[str]) -> str:
    return escape(" | ".join(fields))
