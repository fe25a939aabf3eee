"""The nearest wrong passages: what a retriever would bring that does not answer."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import bm25s
import numpy as np

from triax.training.lessons.slots import Passage, SlotLesson, holds

_log = logging.getLogger(__name__)


def add_nearest_wrong(
    lessons: Sequence[SlotLesson], pool: Sequence[Passage], count: int = 3, depth: int = 10
) -> list[SlotLesson]:
    """Puts the best `count` passages by BM25 that hold no answer behind each lesson's wrong ones.

    Args:
        lessons: those without an answer stay as they are.
        pool: where to look.
        count: how many to add at most.
        depth: how far down the ranking to look.
    """
    asked = [number for number, lesson in enumerate(lessons) if lesson.answers]
    if not asked or not pool:
        return list(lessons)
    retriever = bm25s.BM25(k1=1.2, b=0.75)
    texts = [passage.shown for passage in pool]
    retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    queries = bm25s.tokenize([lessons[number].query for number in asked], show_progress=False)
    found, _ = retriever.retrieve(queries, k=min(depth, len(pool)), show_progress=False)
    given = list(lessons)
    for number, ranked in zip(asked, np.asarray(found)):
        lesson = lessons[number]
        near = [pool[place] for place in ranked.tolist()]
        wrong = [
            one for one in near if one not in lesson.answered and not holds(one, lesson.answers)
        ]
        given[number] = replace(lesson, wrong=(*lesson.wrong, *wrong[:count]))
    return given
