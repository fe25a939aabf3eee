"""Grammars as tables over tokens, so that a jitted loop can obey them without the host.

A regular expression becomes a byte automaton (outlines-core), then a table next[state, class]
over classes of tokens that it cannot tell apart, with each state's distance to the nearest end
in tokens. Distances let generation close what it began before its budget is spent.
What a table cannot hold (a grammar for each request) is matched on the host by llguidance.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Int

MAX_STATES = 16_384
UNREACHABLE = np.int32(2**30)
# Ends every pattern: outlines-core loses a transition that leaves a final state for another that
# is not final, so the only final state must be one that nothing leaves.
_SENTINEL = 0


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """An automaton over token ids. State 0 is the start.

    `next` [states, classes] holds the next state, or -1; `classes` [width] the class of each
    token; `distance` [states] how many tokens are missing to the nearest end (0: may end here).
    """

    next: np.ndarray
    classes: np.ndarray
    distance: np.ndarray

    @property
    def is_end(self) -> np.ndarray:
        """States [states] that may end and cannot go on."""
        return (self.distance == 0) & (self.next < 0).all(1)

    @property
    def min_tokens(self) -> int:
        """The fewest tokens of a whole output."""
        return int(self.distance[0])


def byte_automaton(pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """The smallest automaton that matches whole UTF-8 texts.

    Args:
        pattern: a regular expression of the Rust `regex` crate, without look-around.

    Returns:
        next state or -1, int32 [states, 256] with start 0; may the text end here, bool [states].

    Raises:
        ValueError: the pattern cannot be read, or has too many states.
    """
    from outlines_core import Index, Vocabulary

    alphabet = Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)})
    try:
        index = Index(f"(?:{pattern})\\x00", alphabet)
    except Exception as error:  # outlines-core raises its own kinds
        raise ValueError(
            f"the pattern {_short(pattern)} cannot be compiled ({error}); write it as a regular "
            "expression without look-around and back-references"
        ) from None
    edges = index.get_transitions()
    names = {index.get_initial_state(): 0}
    for state in edges:
        names.setdefault(state, len(names))
    if len(names) > MAX_STATES:
        raise ValueError(
            f"the pattern {_short(pattern)} has {len(names)} states, at most {MAX_STATES} are "
            "allowed; bound its repetitions more tightly"
        )
    table = np.full((len(names), 256), -1, np.int32)
    is_final = np.zeros(len(names), bool)
    ends = index.get_final_states()
    for state, arcs in edges.items():
        for byte, target in arcs.items():
            if byte == _SENTINEL and target in ends:
                is_final[names[state]] = True
            elif byte < 256:
                table[names[state], byte] = names.get(target, -1)
    return _minimise(_trim(table, is_final), is_final)


def _trim(table: np.ndarray, is_final: np.ndarray) -> np.ndarray:
    """Cuts transitions from which no end can be reached."""
    alive = is_final.copy()
    while True:
        reaching = alive | (np.append(alive, False)[table].any(1))
        if (reaching == alive).all():
            return np.where(np.append(alive, False)[table], table, -1)
        alive = reaching


def _minimise(table: np.ndarray, is_final: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges states that accept the same texts (Moore's refinement); the start stays 0."""
    columns = np.unique(table, axis=1)
    labels, count = is_final.astype(np.int64), 0
    while True:
        signature = np.concatenate([labels[:, None], np.append(labels, -1)[columns]], axis=1)
        _, first, labels = np.unique(signature, axis=0, return_index=True, return_inverse=True)
        labels = labels.ravel()
        if len(first) == count:
            break
        count = len(first)
    names, first = np.unique(labels, return_index=True)
    order = np.argsort(first)  # by first appearance, so that the start is 0
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    chosen = first[order]
    merged = np.append(rank[labels], -1)[table[chosen]].astype(np.int32)
    reached = np.zeros(count, bool)
    frontier = np.array([0])
    while len(frontier):
        reached[frontier] = True
        targets = np.unique(merged[frontier])
        frontier = targets[(targets >= 0) & ~reached[targets]]
    renamed = np.append(np.where(reached, np.cumsum(reached) - 1, -1), -1)
    return renamed[merged[reached]].astype(np.int32), is_final[chosen][reached]


