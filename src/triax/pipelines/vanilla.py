"""At most one search, then one reading: closed book, BM25, dense, and every graph retriever."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.reasoning.synthesize import Reader
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.traces import Trace
from triax.records.verbs import Retriever


@dataclass(frozen=True, slots=True)
class Vanilla:
    """Retrieve the best chunks for the question, then read; no retriever means closed book.

    Whatever a retriever brings is read: chunks, triplets, and the texts that it made of them.
    """

    reader: Reader
    retriever: Retriever | None = None
    num_chunks: int = 5
    name: str = "closed_book"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order."""
        started = time.monotonic()
        if self.retriever is None:
            evidences = [Evidence() for _ in questions]
        else:
            groups = [[question.searched] for question in questions]
            evidences = await asyncio.to_thread(self.retriever.search, groups, self.num_chunks)
        replies = await self.reader.read(list(zip(questions, evidences, strict=True)))
        seconds = (time.monotonic() - started) / max(1, len(questions))
        return [
            Trace(
                question_id=question.id,
                question=question.text,
                pipeline=self.name,
                answer=reply.value.text if reply.value else None,
                stop_reason="read" if reply.value else "error",
                error=None if reply.value else f"reading: {reply.error}",
                chunk_ids=tuple(found.chunk.id for found in evidence.chunks),
                context=evidence.texts,
                written=reply.text or "",
                usage=evidence.usage + reply.usage,
                seconds=seconds,
            )
            for question, evidence, reply in zip(questions, evidences, replies, strict=True)
        ]
