"""Lessons of decomposition as output numbers: which words are copied, which are written.

A word of a triplet is copied where the question has it within a run of the triplet's words, or
where the vocabulary cannot write it; else it is written. Only one way is right, since the word is
fed back in that way: a copied word says where to read on, a written one does not. A word that can
be had in neither way is left out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triax.models.query_vocabulary import (
    FIELD,
    MAX_PLACEHOLDERS,
    TRIPLET,
    QueryVocabulary,
    QuestionReader,
    Source,
)
from triax.training.lessons.decompositions import Lesson

_PLACEHOLDERS = frozenset(f"?{n}" for n in range(1, MAX_PLACEHOLDERS + 1))
Word = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A question and its outputs, from the operator to the end.

    `outputs` are what the decoder is fed with (all but the last, after a start). For each output
    `tokens` has the right token, -1 if there is none, and `places` the places that may be copied
    in its stead.
    """

    source: Source
    outputs: tuple[int, ...]
    tokens: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]


def build_vocabulary(
    lessons: Iterable[Lesson], reader: QuestionReader, min_count: int, max_pieces: int
) -> QueryVocabulary:
    """The operators and the frequent pieces of the predicates of some lessons."""
    counts: Counter[str] = Counter()
    operators = set()
    for lesson in lessons:
        operators.add(lesson.operator)
        for _, predicate, _ in lesson.triplets:
            for word in _field_words(predicate, reader):
                if word[0] not in _PLACEHOLDERS:
                    counts.update(word)
    frequent = [piece for piece, count in counts.most_common(max_pieces) if count >= min_count]
    reserved = {FIELD, TRIPLET}
    return QueryVocabulary(tuple(sorted(operators)), tuple(sorted(set(frequent) - reserved)))


def encode_lesson(
    lesson: Lesson, source: Source, vocabulary: QueryVocabulary, reader: QuestionReader
) -> Example | None:
    """The outputs of a lesson; None where a field would have no word left."""
    rows: list[tuple[int, int, tuple[int, ...]]] = []  # output, token, places

    def control(number: int) -> None:
        rows.append((number, number, ()))

    control(vocabulary.operator(lesson.operator))
    for n, fields in enumerate(lesson.triplets):
        if n:
            control(vocabulary.number[TRIPLET])
        for place, field in enumerate(fields):
            if place:
                control(vocabulary.number[FIELD])
            found = _encode_field(field, source, vocabulary, reader, is_name=place != 1)
            if not found:
                return None
            rows.extend(found)
    control(0)
    outputs, tokens, places = zip(*rows)
    return Example(source, outputs, tokens, places)


def _encode_field(
    field: str,
    source: Source,
    vocabulary: QueryVocabulary,
    reader: QuestionReader,
    is_name: bool,
) -> list[tuple[int, int, tuple[int, ...]]]:
    words = _field_words(field, reader)
    starts = _word_starts(source)
    size = len(vocabulary)
    rows: list[tuple[int, int, tuple[int, ...]]] = []
    n = 0
    while n < len(words):
        word = words[n]
        if word[0] in _PLACEHOLDERS:
            rows.append((vocabulary.number[word[0]],) * 2 + ((),))
            n += 1
            continue
        run, begins = _longest_run(words[n:], source, starts)
        written = all(piece in vocabulary.number for piece in word)
        if run and (is_name or run > 1 or not written):
            for k in range(sum(map(len, words[n : n + run]))):
                copies = tuple(begin + k for begin in begins)
                rows.append((size + copies[0], -1, copies))
            n += run
        elif written:
            rows.extend((vocabulary.number[piece],) * 2 + ((),) for piece in word)
            n += 1
        else:
            n += 1
    return rows


def _field_words(field: str, reader: QuestionReader) -> list[Word]:
    """The words of a field, each as its pieces; a placeholder is one word."""
    words: list[Word] = []
    text: list[str] = []
    for part in [*field.split(), None]:
        if part is not None and part not in _PLACEHOLDERS:
            text.append(part)
            continue
        if text:
            words.extend(reader.words(" ".join(text)))
        text = []
        if part is not None:
            words.append((part,))
    return words


def _word_starts(source: Source) -> list[int]:
    return [
        n
        for n, (piece, copyable) in enumerate(zip(source.pieces, source.copyable))
        if copyable and not piece.startswith("##")
    ]


def _matches(word: Word, source: Source, begin: int) -> bool:
    """Whether a whole word stands at a place of the question."""
    end = begin + len(word)
    # A question ends with [SEP], so there is a piece after each word.
    return source.pieces[begin:end] == word and not source.pieces[end].startswith("##")


def _longest_run(
    words: Sequence[Word], source: Source, starts: Sequence[int]
) -> tuple[int, list[int]]:
    """How many of the words stand side by side in the question, and where such runs begin."""
    longest, begins = 0, []
    for begin in starts:
        place = begin
        size = 0
        while (
            size < len(words)
            and words[size][0] not in _PLACEHOLDERS
            and place < len(source.pieces)
            and source.copyable[place]
            and _matches(words[size], source, place)
        ):
            place += len(words[size])
            size += 1
        if size > longest:
            longest, begins = size, [begin]
        elif size == longest and size:
            begins.append(begin)
    return longest, begins
