"""What a query writer may write: its output tokens, which may follow which, and their text.

An output is `operator, subject | predicate | object ; subject | ... <end>`. Each output token is
a number: below `len(vocabulary)` a token of the vocabulary, above it the copy of a word piece of
the question, by its place (CopyNet, Gu et al. 2016, section 3.2). Copies lead back to characters,
so that names keep the case and the punctuation that the question gives them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer as Backend

from triax.records.query_triplets import Placeholder, QueryTriplet, Term

END, FIELD, TRIPLET = "<end>", "|", ";"
NO_OPERATOR = "none"
MAX_TRIPLETS = 6
MAX_PLACEHOLDERS = 6
# Kinds of output tokens; the first three are control tokens with fixed numbers.
KIND_END, KIND_FIELD, KIND_TRIPLET, KIND_PLACEHOLDER, KIND_OPERATOR, KIND_WORD, KIND_PIECE = range(
    7
)
_JOINED_LEFT = frozenset(",.;:!?)]}'%’")  # no blank before these
_JOINED_RIGHT = frozenset("([{'’$#")  # no blank after these
_JOINED_BOTH = frozenset("-–/")


class Span(NamedTuple):
    """Characters start to end of a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A question as word pieces. Special tokens have an empty span and cannot be copied."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    spans: tuple[Span, ...]

    @property
    def copyable(self) -> tuple[bool, ...]:
        """Which places can be copied."""
        return tuple(span.end > span.start for span in self.spans)


class QuestionReader:
    """Cuts questions into the word pieces of an encoder's vocabulary."""

    def __init__(self, backend: Backend, max_length: int = 96):
        """Takes the tokenizer; a question longer than `max_length` pieces is cut."""
        backend.no_padding()
        backend.no_truncation()
        self.max_length = max_length
        self._backend = backend

    @classmethod
    def load(cls, folder: Path, max_length: int = 96) -> "QuestionReader":
        """Reads the tokenizer.json of a model folder."""
        return cls(Backend.from_file(str(folder / "tokenizer.json")), max_length)

    def read(self, questions: Sequence[str]) -> list[Source]:
        """The pieces of each question, [CLS] and [SEP] among them."""
        found = []
        for text, cut in zip(questions, self._backend.encode_batch(list(questions))):
            keep = [*range(len(cut.ids))]
            if len(keep) > self.max_length:
                keep = [*keep[: self.max_length - 1], keep[-1]]
            found.append(
                Source(
                    text,
                    tuple(cut.ids[n] for n in keep),
                    tuple(cut.tokens[n] for n in keep),
                    tuple(Span(*cut.offsets[n]) for n in keep),
                )
            )
        return found

    def words(self, text: str) -> list[tuple[str, ...]]:
        """The words of a text, each as its pieces (`##` marks the later ones)."""
        words: list[tuple[str, ...]] = []
        for piece in self._backend.encode(text, add_special_tokens=False).tokens:
            if piece.startswith("##") and words:
                words[-1] = (*words[-1], piece)
            else:
                words.append((piece,))
        return words


class Written(NamedTuple):
    """What a writer makes of a question. `operator` says how branches are compared ("none")."""

    operator: str
    triplets: tuple[QueryTriplet, ...]


