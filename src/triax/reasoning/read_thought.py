"""A chain of thought without thinking: each thought is what a reader answers by now.

Source: ITER-RETGEN (Shao et al., 2023, section 3): the question is searched with the answer of the
round before behind it. There a language model writes that answer; here any reader does, also the
trained one, which asks no language model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.synthesize import Reader, Short
from triax.reasoning.thought import Thought, Thread
from triax.records.text import normalise


@dataclass(frozen=True, slots=True)
class ReadingThinker:
    """Reads the question over all that was found; an answer that comes again is the last."""

    reader: Reader

    async def think(self, threads: Sequence[Thread]) -> list[Reply[Thought]]:
        """One reading a thread, all at once; an abstention is an empty thought."""
        replies = await self.reader.read([(one.question, one.evidence) for one in threads])
        return [
            Reply(
                None if reply.value is None else _thought(thread, reply.value),
                reply.usage,
                reply.text,
                reply.error,
                reply.is_failed,
            )
            for thread, reply in zip(threads, replies, strict=True)
        ]


def _thought(thread: Thread, short: Short) -> Thought:
    if not short.text:
        return Thought("")
    is_known = normalise(short.text) in {normalise(text) for text in thread.texts}
    return Thought(short.text, f"{thread.question.searched} {short.text}", short, is_known)
