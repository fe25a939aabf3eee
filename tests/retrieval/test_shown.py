import pytest
from hypothesis import given
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from retrieval.drawn_evidence import COUNTER, EVIDENCE, prompt_tokens
from triax.corpora.demo_corpus import load_demo
from triax.extraction.verbalize import propositions
from triax.models.token_counter import ModelTokenCounter, WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.triplets import Proposition, Triplet
from triax.records.usage import Usage
from triax.retrieval.shown import ShownTokens, keep

FACT = Proposition("p", Triplet("a", "is", "b"), "a is b", ("c0", "c1"))
CHUNKS = tuple(
    ScoredChunk(Chunk(f"c{n}", "d", text, title), 0.5)
    for n, (text, title) in enumerate([("one two three", "A title"), ("four", "")])
)
NOTES = (ScoredNote(Note("n", "said of all", "Summary"), 1.0),)
EVIDENCE_BY_HAND = Evidence(CHUNKS, (Hit(FACT, 0.9, ("c0", "c1")),), NOTES, Usage(calls=1))


def test_the_lines_by_hand():
    """One token a word, the mark of a line and the words of a heading too."""
    shown = ShownTokens(WordCounter(1.0))
    (sizes,) = shown.sizes([EVIDENCE_BY_HAND])
    # "- Summary said of all", "[1] A title one two three", "[2] four", "- a is b".
    assert sizes == {("notes", 0): 5, ("chunks", 0): 6, ("chunks", 1): 2, ("hits", 0): 4}
    assert list(sizes) == [("notes", 0), ("chunks", 0), ("chunks", 1), ("hits", 0)]
    assert shown.headings(EVIDENCE_BY_HAND) == 3 and shown.headings(Evidence()) == 0
    assert shown.totals([EVIDENCE_BY_HAND, Evidence()]) == [20, 0]
    assert prompt_tokens(EVIDENCE_BY_HAND, WordCounter(1.0)) == 20


def test_what_is_not_shown_costs_nothing_and_stands_first():
    shown = ShownTokens(WordCounter(1.0), ("chunks",))
    (sizes,) = shown.sizes([EVIDENCE_BY_HAND])
    assert list(sizes.items()) == [
        (("notes", 0), 0),
        (("hits", 0), 0),
        (("chunks", 0), 6),
        (("chunks", 1), 2),
    ]
    assert shown.headings(EVIDENCE_BY_HAND) == 1
    with pytest.raises(ValueError, match=r"kinds has \['facts'\]; expected some of"):
        ShownTokens(COUNTER, ("chunks", "facts"))


@given(EVIDENCE)
def test_no_prompt_has_more_tokens_than_are_counted(evidence):
    assert prompt_tokens(evidence) <= ShownTokens(COUNTER).totals([evidence])[0]


def test_a_byte_level_tokenizer_counts_no_less_either(tmp_path):
    """On the passages and triplets of the demo, as one prompt."""
    demo = load_demo()
    texts = [one.text for one in demo.documents]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    backend.save(str(tmp_path / "tokenizer.json"))
    counter = ModelTokenCounter(str(tmp_path))
    chunks = [Chunk(one.id, one.id, one.text, one.title) for one in demo.documents]
    whole = Evidence(
        tuple(ScoredChunk(one, 0.5) for one in chunks),
        tuple(Hit(one, 0.5, ()) for one in propositions(demo.extractions)),
        tuple(ScoredNote(Note(one.id, one.text, one.title), 0.5) for one in chunks),
    )
    counted = ShownTokens(counter).totals([whole])[0]
    # The frame of a line is counted a little too high: three digits of a passage's number.
    assert 0.97 * counted < prompt_tokens(whole, counter) <= counted


def test_a_part_is_kept_in_the_order_that_is_given():
    found = keep(EVIDENCE_BY_HAND, [("hits", 0), ("chunks", 1)])
    assert found.chunks == (CHUNKS[1],) and found.notes == ()
    # Only the sources that stay.
    assert found.hits == (Hit(FACT, 0.9, ("c1",)),)
    assert found.usage == Usage(calls=1)
    both = keep(EVIDENCE_BY_HAND, [("chunks", 1), ("notes", 0), ("chunks", 0)])
    assert both.chunks == CHUNKS[::-1] and both.notes == NOTES and both.hits == ()


def test_a_text_is_cut_to_its_beginning():
    shown = ShownTokens(WordCounter(1.0))
    cut = shown.cut(EVIDENCE_BY_HAND, ("chunks", 0), 5)
    assert [one.chunk.text for one in cut.chunks] == ["one two", "four"]
    assert cut.chunks[0].chunk.title == "A title" and cut.chunks[0].score == 0.5
    assert cut.notes == NOTES and cut.hits == EVIDENCE_BY_HAND.hits
    assert shown.cut(EVIDENCE_BY_HAND, ("notes", 0), 3).notes[0].note.text == "said"
    # A number and a title alone say nothing, and half a proposition says something else.
    assert shown.cut(EVIDENCE_BY_HAND, ("chunks", 0), 3) is None
    assert shown.cut(EVIDENCE_BY_HAND, ("hits", 0), 3) is None
