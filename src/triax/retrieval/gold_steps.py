"""The oracle of iteration: a question's gold sub-questions with earlier answers filled in.

What they find bounds what decomposition and resolution can gain over the question itself.
"""

import re
from collections.abc import Sequence

from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question
from triax.records.verbs import Retriever

_REFERENCE = re.compile(r"#(\d+)")


def filled_steps(question: Question) -> tuple[str, ...]:
    """Each step's text with `#1` replaced by the answer of step 1, and `a >> b` read as `a b`.

    Raises:
        ValueError: the question has no steps, or one refers to a step that is not before it.
    """
    if not question.steps:
        raise ValueError(f"question {question.id} has no gold steps; take a data set that has them")
    texts = []
    for number, step in enumerate(question.steps, 1):

        def answer(found: re.Match[str], number: int = number) -> str:
            referred = int(found[1])
            if not 1 <= referred < number:
                raise ValueError(
                    f"question {question.id}: step {number} refers to #{referred}, expected a "
                    f"step from 1 to {number - 1}"
                )
            return question.steps[referred - 1].answer

        texts.append(_REFERENCE.sub(answer, step.question).replace(" >> ", " "))
    return tuple(texts)


def search_steps(
    questions: Sequence[Question], retriever: Retriever, num_chunks: int
) -> list[Evidence]:
    """Searches every step by itself and takes the best chunk of each in turn, then the second.

    Scores of different queries need not be comparable, so ranks are merged, not scores; the score
    of a merged chunk is 1 / its rank.
    """
    groups = [[text] for question in questions for text in filled_steps(question)]
    found = iter(retriever.search(groups, num_chunks))
    return [_interleave([next(found) for _ in one.steps], num_chunks) for one in questions]


def _interleave(evidences: Sequence[Evidence], num_chunks: int) -> Evidence:
    merged: dict[str, ScoredChunk] = {}
    for rank in range(max((len(one.chunks) for one in evidences), default=0)):
        for evidence in evidences:
            if rank < len(evidence.chunks):
                chunk = evidence.chunks[rank].chunk
                merged.setdefault(chunk.id, ScoredChunk(chunk, 1 / (len(merged) + 1)))
    return Evidence(tuple(merged.values())[:num_chunks])