@dataclass(frozen=True)
class QueryVocabulary:
    """The output tokens: control tokens, placeholders ?1 to ?6, operators, word pieces."""

    operators: tuple[str, ...]
    pieces: tuple[str, ...]

    def __post_init__(self) -> None:
        if NO_OPERATOR not in self.operators:
            raise ValueError(f"operators are {self.operators}; {NO_OPERATOR!r} must be among them")
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError("a token stands twice in the vocabulary; operators are written <name>")

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """All tokens in order of their numbers."""
        placeholders = [f"?{n}" for n in range(1, MAX_PLACEHOLDERS + 1)]
        marked = [f"<{operator}>" for operator in self.operators]
        return (END, FIELD, TRIPLET, *placeholders, *marked, *self.pieces)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each token."""
        return {token: n for n, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each token, int32 [tokens]."""
        first = 3 + MAX_PLACEHOLDERS + len(self.operators)
        kinds = [KIND_END, KIND_FIELD, KIND_TRIPLET]
        kinds += [KIND_PLACEHOLDER] * MAX_PLACEHOLDERS + [KIND_OPERATOR] * len(self.operators)
        kinds += [
            KIND_PIECE if token.startswith("##") else KIND_WORD for token in self.tokens[first:]
        ]
        return np.array(kinds, np.int32)

    @cached_property
    def placeholder_numbers(self) -> np.ndarray:
        """1 to 6 at the placeholders, else 0; int32 [tokens]."""
        numbers = np.zeros(len(self), np.int32)
        numbers[3 : 3 + MAX_PLACEHOLDERS] = np.arange(1, MAX_PLACEHOLDERS + 1)
        return numbers

    def operator(self, name: str) -> int:
        """The number of an operator's token."""
        return self.number[f"<{name}>"]

    def placeholder(self, n: int) -> int:
        """The number of the token `?n`."""
        return self.number[f"?{n}"]

    def read(self, outputs: Sequence[int], source: Source) -> Written:
        """The text of output numbers (`len(vocabulary) + place` is a copy).

        Raises:
            ValueError: they are no operator followed by whole triplets and an end.
        """
        names = [self.tokens[n] if n < len(self) else "" for n in outputs]
        if not names or END not in names or not self._is_operator(outputs[0]):
            raise ValueError(f"outputs {names} do not go from an operator to {END}")
        body = list(outputs[1 : names.index(END)])
        triplets = []
        for part in _split(body, self.number[TRIPLET]):
            fields = _split(part, self.number[FIELD])
            if len(fields) != 3 or not all(fields):
                raise ValueError(
                    f"a triplet has the fields {fields}, expected 3 that are not empty"
                )
            triplets.append(QueryTriplet(*(self._term(field, source) for field in fields)))
        return Written(self.operators[outputs[0] - self._first_operator], tuple(triplets))

    @property
    def _first_operator(self) -> int:
        return 3 + MAX_PLACEHOLDERS

    def _is_operator(self, n: int) -> bool:
        return self._first_operator <= n < self._first_operator + len(self.operators)

    def _term(self, field: Sequence[int], source: Source) -> Term:
        parts: list[str | Placeholder] = []
        run: list[int] = []
        for n in [*field, None]:
            if n is None or 0 < _at(self.placeholder_numbers, n):
                if run:
                    parts.append(self._text(run, source))
                run = []
                if n is not None:
                    parts.append(Placeholder(str(self.placeholder_numbers[n])))
            else:
                run.append(n)
        return Term(tuple(parts))

    def _text(self, run: Sequence[int], source: Source) -> str:
        """Copies that follow each other become one slice of the question; pieces are joined."""
        size = len(self)
        chunks: list[tuple[str, bool]] = []  # text, and whether it may be split from the one before
        place = 0
        while place < len(run):
            end = place + 1
            if run[place] < size:
                token = self.tokens[run[place]]
                chunks.append((token.removeprefix("##"), token.startswith("##")))
            else:
                while end < len(run) and run[end] == run[end - 1] + 1:
                    end += 1
                first, last = run[place] - size, run[end - 1] - size
                text = source.text[source.spans[first].start : source.spans[last].end]
                chunks.append((text, source.pieces[first].startswith("##")))
            place = end
        return join_words(chunks)


def join_words(chunks: Iterable[tuple[str, bool]]) -> str:
    """Joins words by blanks, but for punctuation; True beside a word joins it to the last."""
    text = ""
    for chunk, joined in chunks:
        tight = (
            joined
            or not text
            or chunk in _JOINED_LEFT
            or chunk in _JOINED_BOTH
            or text[-1] in _JOINED_BOTH
            or text[-1] in _JOINED_RIGHT
        )
        text += chunk if tight else f" {chunk}"
    return text


def _at(table: np.ndarray, n: int) -> int:
    return int(table[n]) if n < len(table) else 0


