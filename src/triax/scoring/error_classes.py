"""Which step of triplet-driven thinking a wrong answer comes from.

Gong et al. (2026) name the ways to fail (section 4.4 and Limitations) and count none; these
definitions are ours. They follow what the gold data says must be found, fact by fact, into the
resolved triplets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triax.records.documents import Chunk, Document
from triax.records.query_triplets import QueryTriplet, Term
from triax.records.questions import Question
from triax.records.text import normalise
from triax.scoring.coverage import (
    Normalised,
    bridging_entities,
    is_polar,
    names_of,
    sought_answers,
)
from triax.scoring.decomposition import has_same_structure, step_links

CLASSES = (
    "failed",
    "decomposition",
    "missing_retrieval",
    "hallucination",
    "wrong_resolution",
    "unresolved",
    "synthesis",
    "other",
)
_MIN_LETTERS = 4
Trace = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """What must be bound: each value with its other names, and the gold documents that tell it."""

    values: tuple[tuple[str, ...], ...]
    document_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that a round put in place of an unknown, and whether a text that was read has it."""

    value: str
    is_grounded: bool


def is_resolved(trace: Trace) -> bool | None:
    """Whether nothing was open at the end; None for a failed question or a method without a state.

    Args:
        trace: as `trace_to_json` gives it.
    """
    final = trace["final"]
    if not final or trace["error"] is not None:
        return None
    return not (final["searchable"] or final["fuzzy"])


def gold_facts(question: Question, documents: Mapping[str, Document]) -> tuple[Fact, ...]:
    """What must be found, in gold order: a fact a step, or else a triplet, or else the answer.

    A value that the question names, and yes or no, need not be found. A fact is told by the
    document that its step names, or else by the gold documents that have all its values, or else by
    all of them. A comparison without steps and triplets has none.
    """
    if question.steps:
        named = [((step.answer,), step.document_id) for step in question.steps]
    elif question.gold_triplets:
        named = [((one.subject, one.object), None) for one in question.gold_triplets]
    else:
        named = [(sought_answers(question)[:1], None)]
    asked = Normalised.of([question.text])
    facts = []
    for ends, document_id in named:
        values = tuple(
            names_of(question, end) for end in ends if not is_polar(end) and not asked.holds(end)
        )
        if values:
            told_by = {document_id} if document_id else _told_by(values, question, documents)
            facts.append(Fact(values, frozenset(told_by)))
    return tuple(facts)


def bound_values(question: Question, trace: Trace, chunks: Mapping[str, Chunk]) -> list[Bound]:
    """What the rounds put in place of unknowns, each value once; yes and no are none.

    A value is grounded where its triplet has a source chunk, or where it stands in the question, or
    in a passage or proposition that was found in the round of its triplet or before.

    Args:
        question: the question.
        trace: as `trace_to_json` gives it, of a method with a state.
        chunks: those of the corpus, by id.

    Raises:
        KeyError: a chunk of the trace is not there.
    """
    queries = sorted(_decomposition(trace), key=lambda one: len(one.placeholders))
    asked = Normalised.of([question.text, *(term.known for one in queries for term in one.terms)])
    found: dict[str, Bound] = {}
    for one in sorted(trace["final"]["resolved"], key=lambda one: one["round"]):
        values = _filled(one["triplet"], queries, asked) if one["round"] else []
        for value in values:
            if value in found or is_polar(value):
                continue
            is_grounded = bool(one["chunk_ids"]) or asked.holds(value)
            if not is_grounded:
                is_grounded = _read_until(one["round"], trace, chunks).holds(value)
            found[value] = Bound(value, is_grounded)
    return list(found.values())


