"""Resolution: open query triplets and evidence go in, filled triplets come out (T2RAG, 3.3)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.reasoning.answer_text import first_line, is_abstention, without_thinking
from triax.reasoning.context import Budget, render_evidence
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.evidence import Evidence
from triax.records.query_triplets import Placeholder, QueryTriplet, Term
from triax.records.questions import Question
from triax.records.state import State
from triax.records.text import clean
from triax.records.triplet_text import parse_query_triplets
from triax.records.usage import Usage
from triax.records.verbs import Completer

NOT_FOUND = "not found"
LINES_SYSTEM = (
    "You fill in triplets from evidence. Under 'To find' stand triplets (subject | predicate | "
    "object) with placeholders such as ?x. Write under 'Resolved:' each of them that the evidence "
    "answers, with the placeholder replaced by the answer and all else unchanged. Write under "
    "'Searchable:' each triplet that had two placeholders and now has one left. Use only the "
    "evidence. Write 'none' under a heading with nothing to say."
)
LINES_SHOTS = (
    (
        "Facts:\n- The Leopard written by Giuseppe Tomasi di Lampedusa\n\n"
        "Question: In which city was the author of The Leopard born?\n\n"
        "To find:\nThe Leopard | written by | ?author\n?author | born in | ?city",
        "Resolved:\nThe Leopard | written by | Giuseppe Tomasi di Lampedusa\nSearchable:\n"
        "Giuseppe Tomasi di Lampedusa | born in | ?city",
    ),
)
FILL_SYSTEM = (
    "Read the facts and complete the triplet with a name, a date or a few words from them. "
    f"Answer '{NOT_FOUND}' if they do not say it."
)
FILL_SHOTS = (
    (
        "Facts:\n- The Leopard written by Giuseppe Tomasi di Lampedusa\n- The Leopard published in "
        "1958\n\nThe Leopard | written by | ?",
        "Giuseppe Tomasi di Lampedusa",
    ),
    (
        "Facts:\n- Forth Bridge opened in 1890\n- Forth Bridge crosses Firth of Forth\n\n"
        "Forth Bridge | designed by | ?",
        NOT_FOUND,
    ),
)

# `Resolved:`, `**Newly Traceable Clue 2:**`, `## Searchable triplets`; what follows the colon on
# the same line is a triplet. A heading without a colon stands alone.
_HEADING = re.compile(
    r"^[\W\d]*(?:(?:fully|newly|still)\s+)?(?:resolved|searchable|traceable)(?:\s+[a-z]+)?"
    r"(?:\s+#?\d+)?[\s*_`)]*(?::[\s*_`]*|$)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"^[\s*_`>#\u2022+-]*(subject|predicate|object)[\s*_`]*:(.*)$", re.IGNORECASE)
_MARKDOWN = " \t*_`"
_NONE = re.compile(
    r"\W*(?:none|nothing|n/?a|no (?:new |more |further )?(?:tripl(?:e|et)s?|clues?|facts?))\b[^|]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Task:
    """One question in one round: its open query triplets and the evidence found for them."""

    question: Question
    state: State
    evidence: Evidence


@runtime_checkable
class Resolver(Protocol):
    """Gives for each task the triplets that it could fill; None where the answer was unreadable."""

    async def resolve(self, tasks: Sequence[Task]) -> list[Reply[tuple[QueryTriplet, ...]]]: ...


@dataclass(frozen=True, slots=True)
class PromptedResolver:
    """One call a task: all open triplets with all evidence, as in T2RAG's resolving prompt."""

    completer: Completer
    budget: Budget = Budget()
    keeps_chunks: bool = True
    max_tokens: int = 512
    system: str = LINES_SYSTEM
    shots: tuple[tuple[str, str], ...] = LINES_SHOTS

    async def resolve(self, tasks: Sequence[Task]) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """Asks all tasks at once; an answer that cannot be read is asked again once (R26)."""
        requests = [
            CompletionRequest(
                messages=conversation(self.system, self.shots, self._prompt(task)),
                max_tokens=self.max_tokens,
                stage="resolve",
                question_id=task.question.id,
            )
            for task in tasks
        ]
        return await ask(self.completer, requests, self._read)

    def _prompt(self, task: Task) -> str:
        blocks = [render_evidence(task.evidence, self.budget, keeps_chunks=self.keeps_chunks)]
        if task.state.resolved:
            known = "\n".join(" | ".join(one.triplet.fields) for one in task.state.resolved)
            blocks.append(f"Known:\n{known}")
        blocks.append(f"Question: {task.question.text}")
        to_find = "\n".join(str(query) for query in task.state.searchable + task.state.fuzzy)
        blocks.append(f"To find:\n{to_find}")
        return "\n\n".join(block for block in blocks if block)

    def _read(self, _: int, completion: Completion) -> tuple[QueryTriplet, ...]:
        return parse_resolution(completion.text or "", is_cut=completion.finish_reason == "length")


