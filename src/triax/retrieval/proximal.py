"""Proximal triplets: what the first passages already say towards the answer.

Source: GeAR (Shen et al., 2024, section 3.1, "Reader"). A language model reads the passages that a
base retriever found and writes them; without one, they are chosen among the triplets that the
extractor found in those passages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from triax.indexing.store import TripletIndex, check_encoder
from triax.llm.ask import Unreadable, ask, conversation
from triax.llm.blocking import run_now
from triax.records.completions import Completion, CompletionRequest
from triax.records.evidence import Evidence
from triax.records.triplet_text import parse_triplets
from triax.records.usage import Usage
from triax.records.verbs import Completer, Encoder
from triax.retrieval.adaptive import encode_groups
from triax.retrieval.row_scores import Groups
from triax.retrieval.seeds import best_rows

SYSTEM = (
    "You are given passages and a question. Write down what the passages say that helps to answer "
    "it, as triplets `subject | predicate | object`, one a line, at most {most}. State only what a "
    "passage states. If no passage helps, write: none"
)
SHOTS = (
    (
        "Passages:\nQuellmoor: Quellmoor is a novel of 1807 by Ottoline Varnhagen-Pryce.\n"
        "Tarnovia: Tarnovia borders Norvenia.\n\n"
        "Question: In which town was the author of Quellmoor born?",
        "Quellmoor | written by | Ottoline Varnhagen-Pryce",
    ),
    (
        "Passages:\nOsel: Lake Osel is 212 m deep.\n\nQuestion: Who composed Tarnovia's anthem?",
        "none",
    ),
)


@dataclass(frozen=True, slots=True)
class Proximal:
    """Triplets as sentences, and what it cost to write them."""

    texts: tuple[str, ...]
    usage: Usage = Usage()


@runtime_checkable
class ProximalReader(Protocol):
    """Reads the evidence of each group of queries; no triplet at all is an answer too."""

    def read(self, groups: Groups, evidences: Sequence[Evidence]) -> list[Proximal]: ...


@dataclass(frozen=True, slots=True)
class PromptedProximal:
    """Asks a language model, one call a group. A failed or unreadable answer gives no triplet."""

    completer: Completer
    most: int = 8
    max_words_per_chunk: int = 150
    max_tokens: int = 256

    def read(self, groups: Groups, evidences: Sequence[Evidence]) -> list[Proximal]:
        """Blocks until all answers are there; what has no chunk is not asked about."""
        asked = [n for n, group in enumerate(groups) if group and evidences[n].chunks]
        requests = [self._request(groups[n], evidences[n]) for n in asked]
        replies = run_now(ask(self.completer, requests, lambda _, text: self._texts(text)))
        found = [Proximal(()) for _ in groups]
        for number, reply in zip(asked, replies, strict=True):
            found[number] = Proximal(reply.value or (), reply.usage)
        return found

    def _request(self, group: Sequence[str], evidence: Evidence) -> CompletionRequest:
        lines = [
            f"{one.chunk.title}: {' '.join(one.chunk.text.split()[: self.max_words_per_chunk])}"
            for one in evidence.chunks
        ]
        shown = "Passages:\n" + "\n".join(lines) + f"\n\nQuestion: {' '.join(group)}"
        return CompletionRequest(
            conversation(SYSTEM.format(most=self.most), SHOTS, shown),
            self.max_tokens,
            stage="proximal",
        )

    def _texts(self, completion: Completion) -> tuple[str, ...]:
        parsed = parse_triplets(completion.text or "", is_cut=completion.finish_reason == "length")
        if parsed.status == "failed":
            raise Unreadable(f"{parsed.reason}; expected lines `subject | predicate | object`")
        return tuple(" ".join(one.fields) for one in parsed.triplets[: self.most])


class FoundProximal:
    """Takes, of the triplets of the found passages, those nearest to the question; no model."""

    def __init__(self, index: TripletIndex, encoder: Encoder, most: int = 8) -> None:
        """Takes the index whose triplets are chosen from.

        Raises:
            ValueError: the index was built with another encoder.
        """
        check_encoder(index, encoder, probes=False)
        self._encoder, self._most = encoder, most
        self._vectors = index.vectors
        self._texts = index.tables.propositions["text"]
        self._row_of = {name: row for row, name in enumerate(index.tables.chunks["id"].to_pylist())}
        sources = index.tables.sources
        order = np.argsort(sources.rows, kind="stable")
        rows = np.repeat(np.arange(len(sources.offsets) - 1), np.diff(sources.offsets))
        self._rows = rows[order]  # proposition rows, chunk after chunk
        self._starts = np.searchsorted(sources.rows[order], np.arange(sources.num_chunks + 1))

    def read(self, groups: Groups, evidences: Sequence[Evidence]) -> list[Proximal]:
        """At most `most` triplets of each group's chunks, by their best score over its queries."""
        found = []
        for queries, evidence in zip(encode_groups(self._encoder, groups), evidences, strict=True):
            rows = self._of_chunks([one.chunk.id for one in evidence.chunks])
            if not len(queries) or not len(rows):
                found.append(Proximal(()))
                continue
            scores = (self._vectors[rows].astype(np.float32) @ queries.T).max(axis=1)
            best = rows[best_rows(scores.astype(np.float32), self._most)]
            found.append(Proximal(tuple(self._texts[row].as_py() for row in best.tolist())))
        return found

    def _of_chunks(self, names: Sequence[str]) -> np.ndarray:
        chunks = [self._row_of[name] for name in names if name in self._row_of]
        spans = [self._rows[self._starts[one] : self._starts[one + 1]] for one in chunks]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *spans]))
