"""Extraction lessons as windows of tokens with the numbers that a tagger learns from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from triax.models.passage_tokens import PassageTokenizer, PassageTokens
from triax.models.tagged_triplets import Phrases
from triax.models.trained_tagger import pad_windows
from triax.models.triplet_tagger import MENTION, OBJECT, SUBJECT, TaggerConfig
from triax.training.lessons.extractions import ExtractionLesson, OpenTriplet

TokenSpan = tuple[int, int]
# Of a span in a role: wrong, right, or neither (not told, or another name of something told).
WRONG, RIGHT, UNKNOWN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class TaggedWindow:
    """A window with its labels; spans are flat numbers (first * max_span + width - 1).

    `pairs` are [subject, object, first copied, last copied, prefix, suffix]; the last four are -1
    where the predicate is not known, and copied is (0, 0) where nothing is. `relations` are
    [subject, object, relation]. `aliases` are spans that are neither right nor wrong.
    """

    tokens: PassageTokens
    pairs: tuple[tuple[int, int, int, int, int, int], ...]
    relations: tuple[tuple[int, int, int], ...]
    mentions: tuple[int, ...]
    aliases: tuple[int, ...]
    is_open: bool
    is_exhaustive: bool

    @property
    def length(self) -> int:
        """Tokens, special ones among them."""
        return len(self.tokens.ids)


def tag_windows(
    lesson: ExtractionLesson,
    tokenizer: PassageTokenizer,
    phrases: Phrases,
    config: TaggerConfig,
    max_length: int,
) -> Iterator[TaggedWindow]:
    """The windows of a lesson, each with the labels that lie wholly within it.

    A window of a lesson that tells one relation only is left out if it does not hold that.
    """
    prefixes, suffixes, names = (
        {text: number for number, text in enumerate(one)}
        for one in (phrases.prefixes, phrases.suffixes, phrases.relations)
    )
    for window in tokenizer.windows(lesson.title, lesson.text, max_length):

        def flat(span: tuple[int, int], window: PassageTokens = window) -> int | None:
            found = window.find(*span)
            if found is None or not _covers(window, found, span):
                return None
            width = found[1] - found[0]
            return found[0] * config.max_span + width if width < config.max_span else None

        pairs = []
        for triplet in lesson.triplets:
            subject, other = flat(triplet.subject), flat(triplet.object)
            if subject is not None and other is not None and subject != other:
                said = _predicate(triplet, window, prefixes, suffixes)
                pairs.append((subject, other, *said))
        relations = []
        for relation in lesson.relations:
            subject, other = flat(relation.subject), flat(relation.object)
            if subject is not None and other is not None and relation.name in names:
                relations.append((subject, other, names[relation.name]))
        if pairs or relations or lesson.is_exhaustive or lesson.is_open:
            mentions = [number for span in lesson.mentions if (number := flat(span)) is not None]
            aliases = [number for span in lesson.aliases if (number := flat(span)) is not None]
            yield TaggedWindow(
                window,
                tuple(pairs),
                tuple(relations),
                tuple(mentions),
                tuple(aliases),
                lesson.is_open,
                lesson.is_exhaustive,
            )


def _covers(window: PassageTokens, found: TokenSpan, span: tuple[int, int]) -> bool:
    """Whether the characters of a span are all in the window, not cut at its border."""
    return bool(
        window.spans[found[0], 0] <= span[0] and span[1] <= max(window.spans[found[1], 1], 1)
    )


def _predicate(
    triplet: OpenTriplet,
    window: PassageTokens,
    prefixes: dict[str, int],
    suffixes: dict[str, int],
) -> tuple[int, int, int, int]:
    """First and last copied token, prefix and suffix."""
    unknown = (-1, -1, -1, -1)
    predicate = triplet.predicate
    if predicate is None or predicate.prefix not in prefixes or predicate.suffix not in suffixes:
        return unknown
    said = (prefixes[predicate.prefix], suffixes[predicate.suffix])
    if predicate.span is None:
        return (0, 0, *said) if said[0] else unknown
    found = window.find(*predicate.span)
    return unknown if found is None else (*found, *said)


def make_batch(
    windows: Sequence[TaggedWindow],
    rows: int,
    length: int,
    config: TaggerConfig,
    max_pairs: int = 48,
    max_relations: int = 112,
) -> dict[str, np.ndarray]:
    """Arrays of one shape; rows without a window have weight 0 and no labels.

    `spans` [rows, length, max_span, 3] are WRONG, RIGHT or UNKNOWN; `pairs` [rows, max_pairs, 6]
    and `relations` [rows, max_relations, 3] are filled with -1; surplus ones are left out.
    """
    ids, mask, begins, ends, title_end = pad_windows(
        [window.tokens for window in windows], rows, length
    )
    spans = np.full((rows, 3, length * config.max_span), UNKNOWN, np.int8)
    pairs = np.full((rows, max_pairs, 6), -1, np.int32)
    relations = np.full((rows, max_relations, 3), -1, np.int32)
    is_open, is_exhaustive = np.zeros((2, rows), bool)
    weight = np.zeros(rows, np.float32)
    for row, window in enumerate(windows):
        weight[row] = 1.0
        is_open[row], is_exhaustive[row] = window.is_open, window.is_exhaustive
        if window.is_open:
            spans[row, SUBJECT : OBJECT + 1] = WRONG
        if window.is_exhaustive:
            spans[row, MENTION] = WRONG
        spans[row][:, list(window.aliases)] = UNKNOWN
        spans[row, MENTION, list(window.mentions)] = RIGHT
        kept, related = window.pairs[:max_pairs], window.relations[:max_relations]
        spans[row, SUBJECT, [pair[0] for pair in kept]] = RIGHT
        spans[row, OBJECT, [pair[1] for pair in kept]] = RIGHT
        if kept:
            pairs[row, : len(kept)] = kept
        if related:
            relations[row, : len(related)] = related
    shaped = spans.reshape(rows, 3, length, config.max_span).transpose(0, 2, 3, 1)
    return {
        "ids": ids,
        "mask": mask,
        "begins": begins,
        "ends": ends,
        "title_end": title_end,
        "spans": np.ascontiguousarray(shaped),
        "pairs": pairs,
        "relations": relations,
        "is_open": is_open,
        "is_exhaustive": is_exhaustive,
        "weight": weight,
    }
