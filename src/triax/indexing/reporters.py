"""Who writes the report of a community: a language model, or a rule that picks facts.

Source: "From Local to Global" (Edge et al., 2024, section 3.1.5) and GraphRAG 3.1.2, in our own
words. A report has a title, a summary, a rating and findings; it is made of the facts of the
community and, where these are too many, of the reports of its parts.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from triax.llm.ask import Reply, Unreadable, ask, conversation
from triax.llm.blocking import run_now
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.json_text import read_json
from triax.records.text import clean
from triax.records.usage import Usage
from triax.records.verbs import Completer

MAX_RATING = 10.0
SYSTEM = (
    "You write a report about a group of things that belong together. You are shown the names of "
    "its main members and what is known of them: facts, and for a large group reports about parts "
    "of it. Those who read the report answer questions with it and see nothing else, so keep "
    "names, dates and numbers as they are, and say nothing that you were not shown. Answer with "
    'JSON: {"title": "...", "summary": "...", "rating": 5, "findings": ["...", "..."]}. The title '
    "is short and names the main members. The summary says in a few sentences what the group is "
    "and how its members are related. The rating, from 0 to 10, says how much somebody who wants "
    "to know the whole collection needs this group. The findings are the five to ten most telling "
    "things about the group, each in one or two full sentences."
)
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "summary": {"type": "string"},
        "rating": {"type": "number"},
        "findings": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "summary", "rating", "findings"],
    "additionalProperties": False,
}
GRAMMAR = Grammar("json_schema", json.dumps(SCHEMA, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Fact:
    """What is stated inside a community.

    `part` is the place, among the parts, of the one that the fact lies in, None where it joins two
    or no parts are there.
    """

    text: str
    num_tokens: int
    chunk_ids: tuple[str, ...] = ()
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A sub-community by its report."""

    text: str
    num_tokens: int
    chunk_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """What the report of a community is made of: names and facts, the most connected first."""

    names: tuple[str, ...]
    facts: tuple[Fact, ...]
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A report. `chunk_ids` are those of the facts and parts that were read, in their order."""

    title: str
    summary: str
    rating: float
    findings: tuple[str, ...]
    chunk_ids: tuple[str, ...] = ()


@runtime_checkable
class Reporter(Protocol):
    """Writes the reports of many communities; a failed one is a reply without a value."""

    @property
    def config(self) -> Mapping[str, Any]: ...

    def write(self, materials: Sequence[Material]) -> list[Reply[Written]]: ...


@dataclass(frozen=True, slots=True)
class ExtractiveReporter:
    """Needs no language model: names for a title, facts for findings.

    The rating is log2(1 + facts), at most 10: much is said of what matters.

    Args:
        num_names: in the title.
        max_tokens: of the findings.
    """

    num_names: int = 3
    max_tokens: int = 300

    @property
    def config(self) -> dict[str, Any]:
        """What decides a report (R28)."""
        return {"kind": "extractive", "num_names": self.num_names, "max_tokens": self.max_tokens}

    def write(self, materials: Sequence[Material]) -> list[Reply[Written]]:
        """The first facts of each until the budget is reached, at least one."""
        return [Reply(self._written(material), Usage()) for material in materials]

    def _written(self, material: Material) -> Written:
        facts = material.facts[: max(1, num_within(material.facts, self.max_tokens))]
        return Written(
            title=", ".join(material.names[: self.num_names]),
            summary="",
            rating=min(MAX_RATING, math.log2(1 + len(material.facts))),
            findings=tuple(fact.text for fact in facts),
            chunk_ids=_chunk_ids(facts),
        )


@dataclass(frozen=True, slots=True)
class PromptedReporter:
    """Asks a language model about each community; what cannot be read is asked for once more.

    Args:
        completer: the language model.
        max_input_tokens: of the facts and the reports of parts that it is shown.
        max_tokens: of a report.
        max_names: of members that it is shown by name.
    """

    completer: Completer
    max_input_tokens: int = 8000
    max_tokens: int = 2000
    max_names: int = 20

    @property
    def config(self) -> dict[str, Any]:
        """What decides a report (R28)."""
        return {
            "kind": "prompted",
            "completer": dict(getattr(self.completer, "identity", {"model": self.completer.model})),
            "prompt": SYSTEM,
            "max_input_tokens": self.max_input_tokens,
            "max_tokens": self.max_tokens,
            "max_names": self.max_names,
        }

    def write(self, materials: Sequence[Material]) -> list[Reply[Written]]:
        """One call a community, all at once; blocks until all answers are there."""
        if not materials:
            return []
        shown = [fit(material, self.max_input_tokens) for material in materials]
        requests = [
            CompletionRequest(
                conversation(SYSTEM, (), _prompt(material.names[: self.max_names], *one)),
                self.max_tokens,
                grammar=GRAMMAR,
                stage="report",
            )
            for material, one in zip(materials, shown, strict=True)
        ]

        def read(number: int, completion: Completion) -> Written:
            parts, facts = shown[number]
            return read_written(completion, _chunk_ids([*facts, *parts]))

        return run_now(ask(self.completer, requests, read))


def fit(material: Material, max_tokens: int) -> tuple[list[Part], list[Fact]]:
    """The reports of parts and the facts that a budget has room for.

    Where the facts are too many, the report of a part takes the place of its facts, that of the
    part with the longest facts first, until all fits; the rest is cut at its end, facts first.
    A report that is no shorter than the facts that it stands for replaces nothing.
    """
    sizes: Counter[int] = Counter()
    for fact in material.facts:
        if fact.part is not None:
            sizes[fact.part] += fact.num_tokens
    total = sum(fact.num_tokens for fact in material.facts)
    replaced: list[int] = []
    for place in sorted(sizes, key=lambda place: (-sizes[place], place)):
        if total <= max_tokens:
            break
        if (size := material.parts[place].num_tokens) < sizes[place]:
            total += size - sizes[place]
            replaced.append(place)
    parts = [material.parts[place] for place in replaced]
    parts = parts[: num_within(parts, max_tokens)]
    left = max_tokens - sum(part.num_tokens for part in parts)
    facts = [fact for fact in material.facts if fact.part not in replaced]
    return parts, facts[: num_within(facts, left)]


def num_within(items: Sequence[Fact | Part], max_tokens: int) -> int:
    """How many of the first items fit together."""
    total = 0
    for count, item in enumerate(items):
        total += item.num_tokens
        if total > max_tokens:
            return count
    return len(items)


def read_written(completion: Completion, chunk_ids: tuple[str, ...] = ()) -> Written:
    """The last report in an answer. A rating that is no number is 0, others are cut to 0..10.

    Findings may be texts, or objects whose texts are joined. An answer that was cut is read as far
    as it is whole.

    Raises:
        Unreadable: no JSON object with a title, and with a summary or findings.
    """
    found = [value for _, value in read_json(completion.text or "") if isinstance(value, dict)]
    for value in reversed(found):
        title, summary = _text(value.get("title")), _text(value.get("summary"))
        said = value.get("findings")
        findings = tuple(filter(None, map(_text, said if isinstance(said, list) else [said])))
        if title and (summary or findings):
            return Written(title, summary, _rating(value.get("rating")), findings, chunk_ids)
    raise Unreadable(
        f"{len(found)} JSON objects, none with a title and a summary or findings; expected "
        '{"title": "...", "summary": "...", "rating": 5, "findings": ["..."]}'
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ": ".join(filter(None, map(_text, value.values())))
    return " ".join(clean(value).split()) if isinstance(value, str) else ""


def _rating(value: Any) -> float:
    try:
        return min(MAX_RATING, max(0.0, float(value)))
    except (TypeError, ValueError):
        return 0.0


def _prompt(names: Sequence[str], parts: Sequence[Part], facts: Sequence[Fact]) -> str:
    blocks = [f"Members: {'; '.join(names)}"]
    blocks += [f"Report about a part:\n{part.text}" for part in parts]
    if facts:
        blocks.append("Facts:\n" + "\n".join(fact.text for fact in facts))
    return "\n\n".join(blocks)


def _chunk_ids(items: Sequence[Fact | Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for item in items for one in item.chunk_ids))
