"""One trace as a tree that a person can read."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from triax.records.text import clean


def trace_tree(trace: Mapping[str, Any], num_propositions: int = 5) -> Tree:
    """The tree of a trace as `triax.records.trace_json` writes it.

    Text of questions, corpora and models is never read as markup, emoji codes or terminal
    escapes, so that it cannot style the output (R24).
    """
    tree = Tree(
        Text.assemble((clean(trace["question"]), "bold"), f"  ({clean(trace['pipeline'])})")
    )
    plan = tree.add(f"query triplets: {len(trace['decomposition'])}")
    for fields in trace["decomposition"]:
        plan.add(_triplet(fields))
    for one in trace["rounds"]:
        _add_round(tree, one, num_propositions)
    if trace["final"]:
        known = tree.add(f"resolved: {len(trace['final']['resolved'])}")
        for entry in trace["final"]["resolved"]:
            sources = ", ".join(entry["chunk_ids"][:3]) or "question"
            known.add(Text.assemble(_triplet(entry["triplet"]), "  ", (clean(sources), "dim")))
    usage = trace["usage"]
    tree.add(
        _plain(
            f"stopped: {trace['stop_reason']}; {usage['calls']} calls, "
            f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens, "
            f"{trace['seconds']:.1f} s"
        )
    )
    answer = "no answer" if trace["answer"] is None else clean(trace["answer"])
    tree.add(Text.assemble("answer: ", (answer, "bold")))
    if trace["error"]:
        tree.add(_plain(f"error: {trace['error']}"))
    return tree


def _add_round(tree: Tree, one: Mapping[str, Any], num_propositions: int) -> None:
    branch = tree.add(f"round {one['number']}")
    asked = branch.add("searched")
    for query in one["queries"]:
        asked.add(_plain(query))
    found = branch.add(
        f"found {len(one['propositions'])} propositions in {len(one['chunks'])} chunks"
    )
    for hit in one["propositions"][:num_propositions]:
        found.add(_plain(f"{hit['score']:.2f}  {hit['text']}"))
    before = {tuple(entry["triplet"]) for entry in one["before"]["resolved"]}
    for entry in one["after"]["resolved"]:
        if tuple(entry["triplet"]) not in before:
            branch.add(Text.assemble("resolved  ", _triplet(entry["triplet"])))
    for fields in one["after"]["searchable"]:
        if fields not in one["before"]["searchable"]:
            branch.add(Text.assemble("newly searchable  ", _triplet(fields)))
    if one["note"]:
        branch.add(Text(clean(one["note"]), "dim"))


def _triplet(fields: Sequence[str]) -> Text:
    return _plain(" | ".join(fields))


def _plain(text: str) -> Text:
    return Text(clean(text))