def error_class(
    question: Question,
    trace: Trace,
    chunks: Mapping[str, Chunk],
    documents: Mapping[str, Document],
) -> str | None:
    """The step that a wrong answer comes from; None for a method without a state.

    The first that holds, where a fact is of `gold_facts`, and is bound if each of its values
    agrees with an end of a resolved triplet (one holds the other as whole words, and the shorter
    has at least 4 letters, or they are the same). A bound value is another one if it agrees with no
    entity of the gold data.

    failed: the question ended with an error.
    synthesis: every fact is bound, and the answer is wrong all the same.
    decomposition: the written query triplets are linked in another way than the gold ones (or the
        gold steps), or none of them names what a gold one names; or all that they ask for is
        resolved, with no other value, and a fact is not bound.
    missing_retrieval: a document of a fact that is not bound was found in no round.
    hallucination: they all were, and another value was bound that stands in no text that was read.
    wrong_resolution: another value was bound, and stands there.
    unresolved: no other value was bound, and a triplet is still open.
    other: the data does not say enough, as for yes and no without gold steps and triplets.

    Args:
        question: with its gold.
        trace: as `trace_to_json` gives it.
        chunks: those of the corpus, by id.
        documents: those of the corpus, by id.

    Raises:
        KeyError: a chunk of the trace is not there.
    """
    if not trace["final"]:
        return None
    if trace["error"] is not None:
        return "failed"
    facts = gold_facts(question, documents)
    missing = [one for one in facts if not _is_bound(one, trace)]
    if facts and not missing:
        return "synthesis"
    others = _other_values(question, trace, chunks, documents) if facts else []
    asks_too_little = bool(facts) and not others and is_resolved(trace)
    if asks_too_little or not _asks_alike(question, trace):
        return "decomposition"
    found = {chunks[one].document_id for one in trace["chunk_ids"]}
    needed = {document for one in missing for document in one.document_ids}
    if (needed or {*question.gold_document_ids, *question.unmatched_gold}) - found:
        return "missing_retrieval"
    if others:
        is_read = all(one.is_grounded for one in others)
        return "wrong_resolution" if is_read else "hallucination"
    return "other" if is_resolved(trace) else "unresolved"


def _filled(fields: Sequence[str], queries: Sequence[QueryTriplet], asked: Normalised) -> list[str]:
    """The fields that were unknown in the query triplet that these fill, the fullest that fits.

    Where none does, as in the released code, which lets a model rewrite it: the ends that neither
    question nor decomposition names.
    """
    for query in queries:
        pairs = list(zip(query.terms, fields, strict=True))
        if query.placeholders and all(
            term.placeholders or normalise(term.known) == normalise(field) for term, field in pairs
        ):
            return [field for term, field in pairs if term.placeholders]
    return [end for end in fields[::2] if not asked.holds(end)]


def _told_by(
    values: Sequence[Sequence[str]], question: Question, documents: Mapping[str, Document]
) -> set[str]:
    told_by = set()
    for one in question.gold_document_ids:
        document = documents.get(one)
        text = Normalised.of([document.title, document.text] if document else [])
        if all(any(map(text.holds, names)) for names in values):
            told_by.add(one)
    return told_by or {*question.gold_document_ids, *question.unmatched_gold}


def _is_bound(fact: Fact, trace: Trace) -> bool:
    ends = [end for one in trace["final"]["resolved"] for end in one["triplet"][::2]]
    return all(any(_agrees(end, name) for end in ends for name in names) for names in fact.values)


def _other_values(
    question: Question,
    trace: Trace,
    chunks: Mapping[str, Chunk],
    documents: Mapping[str, Document],
) -> list[Bound]:
    gold = {*bridging_entities(question, documents)[0], *question.answers}
    bound = bound_values(question, trace, chunks)
    return [one for one in bound if not any(_agrees(one.value, name) for name in gold)]


def _asks_alike(question: Question, trace: Trace) -> bool:
    """Whether the decomposition has the links of a gold one, and names what that names."""
    written = _decomposition(trace)
    gold = question.gold_query_triplets
    if gold:
        links = [frozenset(_numbers(gold)[p.name] for p in one.placeholders) for one in gold]
    elif question.steps:
        links = step_links([step.question for step in question.steps])
    else:
        return True
    said = Normalised.of(str(one) for one in written)
    named = [_known(term) for one in gold for term in (one.subject, one.object)]
    return has_same_structure(written, links) and all(map(said.holds, filter(None, named)))


def _numbers(triplets: Sequence[QueryTriplet]) -> dict[str, int]:
    names = dict.fromkeys(found.name for one in triplets for found in one.placeholders)
    return {name: number for number, name in enumerate(names)}


def _known(term: Term) -> str:
    return "" if is_polar(term.known) else term.known


def _decomposition(trace: Trace) -> list[QueryTriplet]:
    return [QueryTriplet.parse(*fields) for fields in trace["decomposition"]]


def _read_until(number: int, trace: Trace, chunks: Mapping[str, Chunk]) -> Normalised:
    rounds = [one for one in trace["rounds"] if one["number"] <= number]
    passages = [chunks[found["id"]].passage for one in rounds for found in one["chunks"]]
    return Normalised.of(
        [*passages, *(found["text"] for one in rounds for found in one["propositions"])]
    )


def _agrees(first: str, second: str) -> bool:
    one, two = Normalised.of([first]), Normalised.of([second])
    if one.glued == two.glued:
        return bool(one.glued.strip())
    shorter = min(one.glued, two.glued, key=len)
    letters = sum(letter.isalnum() for letter in shorter)
    return letters >= _MIN_LETTERS and (one.holds(second) or two.holds(first))
