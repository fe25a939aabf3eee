"""The fifteen recorded runs of the released code, as records."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from triax.indexing.hashing import HashingEncoder
from triax.llm.scripted import ScriptedCompleter
from triax.records.documents import Chunk
from triax.records.questions import Question
from triax.records.triplets import Extraction, Triplet
from triax.retrieval.original import OriginalRetriever

SCENARIOS = (
    "N1",
    "all_resolved_at_start",
    "exhaust_N",
    "final_exception",
    "fuzzy_only",
    "happy",
    "newly_traceable_two_q",
    "no_openie",
    "no_triples",
    "partial",
    "resolved_with_q",
    "resolver_exception",
    "secondary_parse",
    "simple_retry",
    "unparsable",
)


def folder() -> Path | None:
    """Where the recorded runs are; None where the shared folder is absent."""
    root = Path(
        os.environ.get("TRIAX_ORACLE") or Path(__file__).parents[2].parent / "shared" / "oracle"
    )
    found = [path for path in (root / "t2rag", root) if any(path.glob("*.json"))]
    return found[0] if found else None


needs_oracle = [
    pytest.mark.data,
    pytest.mark.skipif(folder() is None, reason="no recorded runs: set TRIAX_ORACLE"),
]


def load(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(scenario, result) of a recorded run."""
    root = folder()
    assert root is not None
    run = json.loads((root / f"{name}.json").read_text(encoding="utf-8"))
    return run["scenario"], run["result"]


class Spy:
    """The toy encoder; keeps the query texts, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self._inner = HashingEncoder(512)
        self.name, self.dimension = self._inner.name, self._inner.dimension

    def encode(self, texts: Sequence[str], role: str = "passage"):
        if role == "query":
            self.calls.append(list(texts))
        return self._inner.encode(texts, role)


def question(scenario: dict[str, Any]) -> Question:
    return Question("q", scenario["question"])


def retriever(scenario: dict[str, Any], encoder: Spy) -> OriginalRetriever:
    """The released code's search over the scenario's documents."""
    chunks, extractions = {}, []
    for document in scenario["docs"] or ():
        title, _, text = document["passage"].partition("\n")
        chunks[document["idx"]] = Chunk(document["idx"], document["idx"], text, title)
        triplets = tuple(Triplet(*fields) for fields in document["extracted_triples"])
        extractions.append(Extraction(document["idx"], triplets))
    return OriginalRetriever(chunks, extractions, encoder)


def in_order(scenario: dict[str, Any]) -> ScriptedCompleter:
    """The scripted answers call by call; the last one stands for all calls beyond the end."""
    return ScriptedCompleter([*scenario["answers"], *[scenario["answers"][-1]] * 5])
