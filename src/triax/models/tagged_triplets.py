"""From what the tagger saw of a window to triplets in the words of the passage."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from triax.models.passage_tokens import SENTENCE_END, PassageTokens
from triax.records.triplets import Triplet

_KINDS = ("film", "movie", "song", "album", "book", "novel", "band", "series", "game", "company")
_PRONOUNS = frozenset({"he", "she", "it", "they", *(f"the {kind}" for kind in _KINDS)})
_PARENTHESES = re.compile(r"\s*\([^()]*\)\Z")
_EDGES = ' \t\n,;:."“”`'


@dataclass(frozen=True, slots=True)
class Phrases:
    """The closed lists of a tagger; "" is the first prefix and the first suffix."""

    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probabilities from which a triplet is said.

    `pair` is for open triplets of titled passages, `untitled` for those of texts without a title,
    whose lessons are of another make and so have other probabilities. A sentence in which no object
    of a triplet lies gets its best pair, if that reaches `rescue`.
    """

    pair: float = 0.3
    relation: float = 0.5
    rescue: float = 0.05
    untitled: float = 0.1


class WindowTags(NamedTuple):
    """One row of `triplet_tagger.Tagged`, on the host."""

    subject: Int[np.ndarray, "pairs 2"]
    object: Int[np.ndarray, "pairs 2"]
    pair_scores: Float[np.ndarray, " pairs"]
    prefix: Int[np.ndarray, " pairs"]
    suffix: Int[np.ndarray, " pairs"]
    copied: Int[np.ndarray, "pairs 2"]
    mentions: Int[np.ndarray, "mentions 2"]
    relation_scores: Float[np.ndarray, "mentions mentions relations"]


@dataclass(frozen=True, slots=True)
class _Said:
    """A triplet with the characters of its object, and whether its predicate is from the text."""

    triplet: Triplet
    object_span: tuple[int, int]
    is_open: bool


def read_triplets(
    title: str,
    text: str,
    windows: Sequence[tuple[PassageTokens, WindowTags]],
    phrases: Phrases,
    thresholds: Thresholds,
) -> tuple[Triplet, ...]:
    """The triplets of a passage, most confident first, each once.

    Named relations are read in titled passages only: in the lessons without a title (single
    sentences) one pair is marked and no other is known to be wrong, so scores there say nothing.
    Confidence is the probability of the pair or of the relation. Of two triplets with the same
    subject and predicate, whose objects lie in one another, the more confident one is kept.
    """
    passage = f"{title}\n{text}"
    least = thresholds.pair if title else thresholds.untitled
    found: list[_Said] = []
    weak: list[_Said] = []
    for tokens, tags in windows:
        for said in _open(title, passage, tokens, tags, phrases, min(least, thresholds.rescue)):
            is_strong = (said.triplet.confidence or 0.0) >= least
            (found if is_strong else weak).append(said)
        if title:
            found += _related(title, passage, tokens, tags, phrases, thresholds.relation)
    found += _rescued(passage, len(title) + 1, found, weak)
    kept: dict[tuple[str, ...], list[_Said]] = {}
    for said in sorted(found, key=lambda one: -(one.triplet.confidence or 0.0)):
        key = (said.triplet.subject.casefold(), said.triplet.predicate.casefold())
        same = kept.setdefault(key, [])
        if not any(_is_inside(said, other) for other in same):
            same.append(said)
    triplets = [said.triplet for same in kept.values() for said in same]
    return tuple(sorted(triplets, key=lambda one: -(one.confidence or 0.0)))


def _open(
    title: str,
    passage: str,
    tokens: PassageTokens,
    tags: WindowTags,
    phrases: Phrases,
    lowest: float,
) -> Iterator[_Said]:
    probabilities = _sigmoid(tags.pair_scores)
    for number in np.flatnonzero(probabilities >= lowest).tolist():
        copied = tags.copied[number].tolist()
        parts = (
            phrases.prefixes[tags.prefix[number]],
            _words(passage, tokens, copied)[0] if copied[0] else "",
            phrases.suffixes[tags.suffix[number]],
        )
        predicate = " ".join(filter(None, parts))
        yield from _say(
            title,
            passage,
            tokens,
            (tags.subject[number].tolist(), predicate, tags.object[number].tolist()),
            float(probabilities[number]),
            is_open=True,
        )