def compile_regex(pattern: str, token_bytes: Sequence[bytes], width: int) -> TokenTable:
    """Builds the table of a pattern for one vocabulary.

    Args:
        pattern: as for `byte_automaton`.
        token_bytes: what each token writes; empty for special tokens, which never match.
        width: number of logits of the model, at least `len(token_bytes)`.

    Raises:
        ValueError: the pattern cannot be compiled, or the vocabulary cannot write any match.
    """
    table, is_final = byte_automaton(pattern)
    columns, byte_class = np.unique(table, axis=1, return_inverse=True)
    coded = bytes(byte_class.ravel().astype(np.uint8))  # at most 256 classes, one for each byte
    known: dict[bytes, int] = {b"": 0}
    spelled = [known.setdefault(text.translate(coded), len(known)) for text in token_bytes]
    moves = _walk(columns, list(known))
    distance = _distances(moves, is_final)
    if distance[0] >= UNREACHABLE:
        raise ValueError(
            f"the vocabulary of {len(token_bytes)} tokens cannot write any text that matches "
            f"{_short(pattern)}; check the pattern and the tokenizer"
        )
    # A state that bytes can leave but the tokens cannot is as bad as none.
    moves = np.where(np.append(distance, UNREACHABLE)[moves] < UNREACHABLE, moves, -1)
    classes = np.zeros(width, np.int32)
    merged: dict[bytes, int] = {}
    by_spelling = np.array(
        [
            merged.setdefault(column.tobytes(), len(merged))
            for column in np.ascontiguousarray(moves.T)
        ]
    )
    classes[: len(spelled)] = by_spelling[spelled]
    _, first = np.unique(by_spelling, return_index=True)
    return TokenTable(np.ascontiguousarray(moves[:, first]), classes, distance)


def _walk(columns: np.ndarray, spellings: list[bytes]) -> np.ndarray:
    """The state after each spelling (in byte classes) from each state; spelling 0 is refused."""
    states, classes = columns.shape
    stay = np.arange(states, dtype=np.int32)[:, None]
    arcs = np.concatenate([columns, stay], axis=1)  # one class more: the text is over
    arcs = np.concatenate([arcs, np.full((1, classes + 1), -1, np.int32)])  # row -1: refused
    lengths = np.array([len(spelling) for spelling in spellings])
    order = np.argsort(-lengths, kind="stable")
    letters = np.full((len(spellings), lengths.max()), classes, np.int32)
    for row, where in enumerate(order):
        letters[row, : lengths[where]] = np.frombuffer(spellings[where], np.uint8)
    after = np.repeat(np.arange(states, dtype=np.int16)[:, None], len(spellings), axis=1)
    for position in range(letters.shape[1]):
        going = int((lengths > position).sum())
        after[:, :going] = arcs[after[:, :going], letters[:going, position]]
    moves = np.empty_like(after)
    moves[:, order] = after
    moves[:, 0] = -1
    return moves


def _distances(moves: np.ndarray, is_final: np.ndarray) -> np.ndarray:
    """Fewest tokens from each state to an end, int32 [states]."""
    distance = np.where(is_final, 0, UNREACHABLE).astype(np.int32)
    targets = [np.unique(row[row >= 0]) for row in moves]
    while True:
        best = [distance[row].min(initial=UNREACHABLE) for row in targets]
        shorter = np.minimum(distance, np.minimum(np.array(best) + 1, UNREACHABLE))
        if (shorter == distance).all():
            return distance
        distance = shorter.astype(np.int32)


def free_table(width: int) -> TokenTable:
    """The table that allows every token everywhere."""
    zeros = np.zeros((1, 1), np.int16)
    return TokenTable(zeros, np.zeros(width, np.int32), np.zeros(1, np.int32))


def host_table(width: int) -> TokenTable:
    """The table of a row whose matcher is on the host: it rewrites `classes` before every token.

    Class 1 is allowed. State 0 may end, state 1 may not; the host chooses between them.
    """
    moves = np.array([[-1, 0], [-1, 0]], np.int16)
    return TokenTable(moves, np.zeros(width, np.int32), np.array([0, 1], np.int32))


def json_schema_pattern(schema: str) -> str:
    """The regular expression of the JSON texts that a schema allows.

    Raises:
        ValueError: the schema is no JSON, or uses a feature that outlines-core lacks.
    """
    from outlines_core.json_schema import build_regex_from_schema

    try:
        return build_regex_from_schema(json.dumps(json.loads(schema)))
    except Exception as error:  # outlines-core raises its own kinds
        raise ValueError(
            f"the JSON schema {_short(schema)} cannot become a pattern ({error}); simplify it"
        ) from None


class RowTables(NamedTuple):
    """One table for each row of a batch, as arrays of shapes that few compilations cover.

    Row b's next state is `moves[moves_start[b] + state * stride[b] + classes[b, token]]`, and its
    `distance` and `is_end` stand at `state_start[b] + state`.
    """

    moves: Int[Array, " entries"]
    distance: Int[Array, " states"]
    is_end: Bool[Array, " states"]
    classes: Int[Array, "batch width"]
    moves_start: Int[Array, " batch"]
    state_start: Int[Array, " batch"]
    stride: Int[Array, " batch"]


