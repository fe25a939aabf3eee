import re

import numpy as np
import pytest

from triax.llm import grammar as module
from triax.llm.grammar import (
    GrammarCompiler,
    one_of,
    query_triplet_lines,
    short_answer,
    span_triplets,
    triplet_lines,
)
from triax.records.completions import Grammar

TOKENS = [bytes([byte]) for byte in range(256)] + [b" | ", b""]
EOS = 257


def compiler(folder) -> GrammarCompiler:
    return GrammarCompiler(TOKENS, lambda text: list(text.encode()), [EOS], 260, folder)


def accepts(grammar: Grammar, text: str) -> bool:
    return re.fullmatch(grammar.source, text) is not None


@pytest.mark.parametrize(
    ("text", "is_triplets", "is_queries"),
    [
        ("Marie Curie | born in | Warsaw", True, True),
        ("a | b | c\nd | e | f", True, True),
        ("a | b | c\nd | e | f\ng | h | i", False, False),
        ("a | b | c\n", False, False),
        ("What's Up, Doc? | director | Peter Bogdanovich", True, True),
        ("?film | director | ?x", False, True),
        ("the director of ?film | born in | ?", False, True),
        ("? | b | c", False, True),
        ("?? | b | c", False, False),
        ("a | b", False, False),
        ("a | b | c | d", False, False),
        (" a | b | c", False, False),
        ("a  a | b | c", False, False),
        ("a | b | ", False, False),
        ("Łódź | liegt in | Пољска 中国", True, True),
        (" ".join(["w"] * 10) + " | b | c", True, True),
        (" ".join(["w"] * 11) + " | b | c", False, False),
        ("NONE", False, False),
    ],
)
def test_lines(text, is_triplets, is_queries):
    assert accepts(triplet_lines(2), text) == is_triplets
    assert accepts(query_triplet_lines(2), text) == is_queries


def test_none_where_allowed():
    grammar = triplet_lines(3, allow_none=True)
    assert accepts(grammar, "NONE") and accepts(grammar, "a | b | c")


@pytest.mark.parametrize("text", ["Paris", "in the 19th century", "What? | yes"])
def test_short_answer(text):
    assert accepts(short_answer(4), text)
    assert not accepts(short_answer(4), text + "\n")
    assert not accepts(short_answer(1), "two words")


def test_one_of_takes_options_as_they_are(tmp_path):
    options = ["a.b", "C++", "(x|y)", "", "tab\there", "#&~-", "Ünïcode"]
    with pytest.raises(ValueError, match="none empty"):
        one_of(options)
    options.remove("")
    grammar = one_of(options)
    table = compiler(tmp_path).table(grammar)
    for option in options:
        state = 0
        for byte in option.encode():
            state = table.next[state, table.classes[byte]]
            assert state >= 0
        assert table.is_end[state]
    assert table.next[0, table.classes[ord("z")]] == -1
    with pytest.raises(ValueError, match="at least one"):
        one_of([])


def matches(grammar: Grammar, text: str, tmp_path) -> bool:
    matcher = compiler(tmp_path).matcher(grammar)
    for byte in text.encode():
        matcher.advance(byte)
    return matcher.closed_length == len(text.encode())


@pytest.mark.parametrize(
    ("line", "is_held"),
    [
        ("Roger Dean Miller Sr. | son | Dean Miller", True),
        ("Roger Dean | is | singer", True),
        ("Roger Miller | son | Dean", False),  # not beside each other
        ("oger Dean | is | singer", False),  # not a whole word
        ("Roger Dea | is | singer", False),
        (" Dean | is | singer", False),
        ("Dean | is | ", False),
        (". His | is | Dean", False),
        ("born 1936 | year | 1936", True),
        ("Dean | is ?x | Dean", False),
        ('"Łódź | was in | quotes', True),
        ("Dean | is | Dean\nDean | is | Dean", True),
        ("Dean | is | Dean\nDean | is | Dean\nDean | is | Dean", False),
    ],
)
def test_spans(line, is_held, tmp_path):
    text = "Roger Dean Miller\n Sr. (born 1936) was a singer. His son is Dean Miller, "
    text += '"Łódź" \\ in quotes'
    assert matches(span_triplets(text, 2), line, tmp_path) == is_held


def test_spans_need_words():
    with pytest.raises(ValueError, match="no word"):
        span_triplets(" | \n", 3)


def test_limits_are_checked():
    with pytest.raises(ValueError, match="max_triplets is 0"):
        triplet_lines(0)
    with pytest.raises(ValueError, match="max_triplets is 0"):
        span_triplets("a", 0)


def test_tables_are_kept_in_memory(tmp_path):
    compiled = compiler(tmp_path)
    assert compiled.table(one_of(["a"])) is compiled.table(one_of(["a"]))


def test_r28_slow_tables_are_kept_on_disk_by_grammar_and_tokenizer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SLOW_S", 0.0)
    grammar = triplet_lines(2)
    built = compiler(tmp_path).table(grammar)
    (path,) = tmp_path.glob("*.npz")
    with monkeypatch.context() as context:
        context.setattr("triax.models.constraint.compile_regex", None)  # must not be called
        kept = compiler(tmp_path).table(grammar)
        for name in ("next", "classes", "distance"):
            assert np.array_equal(getattr(kept, name), getattr(built, name))
    path.write_bytes(b"broken")
    again = compiler(tmp_path).table(grammar)
    assert np.array_equal(again.next, built.next)
    other = GrammarCompiler(TOKENS[::-1], lambda text: [], [0], 260, tmp_path)
    other.table(grammar)
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_kinds_are_not_mixed_up(tmp_path):
    with pytest.raises(ValueError, match="use table"):
        compiler(tmp_path).matcher(one_of(["a"]))
    with pytest.raises(ValueError, match="use matcher"):
        compiler(tmp_path).table(span_triplets("a b", 1))
