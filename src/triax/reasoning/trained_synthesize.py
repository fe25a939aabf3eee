"""The answer without a language model: from bound placeholders, by comparison, or by reading."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triax.llm.ask import Reply
from triax.reasoning.comparison import OPERATORS, compare
from triax.reasoning.synthesize import Ending, Short
from triax.reasoning.trained_decompose import Writer
from triax.reasoning.unify import unify
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.query_triplets import QueryTriplet, Term
from triax.records.questions import Question
from triax.records.readings import Reading, ReadRequest, shown_passage
from triax.records.state import Resolved, State
from triax.records.text import normalise
from triax.records.usage import Usage
from triax.records.verbs import Completer, PassageReader
from triax.scoring.answers import token_f1

# Comparisons that need judgement, not computation: which name has a property, whether both have it.
_READ = frozenset(("which", "both"))
_POLAR = re.compile(
    r"(?i)^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b(?!.*\bor\b)"
)
_START = 60  # words of a passage that a verdict is read from: two of them fill a row


def is_polar(question: str) -> bool:
    """Whether a question wants yes or no: it begins with an auxiliary verb, without a choice."""
    return bool(_POLAR.match(question.strip()))


@dataclass(frozen=True, slots=True)
class Bound:
    """The values that the resolved triplets give to the placeholders of a decomposition.

    `confidence` is that of the least sure triplet on the way to each value.
    """

    values: Mapping[str, str]
    confidence: Mapping[str, float]


def bind(triplets: Sequence[QueryTriplet], resolved: Sequence[Resolved]) -> Bound:
    """Fits the resolved triplets to the query triplets, as often as a new value allows more."""
    values: dict[str, str] = {}
    confidence: dict[str, float] = {}
    known = [
        (QueryTriplet(*(Term.literal(field) for field in one.triplet.fields)), one.triplet)
        for one in resolved
    ]
    changed = True
    while changed:
        changed = False
        for query in triplets:
            used = [confidence.get(found.name, 1.0) for found in query.placeholders]
            filled = query.fill(values)
            if not filled.placeholders:
                continue
            for answer, triplet in known:
                match = unify(filled, answer)
                new = {k: v for k, v in match.bindings.items() if k not in values} if match else {}
                if new:
                    sure = min([*used, 1.0 if triplet.confidence is None else triplet.confidence])
                    values |= new
                    confidence |= dict.fromkeys(new, sure)
                    changed = True
                    break
    return Bound(values, confidence)


def branches(triplets: Sequence[QueryTriplet]) -> dict[str, list[str]]:
    """The names that a comparison compares, and for each the placeholders at its chains' ends.

    A chain starts at a known subject (or object) and goes on wherever a placeholder stands again.
    """
    found: dict[str, list[str]] = {}
    root_of: dict[str, str] = {}
    for query in triplets:
        ends = (query.subject, query.object)
        inner = next((p.name for term in ends for p in term.placeholders if p.name in root_of), "")
        known = next((term.known for term in ends if term.known and not term.placeholders), "")
        root = root_of[inner] if inner else known
        leaves = found.setdefault(root, [])
        if inner in leaves:
            leaves.remove(inner)
        for placeholder in query.placeholders:
            if placeholder.name not in root_of:
                root_of[placeholder.name] = root
                leaves.append(placeholder.name)
    return found


@dataclass(frozen=True, slots=True)
class TrainedSynthesizer:
    """Answers from what is bound; reads the question where that does not reach.

    Without a comparison the answer is the value of the last placeholder, or else what reading the
    whole question over the last evidence gives. A comparison is computed; where a value is
    missing, what the reader says is put down to the nearest compared name, or is what both share.
    Yes and no are for questions that ask so, and are read from the starts of the compared names'
    passages together. It asks no completer, and takes one so that it can stand wherever a prompted
    one does.
    """

    writer: Writer
    reader: PassageReader
    min_here: float | int = 0
    completer: Completer | None = None

    async def synthesize(self, endings: Sequence[Ending]) -> list[Reply[Short]]:
        """One answer a question; an abstention where nothing was found."""
        written = self.writer.write([ending.question.text for ending in endings])
        read = self.reader.read([_request(ending) for ending in endings], allows_verdicts=True)
        return [
            Reply(Short(self._answer(query.operator, ending, reading)), Usage())
            for query, ending, reading in zip(written, endings, read, strict=True)
        ]

    def _answer(self, operator: str, ending: Ending, reading: Reading | None) -> str | None:
        bound = bind(ending.decomposition, ending.state.resolved)
        compared = branches(ending.decomposition)
        polar = is_polar(ending.question.text)
        direct = None if reading is None or reading.p_here < self.min_here else reading
        if (operator in OPERATORS or operator in _READ) and len(compared) > 1:
            if operator in ("same", "both") and not polar:
                return _shared(compared, bound, direct)
            return _compared(operator, compared, bound, reading)
        if polar:
            return direct.text if direct else None
        leaves = [name for names in compared.values() for name in names]
        last = leaves[-1] if leaves else ""
        if last in bound.values:
            return bound.values[last]
        return direct.text if direct else None


def _compared(
    operator: str,
    compared: Mapping[str, Sequence[str]],
    bound: Bound,
    reading: Reading | None,
) -> str | None:
    values = {
        name: [bound.values[leaf] for leaf in leaves if leaf in bound.values]
        for name, leaves in compared.items()
    }
    complete = all(len(values[name]) == len(leaves) for name, leaves in compared.items())
    if operator in OPERATORS and complete:
        if (answer := compare(operator, values)) is not None:
            return answer
    if operator in ("same", "both"):
        return reading.kind if reading and reading.kind != "span" else "no"
    said = reading.text if reading else ""
    return max(compared, key=lambda name: token_f1(said, name), default=None)


def _shared(
    compared: Mapping[str, Sequence[str]], bound: Bound, direct: Reading | None
) -> str | None:
    """What all compared names have: a value that stands twice, else the surest thing known."""
    found = [
        (bound.confidence[leaf], bound.values[leaf])
        for leaves in compared.values()
        for leaf in leaves
        if leaf in bound.values
    ]
    for place, (_, value) in enumerate(found):
        if any(normalise(value) == normalise(other) for _, other in found[:place]):
            return value
    if direct is not None:
        found.append((direct.p_right, direct.text))
    return max(found)[1] if found else None


@dataclass(frozen=True, slots=True)
class TrainedEvidenceReader:
    """The last step of the vanilla pipelines, by the same reader: question and chunks to answer.

    Without chunks the question itself is read, in which the answer of a comparison stands.
    """

    reader: PassageReader
    min_here: float = 0.0
    completer: Completer | None = None

    async def read(self, items: Sequence[tuple[Question, Evidence]]) -> list[Reply[Short]]:
        """One answer a question; an abstention where the reader sees none."""
        requests = [
            ReadRequest(
                question.text,
                _passages(State(), evidence) or (question.text,),
                "any" if is_polar(question.text) else "span",
            )
            for question, evidence in items
        ]
        found = self.reader.read(requests, allows_verdicts=True)
        return [
            Reply(Short(one.text if one and one.p_here >= self.min_here else None), Usage())
            for one in found
        ]


def _request(ending: Ending) -> ReadRequest:
    passages = _passages(ending.state, ending.evidence)
    if not is_polar(ending.question.text):
        return ReadRequest(ending.question.text, passages, "span")
    starts = []
    for name in branches(ending.decomposition):
        if (one := _about(name, ending.evidence)) is not None:
            starts.append(f"{one.title}: {' '.join(one.text.split()[:_START])}")
    together = (" ".join(starts),) if starts else passages
    return ReadRequest(ending.question.text, together, "verdict")


def _about(name: str, evidence: Evidence) -> Chunk | None:
    """The first chunk with a compared name in its title, or else in its text."""
    name = normalise(name)
    chunks = [found.chunk for found in evidence.chunks] if name else []
    titled = (one for one in chunks if name in normalise(one.title))
    return next(titled, next((one for one in chunks if name in normalise(one.text)), None))


def _passages(state: State, evidence: Evidence) -> tuple[str, ...]:
    texts = [shown_passage(found.chunk.title, found.chunk.text) for found in evidence.chunks]
    texts += [shown_passage(found.note.title, found.note.text) for found in evidence.notes]
    if state.resolved:
        texts.append(". ".join(" ".join(one.triplet.fields) for one in state.resolved))
    return tuple(texts)