def _split(numbers: Sequence[int], separator: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for n in numbers:
        if n == separator:
            parts.append([])
        else:
            parts[-1].append(n)
    return parts


class WritingState(NamedTuple):
    """Where each row of a batch stands; int32 [rows] but for `said`.

    `field` is -1 before the operator, 0, 1, 2 in a triplet, 3 after the end. `filled` is 0 for an
    empty field, 1 after a word or piece, 2 after a placeholder. `triplets` counts those begun,
    `used` is the highest placeholder; `fresh` is 1 if this triplet brought in a new one, `open` is
    the number of the last one in it (0: none). `last` is the last output number. `said` [rows,
    outputs] are the words and copies that the field has already.
    """

    field: Any
    filled: Any
    triplets: Any
    used: Any
    fresh: Any
    open: Any
    last: Any
    said: Any


@dataclass(frozen=True)
class WritingRules:
    """The state machine that makes every output parse.

    Three fields that are not empty; subject and object are text or one placeholder, a predicate
    begins with a word and may hold placeholders; every triplet has a placeholder and brings in at
    most one new one, the next in order; no field has a word twice, so that a greedy decoder cannot
    go round in circles on questions of an unseen kind; at most `MAX_TRIPLETS`; the end comes in
    time.

    `kinds` and `placeholder_numbers` are those of the vocabulary, `xp` is numpy or jax.numpy: the
    same lines are traced by jit and tested on plain arrays.
    """

    kinds: Any
    placeholder_numbers: Any
    xp: Any

    def start(self, rows: int, places: int) -> WritingState:
        """Nothing is written; questions have `places` pieces."""
        zero = self.xp.zeros((rows,), "int32")
        said = self.xp.zeros((rows, len(self.kinds) + places), bool)
        return WritingState(zero - 1, zero, zero, zero, zero, zero, zero, said)

    def allowed(self, state: WritingState, starts_word: Any, copyable: Any, left: Any) -> Any:
        """Which outputs may come next, bool [rows, tokens + places].

        Args:
            state: where each row stands.
            starts_word: bool [rows, places], whether a piece of the question begins a word.
            copyable: bool [rows, places].
            left: how many outputs there is still room for, this one included.
        """
        xp = self.xp
        field, filled, _, used, fresh, open_, last, said = state
        size = len(self.kinds)
        in_field = (field >= 0) & (field <= 2)
        # A word needs room for itself and all that must follow it; see `_needed`.
        text_field = in_field & ((filled < 2) | (field == 1))
        # An object that is text is of use only if something else of the triplet is unknown.
        text_field &= ~((field == 2) & (open_ == 0))
        word = text_field & (left > self._needed(field, 1))
        piece = word & (filled == 1)
        end_field = in_field & (filled > 0) & (field < 2)
        end_triplet = (field == 2) & (filled > 0)
        another = end_triplet & (state.triplets < MAX_TRIPLETS)
        another &= left > self._needed(0, 0)
        placeholder = in_field & (filled == 0) & (field != 1)
        placeholder |= (field == 1) & (filled > 0) & (left > self._needed(field, 1))
        number = self.placeholder_numbers
        numbers = (number > 0) & (number <= (used + (fresh == 0))[:, None])
        by_kind = {
            KIND_END: end_triplet | (field == 3),
            KIND_FIELD: end_field,
            KIND_TRIPLET: another,
            KIND_OPERATOR: field == -1,
            KIND_WORD: word,
            KIND_PIECE: piece,
        }
        allowed = xp.zeros((field.shape[0], size), bool)
        for kind, rows in by_kind.items():
            allowed |= rows[:, None] & (self.kinds == kind)
        # A triplet of a placeholder with itself says nothing.
        allowed |= placeholder[:, None] & numbers & (number[None] != open_[:, None])
        places = xp.arange(starts_word.shape[1])
        follows = (last - size)[:, None] + 1 == places
        copied = word[:, None] & copyable & (starts_word | follows)
        copied &= starts_word | (filled == 1)[:, None]
        return xp.concatenate([allowed, copied], axis=1) & ~said

    def _needed(self, field: Any, filled: Any) -> Any:
        """Outputs that must follow until the end: 1 at a full object, 6 at an empty subject."""
        return 1 + 2 * (2 - field) + (1 - filled)

    def step(self, state: WritingState, output: Any) -> WritingState:
        """The state after one output of each row, which must be an allowed one."""
        xp = self.xp
        size = len(self.kinds)
        known = xp.where(output < size, output, 0)
        kind = xp.where(output < size, self.kinds[known], KIND_WORD)
        number = xp.where(output < size, self.placeholder_numbers[known], 0)
        begins = (kind == KIND_OPERATOR) | (kind == KIND_TRIPLET)
        field = xp.where(begins, 0, state.field + (kind == KIND_FIELD))
        field = xp.where(kind == KIND_END, 3, field)
        filled = xp.where((kind == KIND_WORD) | (kind == KIND_PIECE), 1, state.filled)
        filled = xp.where(kind == KIND_PLACEHOLDER, 2, filled)
        filled = xp.where(begins | (kind == KIND_FIELD), 0, filled)
        fresh = xp.where(begins, 0, state.fresh | (number > state.used))
        open_ = xp.where(begins, 0, xp.where(number > 0, number, state.open))
        # Pieces may come again ("dancers, singers"); a circle needs a word.
        is_word = kind == KIND_WORD
        here = xp.arange(state.said.shape[1]) == output[:, None]
        ends_field = begins | (kind == KIND_FIELD) | (kind == KIND_END)
        said = (state.said | (here & is_word[:, None])) & ~ends_field[:, None]
        return WritingState(
            field.astype("int32"),
            filled.astype("int32"),
            (state.triplets + begins).astype("int32"),
            xp.maximum(state.used, number).astype("int32"),
            fresh.astype("int32"),
            open_.astype("int32"),
            output.astype("int32"),
            said,
        )
