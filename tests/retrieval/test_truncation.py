from hypothesis import given
from hypothesis import strategies as st

from retrieval.drawn_evidence import ASKED, COUNTER, check
from retrieval.test_shown import EVIDENCE_BY_HAND
from triax.models.token_counter import WordCounter
from triax.records.evidence import Evidence
from triax.records.verbs import Compressor
from triax.retrieval.shown import ShownTokens
from triax.retrieval.truncation import Truncation


def truncated(max_tokens, kinds=("notes", "chunks", "hits")):
    compressor = Truncation(ShownTokens(WordCounter(1.0), kinds), max_tokens)
    assert isinstance(compressor, Compressor)
    (found,) = compressor.compress([["q"]], [EVIDENCE_BY_HAND])
    texts = [one.note.text for one in found.notes] + [one.chunk.text for one in found.chunks]
    return texts + [one.proposition.text for one in found.hits]


def test_as_found_until_the_budget_ends_by_hand():
    """Headings 3, note 5, chunks 6 and 2, proposition 4: 20 in all."""
    whole = ["said of all", "one two three", "four", "a is b"]
    assert truncated(20) == truncated(99) == whole
    assert truncated(19) == whole[:3]
    # 3 + 5 + 5: the chunk's number, its title, and two words.
    assert truncated(13) == ["said of all", "one two"]
    assert truncated(11) == ["said of all"]
    assert truncated(6) == ["said"]
    assert truncated(5) == truncated(0) == truncated(-1) == []


def test_what_is_not_shown_stays():
    # The heading, the first chunk, and of the second nothing; note and proposition cost nothing.
    assert truncated(7, ("chunks",)) == ["said of all", "one two three", "a is b"]


@given(ASKED, st.integers(-2, 60))
def test_the_budget_holds(asked, max_tokens):
    check(Truncation(ShownTokens(COUNTER), max_tokens), asked, max_tokens)


def test_nothing():
    compressor = Truncation(ShownTokens(COUNTER))
    assert compressor.compress([], []) == []
    assert compressor.compress([[]], [Evidence()]) == [Evidence()]