@dataclass(frozen=True, slots=True)
class FillingResolver:
    """One call a searchable triplet, which asks for the missing value alone.

    The form for small models: the unknown is all that they write, so there is nothing to copy
    wrongly. `grammar` gives the constraint of an answer, if any, from the evidence's texts.
    """

    completer: Completer
    budget: Budget = Budget()
    keeps_chunks: bool = True
    max_tokens: int = 24
    grammar: Callable[[Sequence[str]], Grammar | None] | None = None
    system: str = FILL_SYSTEM
    shots: tuple[tuple[str, str], ...] = FILL_SHOTS

    async def resolve(self, tasks: Sequence[Task]) -> list[Reply[tuple[QueryTriplet, ...]]]:
        """Asks every searchable triplet of every task at once.

        A task of which some triplets were answered has a value; its error names the others.
        """
        slots = [
            (number, query) for number, task in enumerate(tasks) for query in task.state.searchable
        ]
        requests = [self._request(tasks[number], query) for number, query in slots]
        replies = await ask(self.completer, requests, lambda i, one: _value(slots[i][1], one))
        filled: list[list[QueryTriplet]] = [[] for _ in tasks]
        usage = [Usage() for _ in tasks]
        errors: list[list[str]] = [[] for _ in tasks]
        failed = [False] * len(tasks)
        for (number, _query), reply in zip(slots, replies, strict=True):
            usage[number] += reply.usage
            if reply.value is None:
                errors[number].append(reply.error)
                failed[number] |= reply.is_failed
            else:
                filled[number] += reply.value
        return [
            Reply(tuple(filled[i]), usage[i], error="; ".join(errors[i]))
            if filled[i] or not errors[i]
            else Reply(None, usage[i], error="; ".join(errors[i]), is_failed=failed[i])
            for i in range(len(tasks))
        ]

    def _request(self, task: Task, query: QueryTriplet) -> CompletionRequest:
        evidence = render_evidence(task.evidence, self.budget, keeps_chunks=self.keeps_chunks)
        texts = [found.chunk.passage for found in task.evidence.chunks]
        return CompletionRequest(
            messages=conversation(self.system, self.shots, f"{evidence}\n\n{with_gap(query)}"),
            max_tokens=self.max_tokens,
            grammar=self.grammar(texts) if self.grammar else None,
            stage="resolve",
            question_id=task.question.id,
        )


def parse_resolution(text: str, *, is_cut: bool = False) -> tuple[QueryTriplet, ...]:
    """Reads a solver's answer: triplet lines, or `Subject:/Predicate:/Object:` blocks, or both.

    Headings and markdown around them do not matter: whether a triplet is resolved is seen from
    its placeholders. An answer that says only `none` is read as no triplet. Where the answer was
    cut (`is_cut`), its last line is left out unless it has its end.

    Raises:
        Unreadable: there is text, but neither a triplet nor `none` in it.
    """
    text = clean(without_thinking(text))
    lines = text.splitlines()
    if is_cut and not text.endswith("\n"):
        lines = lines[:-1]
    triplets, rest = _read_blocks(lines)
    said = [line for line in rest if line.strip()]
    is_none = bool(said) and all(_NONE.fullmatch(line) for line in said)
    if not is_none:
        kept = "\n".join(line for line in said if not _NONE.fullmatch(line))
        triplets += parse_query_triplets(kept).triplets
    if not triplets and not is_none:
        raise Unreadable("neither a triplet (subject | predicate | object) nor 'none' in it")
    return tuple(dict.fromkeys(triplets))


def _read_blocks(lines: Sequence[str]) -> tuple[list[QueryTriplet], list[str]]:
    """The triplets of `Subject:/Predicate:/Object:` blocks, and the other lines, no headings."""
    triplets: list[QueryTriplet] = []
    current: dict[str, str] = {}
    rest: list[str] = []
    for line in lines:
        line = _HEADING.sub("", line)
        found = _FIELD.match(line)
        if found and "|" in line:
            parts = [_FIELD.sub(r"\2", part).strip() for part in line.split("|")]
            rest.append(" | ".join(parts))
        elif found:
            name = found[1].lower()
            # A field that comes again begins another block: the one before it was not complete.
            current = {} if name in current else current
            current[name] = found[2].strip(_MARKDOWN)
            if len(current) == 3:
                if all(current.values()):
                    triplets.append(QueryTriplet.parse(*(current[key] for key in _NAMES)))
                current = {}
        else:
            rest.append(line)
    return triplets, rest


_NAMES: tuple[Literal["subject", "predicate", "object"], ...] = ("subject", "predicate", "object")


def with_gap(query: QueryTriplet) -> QueryTriplet:
    """The triplet with a bare `?` in each gap, so that a name of ours says nothing."""
    return QueryTriplet(*(_anonymous(term) for term in query.terms))


def _anonymous(term: Term) -> Term:
    return Term(tuple(part if isinstance(part, str) else Placeholder() for part in term.parts))


def _value(query: QueryTriplet, completion: Completion) -> tuple[QueryTriplet, ...]:
    value = first_line(without_thinking(completion.text or ""))
    gaps = [position for position, term in enumerate(query.terms) if term.placeholders]
    if "|" in value:
        # The whole triplet was written; the value stands where the gap is.
        parts = [first_line(part) for part in value.split("|")]
        value = parts[gaps[0]] if len(parts) == 3 else parts[-1]
    if not value:
        raise Unreadable(f"an empty line; expected a value or '{NOT_FOUND}'")
    if value.startswith("?") or _says_nothing(value):
        return ()
    # An anonymous placeholder binds under the name "".
    return (query.fill({found.name: value for found in query.placeholders}),)


def _says_nothing(value: str) -> bool:
    said = value.rstrip(".").casefold()
    return is_abstention(value) or said.startswith(NOT_FOUND) or said in ("none", "n/a")
