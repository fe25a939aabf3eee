"""Router labels from the ranks that two retrievers give the gold documents, without any model.

Source: R2Adapter, section 3.1 and the fields of its released training corpus: a side succeeds if
it ranks all gold documents within a cut; the graph is needed where vanilla fails and the graph
succeeds, or where the graph's average rank is strictly better; equal averages make both sides good.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from triax.records.routes import RouterExample

Part = Literal["train", "validation", "test"]


@dataclass(frozen=True, slots=True)
class GoldRanks:
    """The ranks, from 1, that one retriever gives the gold documents of a question.

    A tie counts as the mean rank of those that tie, so that no order of a corpus decides a label.
    """

    ranks: tuple[float | int, ...]

    def average(self, cut: int | None) -> float | None:
        """The mean rank; None if a document stands below the cut, or there is none."""
        if not self.ranks or (cut is not None and max(self.ranks) > cut):
            return None
        return sum(self.ranks) / len(self.ranks)


def label(
    question_id: str,
    question: str,
    kind: str,
    vanilla: GoldRanks,
    graph: GoldRanks,
    cut: int | None = 5,
) -> RouterExample | None:
    """The example of one question; None where neither side finds all gold documents.

    Args:
        question_id: as in the corpus.
        question: its text.
        kind: its type in the data set, "" if unknown.
        vanilla: ranks by vanilla retrieval.
        graph: ranks of the same documents by graph retrieval.
        cut: the last rank that counts as found; None counts every rank, so that no side fails.

    Raises:
        ValueError: the two sides rank another number of documents.
    """
    if len(vanilla.ranks) != len(graph.ranks):
        raise ValueError(
            f"question {question_id}: {len(vanilla.ranks)} ranks by vanilla retrieval and "
            f"{len(graph.ranks)} by the graph; expected those of the same gold documents"
        )
    ours, theirs = vanilla.average(cut), graph.average(cut)
    if ours is None and theirs is None:
        return None
    is_vanilla = ours is not None and (theirs is None or ours <= theirs)
    is_graph = theirs is not None and (ours is None or theirs <= ours)
    return RouterExample(
        question_id, question, kind, is_vanilla, is_graph, ours, theirs, len(vanilla.ranks)
    )


def ranks_of(scores: Float[np.ndarray, " documents"], gold: Sequence[int]) -> GoldRanks:
    """Ranks of the documents at positions `gold` among all scores, the highest first.

    >>> ranks_of(np.array([0.2, 0.9, 0.5, 0.5]), [2, 0]).ranks
    (2.5, 4.0)
    """
    found = []
    for place in gold:
        above = int((scores > scores[place]).sum())
        tied = int((scores == scores[place]).sum())
        found.append(above + (tied + 1) / 2)
    return GoldRanks(tuple(found))


def part_of(question: str) -> Part:
    """Train, validation or test at 8:1:1, by a hash of the question's words.

    The same question falls into the same part in every data set and corpus.
    """
    plain = " ".join(unicodedata.normalize("NFKC", question).casefold().split())
    tenth = int.from_bytes(hashlib.sha256(plain.encode("utf-8")).digest()[:8], "big") % 10
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"


def label_mix(
    examples: Iterable[RouterExample | None], groups: Iterable[str]
) -> dict[str, dict[str, int]]:
    """Counts of graph-only, vanilla-only, both and neither by group, and over all as "all".

    Args:
        examples: labels, None where neither side succeeded.
        groups: for each a word to count under, such as the question's type.
    """
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for example, group in zip(examples, groups, strict=True):
        counts["all"][_name(example)] += 1
        counts.setdefault(group, Counter())[_name(example)] += 1
    names = ("graph_only", "vanilla_only", "both", "neither")
    return {group: {name: found[name] for name in names} for group, found in counts.items()}


def _name(example: RouterExample | None) -> str:
    if example is None:
        return "neither"
    kinds: Mapping[tuple[bool, bool], str] = {
        (True, True): "both",
        (True, False): "vanilla_only",
        (False, True): "graph_only",
    }
    return kinds[example.vanilla, example.graph]