def stack_tables(tables: Sequence[TokenTable]) -> RowTables:
    """Puts the rows' tables side by side, the same ones once, as numpy arrays.

    Their sizes are such that most grammars share one compilation.
    """
    starts: dict[int, tuple[int, int]] = {}
    distinct: list[TokenTable] = []
    entries = states = 0
    for table in tables:
        if id(table) not in starts:
            starts[id(table)] = (entries, states)
            entries, states = entries + table.next.size, states + len(table.distance)
            distinct.append(table)
    moves = np.full(_power(entries, 2**20), -1, np.int16)
    distance = np.full(_power(states, MAX_STATES), UNREACHABLE, np.int32)
    is_end = np.zeros(len(distance), bool)
    for table in distinct:
        at, state = starts[id(table)]
        moves[at : at + table.next.size] = table.next.ravel()
        distance[state : state + len(table.distance)] = table.distance
        is_end[state : state + len(table.distance)] = table.is_end
    return RowTables(
        moves,
        distance,
        is_end,
        np.stack([table.classes for table in tables]),
        *np.array([starts[id(table)] for table in tables], np.int32).T,
        np.array([table.next.shape[1] for table in tables], np.int32),
    )


def next_states(tables: RowTables, state: Int[Array, " batch"]) -> Int[Array, "batch width"]:
    """The state after each token, or -1 where the token does not fit."""
    row = tables.moves_start + state * tables.stride
    return tables.moves[row[:, None] + tables.classes].astype("int32")


def allowed_tokens(
    tables: RowTables,
    state: Int[Array, " batch"],
    following: Int[Array, "batch width"],
    remaining: Int[Array, " batch"],
    is_eos: Bool[Array, " width"],
) -> Bool[Array, "batch width"]:
    """Tokens after which the row can still end within `remaining` tokens, this one counted."""
    start = tables.state_start
    missing = tables.distance[start[:, None] + following]
    fits = (following >= 0) & (missing < remaining[:, None])
    may_end = tables.distance[start + state] == 0
    return (fits & ~is_eos) | (is_eos & may_end[:, None])


def matcher_vocabulary(
    token_bytes: Sequence[bytes],
    encode: Callable[[str], Sequence[int]],
    eos_ids: Sequence[int],
    width: int,
) -> Any:
    """What llguidance must know of a tokenizer; build it once.

    Args:
        token_bytes: what each token writes; empty for special tokens, which never match.
        encode: the tokenizer, without special tokens.
        eos_ids: the tokens that end a text.
        width: number of logits of the model.
    """
    import llguidance

    class Adapter:
        eos_token_id = eos_ids[0]
        bos_token_id = None
        tokens = [text or f"<{number}>".encode() for number, text in enumerate(token_bytes)]
        special_token_ids = [number for number, text in enumerate(token_bytes) if not text]

        def __call__(self, text: str) -> list[int]:
            return list(encode(text))

    return llguidance.LLTokenizer(
        llguidance.TokenizerWrapper(Adapter()), n_vocab=width, eos_token=list(eos_ids)
    )


class Matcher:
    """The progress of one row through a lark grammar of llguidance.

    `closed_length` is the number of tokens of the longest beginning of the output that is itself
    a whole output (None so far: there is none). `error` is not empty once matching has failed.
    """

    def __init__(self, vocabulary: Any, source: str):
        """Takes a grammar in llguidance's dialect of lark.

        Raises:
            ValueError: the grammar cannot be read.
        """
        from llguidance import LLMatcher

        self._matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(source), log_level=0)
        self.error = self._matcher.get_error()
        if self.error:
            raise ValueError(
                f"the lark grammar {_short(source)} cannot be read ({self.error}); see "
                "llguidance's description of its syntax"
            )
        self._length = 0
        self.closed_length = 0 if self._matcher.is_accepting() else None

    def allowed(self, width: int) -> np.ndarray:
        """1 for each token that may come next, else 0; int32 [width]."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = np.unpackbits(bits, bitorder="little")[:width].astype(np.int32)
        return np.pad(allowed, (0, width - len(allowed)))

    def advance(self, token: int) -> bool:
        """Takes the token that was written; returns True when nothing can follow."""
        self._matcher.consume_token(token)
        self.error = self._matcher.get_error()
        if self.error:
            return True
        self._length += 1
        if self._matcher.is_accepting():
            self.closed_length = self._length
        return self._matcher.is_stopped()


def _power(size: int, least: int) -> int:
    while least < size:
        least *= 4
    return least


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
