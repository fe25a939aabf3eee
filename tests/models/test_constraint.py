import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.models.constraint import (
    UNREACHABLE,
    Matcher,
    allowed_tokens,
    byte_automaton,
    compile_regex,
    free_table,
    json_schema_pattern,
    matcher_vocabulary,
    next_states,
    stack_tables,
)

BYTES = [bytes([byte]) for byte in range(256)]
PATTERNS = [
    r"a",
    r"a(?:\nb)?",  # a final state that a byte leaves for one that is not final
    r"(?:ab\n)+",
    r"a|ab|abc",
    r"[ab]*a[ab]{2}",
    r"[^a]+(?: [^a]+){0,2}",
    r"é|ü[a-c]?",
    r"(?:a?b){2,3}",
]


def runs(table: np.ndarray, is_final: np.ndarray, text: bytes) -> bool:
    state = 0
    for byte in text:
        state = table[state, byte]
        if state < 0:
            return False
    return bool(is_final[state])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_automaton_accepts_what_re_accepts(pattern):
    table, is_final = byte_automaton(pattern)

    @settings(max_examples=150, deadline=None, database=None)
    @given(st.text(alphabet="abc\n éü", max_size=8) | st.from_regex(pattern, fullmatch=True))
    def check(text):
        if "\0" not in text:
            expected = re.fullmatch(pattern, text) is not None
            assert runs(table, is_final, text.encode()) == expected

    check()


def test_automaton_is_the_smallest():
    # Myhill-Nerode: [ab]*a[ab]{2} has 2**3 classes; (?:ab)* has 2 that can still end.
    assert len(byte_automaton("[ab]*a[ab]{2}")[0]) == 8
    assert len(byte_automaton("(?:ab)*")[0]) == 2


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "[0-9]{17000}"])
def test_bad_patterns_are_refused(pattern):
    with pytest.raises(ValueError, match="the pattern .*; "):
        byte_automaton(pattern)


def brute_force(pattern: str, tokens: list[bytes], depth: int) -> dict[tuple[int, ...], bool]:
    """Token sequences that can be continued to a match, by trying all; True: is a match."""
    language = {(): re.fullmatch(pattern, "") is not None}
    level = [()]
    for _ in range(depth):
        level = [ids + (n,) for ids in level for n, text in enumerate(tokens) if text]
        for ids in level:
            text = b"".join(tokens[n] for n in ids).decode()
            language[ids] = re.fullmatch(pattern, text) is not None
    return language


def test_table_follows_tokens_and_knows_the_way_to_the_end():
    tokens = [b"a", b"b", b"ab", b"\n", b"b\na", b""]
    pattern = r"ab(?:\nab)?"
    table = compile_regex(pattern, tokens, 8)
    language = brute_force(pattern, tokens, 5)
    for ids, is_match in language.items():
        state = 0
        for token in ids:
            state = table.next[state, table.classes[token]] if state >= 0 else -1
        longer = [other for other, match in language.items() if match and other[: len(ids)] == ids]
        if longer:
            assert table.distance[state] == min(len(other) - len(ids) for other in longer)
            assert (table.distance[state] == 0) == is_match
        elif len(ids) < 3:
            assert state == -1
    assert (table.next[:, table.classes[5:]] == -1).all()  # special token and unused logits
    assert table.min_tokens == 1


def test_states_that_the_tokens_cannot_finish_are_cut():
    table = compile_regex("ab|ac", [b"a", b"c", b"x"], 3)
    assert table.next[0, table.classes[0]] >= 0
    assert table.min_tokens == 2
    with pytest.raises(ValueError, match="cannot write any text"):
        compile_regex("ab", [b"a"], 1)


def test_words_do_not_explode_the_states():
    word = r"[^\s|]+"
    field = word + "(?: " + word + "){0,9}"
    line = rf"{field} \| {field} \| {field}"
    table = compile_regex(line + rf"(?:\n{line}){{0,9}}", BYTES, 256)
    assert len(table.distance) < 5000  # bounds of {1,60} characters: over 20,000
    assert table.distance.max() < 16


def test_tables_of_different_rows_side_by_side():
    import jax.numpy as jnp

    tables = [compile_regex("ab?", BYTES, 256), free_table(256), compile_regex("cd", BYTES, 256)]
    stacked = stack_tables([*tables, tables[0]])
    assert stacked.moves_start.tolist()[0] == stacked.moves_start.tolist()[3]  # held once
    stacked = type(stacked)(*(jnp.asarray(array) for array in stacked))
    state = jnp.zeros(4, jnp.int32)
    following = next_states(stacked, state)
    is_eos = jnp.zeros(256, bool).at[0].set(True)

    def allowed(state, following, remaining):
        found = allowed_tokens(stacked, state, following, jnp.full(4, remaining), is_eos)
        return [np.flatnonzero(row).tolist() for row in np.asarray(found)]

    assert allowed(state, following, 9) == [[97], list(range(256)), [99], [97]]
    assert allowed(state, following, 1)[2] == []  # "cd" needs two
    moved = jnp.take_along_axis(following, jnp.array([97, 1, 99, 97])[:, None], axis=1)[:, 0]
    following = next_states(stacked, moved)
    assert allowed(moved, following, 9) == [[0, 98], list(range(256)), [100], [0, 98]]


def test_is_end_only_where_nothing_follows():
    table = compile_regex("ab?", BYTES, 256)
    after_a = table.next[0, table.classes[ord("a")]]
    after_b = table.next[after_a, table.classes[ord("b")]]
    assert (table.distance == [1, 0, 0]).all() and UNREACHABLE > 10**9
    assert table.is_end[[0, after_a, after_b]].tolist() == [False, False, True]


def test_json_schema():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    pattern = json_schema_pattern(json.dumps(schema))
    assert re.fullmatch(pattern, '{"a": 12}') and not re.fullmatch(pattern, '{"a": "x"}')
    for wrong in ("{", '{"type": "nothing"}'):
        with pytest.raises(ValueError, match="cannot become a pattern"):
            json_schema_pattern(wrong)


def test_matcher():
    vocabulary = matcher_vocabulary([*BYTES, b""], lambda text: list(text.encode()), [256], 260)
    matcher = Matcher(vocabulary, 'start: "ab" "c"?')
    assert np.flatnonzero(matcher.allowed(260)).tolist() == [97]
    assert not matcher.advance(97) and matcher.closed_length is None
    assert not matcher.advance(98) and matcher.closed_length == 2
    assert np.flatnonzero(matcher.allowed(260)).tolist() == [99, 256]
    assert matcher.advance(99) and matcher.closed_length == 3 and not matcher.error
    other = Matcher(vocabulary, 'start: "ab"')
    assert other.advance(98) and other.error
    with pytest.raises(ValueError, match="cannot be read"):
        Matcher(vocabulary, "start: missing")
