"""Thinking aloud before the answer: any prompt that ends with `FINAL ANSWER:`, by one contract.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3): all
ways of prompting end alike, so that their answers and abstentions are taken out by one rule.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, is_abstention, without_thinking
from triax.reasoning.context import Budget, render_evidence
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion, CompletionRequest
from triax.records.evidence import Evidence
from triax.records.questions import Question
from triax.records.verbs import Completer

MARKER = "FINAL ANSWER:"
# How every such prompt says what comes last.
LAST = (
    f"write {MARKER} and, on the same line, nothing but a name, a date, a number, yes or no. If "
    f"the context does not tell, write {MARKER} I don't know"
)
_MARKED = re.compile(r"final\s+answer\W{0,4}:[ \t*_]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ThinkingReader:
    """Asks a language model to think in some form and to end with its final answer.

    system: the task and the form.
    shots: worked examples, as turns.
    stage: the name of the form, for the ledger.
    budget: what is shown of the evidence.
    max_tokens: of thoughts and answer together.
    temperature: 0 repeats itself (R18); the paper has 0.3.
    """

    completer: Completer
    system: str
    shots: tuple[tuple[str, str], ...]
    stage: str
    budget: Budget = Budget()
    max_tokens: int = 512
    temperature: float = 0.0

    async def read(self, items: Sequence[tuple[Question, Evidence]]) -> list[Reply[Short]]:
        """One call a question, all at once; what does not end in the form is asked once more."""
        requests = [
            CompletionRequest(
                conversation(self.system, self.shots, shown(question.text, evidence, self.budget)),
                self.max_tokens,
                self.temperature,
                stage=self.stage,
                question_id=question.id,
            )
            for question, evidence in items
        ]
        return await ask(self.completer, requests, lambda _, completion: read_final(completion))


def shown(question: str, evidence: Evidence, budget: Budget) -> str:
    """The context, if there is any, and the question."""
    context = render_evidence(evidence, budget)
    return f"Context:\n{context}\n\nQuestion: {question}" if context else f"Question: {question}"


def read_final(completion: Completion) -> Short:
    """The first line behind the last `FINAL ANSWER:` that is no echo of the form (`<...>`).

    A text that the limit of tokens cut before its answer has none, whatever it says until there:
    it is asked once more like any other, and then it is an error, not an abstention.

    Raises:
        Unreadable: there is none, or nothing behind it.
    """
    text = without_thinking(completion.text or "")
    for found in reversed(list(_MARKED.finditer(text))):
        line = first_line(text[found.end() :])
        if line and not line.startswith("<"):
            return Short(None if is_abstention(line) else line)
    cut = (
        ", the answer was cut at the limit of tokens"
        if completion.finish_reason == "length"
        else ""
    )
    raise Unreadable(f"no line {MARKER} with an answer{cut}")