def _related(
    title: str,
    passage: str,
    tokens: PassageTokens,
    tags: WindowTags,
    phrases: Phrases,
    lowest: float,
) -> Iterator[_Said]:
    probabilities = _sigmoid(tags.relation_scores)
    for place in np.argwhere(probabilities >= lowest):
        first, second, relation = place.tolist()
        yield from _say(
            title,
            passage,
            tokens,
            (
                tags.mentions[first].tolist(),
                phrases.relations[relation],
                tags.mentions[second].tolist(),
            ),
            float(probabilities[first, second, relation]),
            is_open=False,
        )


def _say(
    title: str,
    passage: str,
    tokens: PassageTokens,
    parts: tuple[Sequence[int], str, Sequence[int]],
    confidence: float,
    is_open: bool,
) -> Iterator[_Said]:
    """One triplet, none where a field is empty or both ends are the same name."""
    subject, _ = _words(passage, tokens, parts[0])
    other, span = _words(passage, tokens, parts[2])
    subject = whole_name(subject, title)
    if subject and parts[1] and other and subject.casefold() != other.casefold():
        yield _Said(Triplet(subject, parts[1], other, round(confidence, 4)), span, is_open)


def _words(passage: str, tokens: PassageTokens, span: Sequence[int]) -> tuple[str, tuple[int, int]]:
    """The characters from the first to the last token on one line, and their place."""
    start, end = int(tokens.spans[span[0], 0]), int(tokens.spans[span[1], 1])
    return " ".join(passage[start:end].split()).strip(_EDGES), (start, end)


def whole_name(name: str, title: str) -> str:
    """A pronoun, or the last name of a person, as the title of the text about it.

    "Curie" is "Marie Curie" in the text of that title. Titles with small words or commas, such as
    "Duchy of Burgundy" or "Albany, New York", hold a second name, which stays as it is.

    >>> whole_name("Curie", "Marie Curie"), whole_name("New York", "Albany, New York")
    ('Marie Curie', 'New York')
    >>> whole_name("She", "Marie Curie (chemist)")
    'Marie Curie'
    """
    base = _PARENTHESES.sub("", title).strip()
    if not base:
        return name
    if name.casefold() in _PRONOUNS:
        return base
    words, own = base.split(), name.split()
    is_last = len(own) < len(words) <= 4 and words[len(words) - len(own) :] == own
    has_second = "," in base or any(word[:1].islower() for word in words)
    return base if is_last and not has_second else name


def _rescued(
    passage: str, text_start: int, found: Iterable[_Said], weak: Sequence[_Said]
) -> list[_Said]:
    """The best weak triplet of each sentence that has no strong one."""
    borders = [text_start]
    borders += [match.end() for match in SENTENCE_END.finditer(passage, text_start)]
    places = np.asarray([*borders, len(passage)])

    def sentence(said: _Said) -> int:
        return int(np.searchsorted(places, said.object_span[0], side="right"))

    taken = {sentence(said) for said in found}
    best: dict[int, _Said] = {}
    for said in sorted(weak, key=lambda one: -(one.triplet.confidence or 0.0)):
        number = sentence(said)
        if number not in taken:
            best.setdefault(number, said)
    return list(best.values())


def _is_inside(said: _Said, other: _Said) -> bool:
    """Whether one object lies in the other, or both are the same text."""
    if said.triplet.object.casefold() == other.triplet.object.casefold():
        return True
    (start, end), (other_start, other_end) = said.object_span, other.object_span
    overlap = min(end, other_end) - max(start, other_start)
    return said.is_open and overlap >= min(end - start, other_end - other_start)


def _sigmoid(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -60.0, 60.0)))
