"""Where a retriever ranks the gold documents of questions among all documents of its corpus."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from triax.records.questions import Question
from triax.routing.labels import GoldRanks, ranks_of

# Groups of queries to a score of every chunk, rows in the order of the groups.
ChunkScores = Callable[[Sequence[Sequence[str]]], Float[np.ndarray, "groups chunks"]]


def rank_gold(
    score: ChunkScores,
    chunk_documents: Sequence[str],
    questions: Sequence[Question],
    *,
    tile: int = 256,
    progress: Callable[[int], None] | None = None,
) -> list[GoldRanks]:
    """The ranks of each question's gold documents.

    A document is as good as its best chunk. A gold document of which the corpus has no chunk is
    ranked behind all others; leave such questions out for labels.

    Args:
        score: scores of every chunk, in row order.
        chunk_documents: the document of each chunk.
        questions: with gold documents.
        tile: questions that are scored together; tile x chunks floats are held.
        progress: is called with the number of questions done.
    """
    documents = {one: place for place, one in enumerate(dict.fromkeys(chunk_documents))}
    places = np.array([documents[one] for one in chunk_documents], np.int64)
    found = []
    for start in range(0, len(questions), tile):
        part = questions[start : start + tile]
        for question, row in zip(part, score([[one.text] for one in part]), strict=True):
            best = np.full(len(documents) + 1, -np.inf)
            np.maximum.at(best, places, np.asarray(row, np.float64))
            # The last place stands for every document that has no chunk.
            gold = [documents.get(one, len(documents)) for one in question.gold_document_ids]
            found.append(ranks_of(best, gold))
        if progress is not None:
            progress(start + len(part))
    return found
