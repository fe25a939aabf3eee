"""T2RAG as its released code runs it (semantics `reference`): see triax.reasoning.original."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import conversation
from triax.pipelines.merging import merge_chunks
from triax.reasoning import original
from triax.reasoning.original import OriginalState
from triax.records.completions import Completion, CompletionRequest
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet, Term
from triax.records.questions import Question
from triax.records.state import Resolved, State
from triax.records.traces import Round, Trace
from triax.records.triplets import Triplet
from triax.records.usage import Usage
from triax.records.verbs import Completer, Retriever

DECOMPOSE = (
    "Think step by step about what must be known to answer the question. Then write it as triplets "
    "`subject | predicate | object`, one a line, with ? for an unknown and named placeholders such "
    "as ?directorA where several unknowns must be told apart.\n\nAnswer in this form:\n"
    "Reasoning: ...\n\nTriples:\nsubject | predicate | object\n\nPropositions: ...\n\nQuestion: "
)
SIMPLE = (
    "Write at most three triplets `subject | predicate | object`, one a line, with ? for what the "
    "question asks.\nVertigo | directed by | ?\nNile | flows through | ?\n\nQuestion: "
)
RESOLVE = (
    "Replace ? in the traceable clues by what the passages say. Of a fuzzy clue replace one "
    "placeholder and give it as newly traceable. Answer in this form:\nFully Resolved Clue 1:\n"
    "Subject: ...\nPredicate: ...\nObject: ...\nNewly Traceable Clue 1:\nSubject: ...\n"
    "Predicate: ...\nObject: ?\n\n"
)
ANSWER = (
    "Answer the question from the clues with a bare entity, date, number, yes or no, after "
    "`Answer:`.\n\n"
)


class OriginalFailure(RuntimeError):
    """The released code raises here; the question has no answer."""


@dataclass(frozen=True, slots=True)
class OriginalT2RAG:
    """Question by question, as the released code does. `max_rounds` is its N, `num_chunks` its k.

    Its failures stay failures, but as an error of the trace and not as an answer (R29).
    """

    retriever: Retriever
    completer: Completer
    num_chunks: int = 5
    max_rounds: int = 3
    name: str = "t2rag_reference"

    async def answer(self, questions: Sequence[Question]) -> list[Trace]:
        """One trace a question, in order; the questions run side by side."""
        return list(await asyncio.gather(*(self._answer(question) for question in questions)))

    async def _answer(self, question: Question) -> Trace:
        run = _Run(self, question)
        answer = error = None
        try:
            answer = await run.through()
        except OriginalFailure as failure:
            error = str(failure)
        return Trace(
            question_id=question.id,
            question=question.text,
            pipeline=self.name,
            answer=answer,
            stop_reason=run.stop_reason,
            error=error,
            decomposition=tuple(map(_typed, run.triplets)),
            rounds=tuple(run.rounds),
            final=_shown(run.state),
            chunk_ids=merge_chunks([one.evidence for one in run.rounds]),
            usage=run.usage,
            seconds=time.monotonic() - run.started,
        )


class _Run:
    """One question under way."""

    def __init__(self, method: OriginalT2RAG, question: Question):
        self.method, self.question = method, question
        self.state = OriginalState()
        self.triplets: tuple[original.Fields, ...] = ()
        self.rounds: list[Round] = []
        self.usage = Usage()
        self.stop_reason = "error"
        self.started = time.monotonic()

    async def through(self) -> str:
        await self._decompose()
        while len(self.rounds) < self.method.max_rounds and not self.state.is_resolved:
            await self._round()
        self.stop_reason = "resolved" if self.state.is_resolved else "max rounds"
        clues = "\n".join(" | ".join(one) for one in original.final_triplets(self.state))
        reply = await self._call("synthesize", f"{ANSWER}{clues}\n\nQuestion: {self.question.text}")
        # The released code stores the text "Error generating answer" here and scores it.
        return original.parse_answer(self._text(reply, "synthesis"))

    async def _decompose(self) -> None:
        reply = await self._call("decompose", DECOMPOSE + self.question.text)
        found = original.parse_decomposition(reply.text or "")
        # The released code's exception handler sends the simple prompt too: it is the second time
        # where the first answer was read in vain, the first time where that call failed.
        for _ in range(1 if reply.text is None else 2):
            if found.triplets:
                break
            reply = await self._call("decompose", SIMPLE + self.question.text)
            found = original.parse_simple(reply.text or "")
        if not found.triplets:
            reason = f" ({reply.error})" if reply.error else ""
            raise OriginalFailure(f"decomposition: no triplet for {self.question.text!r}{reason}")
        self.triplets, self.state = found.triplets, found.state

    async def _round(self) -> None:
        before = self.state
        group = original.queries(before, self.question.text)
        [evidence] = await asyncio.to_thread(
            self.method.retriever.search, [group], self.method.num_chunks
        )
        # With nothing retrieved the released code asks nothing and tries the same again.
        if evidence.chunks:
            reply = await self._call("resolve", self._prompt(before, evidence))
            answer = original.parse_resolution(self._text(reply, "resolution"))
            self.state = original.update(before, *answer)
        number = len(self.rounds) + 1
        self.rounds.append(
            Round(number, tuple(group), evidence, _shown(before), _shown(self.state))
        )

    def _prompt(self, state: OriginalState, evidence: Evidence) -> str:
        def lines(triplets: Sequence[original.Fields]) -> str:
            return "\n".join(" | ".join(fields) for fields in triplets)

        passages = "\n\n".join(found.chunk.passage for found in evidence.chunks)
        facts = "\n".join(hit.proposition.text for hit in evidence.hits)
        return (
            f"{RESOLVE}Question: {self.question.text}\n\nTraceable clues:\n"
            f"{lines(state.traceable)}\n\nFuzzy clues:\n{lines(state.fuzzy)}\n\nPassages:\n"
            f"{passages}\n\nPropositions:\n{facts}\n\nResolved before:\n{lines(state.resolved)}"
        )

    async def _call(self, stage: str, prompt: str) -> Completion:
        request = CompletionRequest(
            conversation("You follow the asked form exactly.", (), prompt),
            stage=stage,
            question_id=self.question.id,
        )
        [completion] = await self.method.completer.complete([request])
        self.usage += Usage(
            1,
            int(completion.is_cached),
            completion.prompt_tokens,
            completion.completion_tokens,
            completion.seconds,
        )
        return completion

    def _text(self, completion: Completion, stage: str) -> str:
        if completion.text is None:
            raise OriginalFailure(f"{stage}: {completion.error}")
        return completion.text


def _typed(fields: original.Fields) -> QueryTriplet:
    return QueryTriplet(*(Term.parse(text) for text in fields))


def _shown(state: OriginalState) -> State:
    """The same three sets as records, sorted as the released code sorted them."""
    return State(
        tuple(Resolved(Triplet(*fields)) for fields in state.resolved),
        tuple(_typed(fields) for fields in state.traceable),
        tuple(_typed(fields) for fields in state.fuzzy),
    )
