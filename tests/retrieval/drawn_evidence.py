"""Evidence of every kind, drawn; and what a reader is shown of it, counted on the whole prompt."""

from hypothesis import strategies as st

from retrieval.conftest import CHUNKS, FACTS, proposition
from triax.models.token_counter import WordCounter
from triax.reasoning.context import Budget, render_evidence
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.usage import Usage

COUNTER = WordCounter(1.3)
TEXTS = st.text("ab Ł\n.", max_size=30)
SCORES = st.floats(-1, 1, width=32)
CHUNK = st.one_of(
    st.sampled_from(CHUNKS),
    st.builds(
        lambda name, text, title: Chunk(f"new-{name}", "new", text, title),
        st.integers(0, 3),
        TEXTS,
        TEXTS.map(str.strip),
    ),
)
HIT = st.builds(
    lambda fact, score: Hit(proposition(fact[0], fact[1]), score, (fact[1],)),
    st.sampled_from([*FACTS, (("An unknown", "is", "in no index"), "none")]),
    SCORES,
)
NOTE = st.builds(
    lambda name, text, title: ScoredNote(Note(f"note-{name}", text, title), 0.5),
    st.integers(0, 3),
    TEXTS,
    TEXTS.map(str.strip),
)
EVIDENCE = st.builds(
    Evidence,
    st.lists(
        st.builds(ScoredChunk, CHUNK, SCORES), max_size=5, unique_by=lambda one: one.chunk.id
    ).map(tuple),
    st.lists(HIT, max_size=4, unique_by=lambda one: one.proposition.id).map(tuple),
    st.lists(NOTE, max_size=3, unique_by=lambda one: one.note.id).map(tuple),
    st.just(Usage(calls=2)),
)
QUESTIONS = st.sampled_from(
    ["Where was Marie Curie born?", "What did Ada write in London?", "Що стоїть?", "Is it so?", ""]
)
GROUPS = st.lists(QUESTIONS, max_size=2)
ASKED = st.lists(st.tuples(GROUPS, EVIDENCE), max_size=4)


def prompt_tokens(evidence, counter=COUNTER):
    """The whole evidence as `PromptedReader` shows it."""
    return counter.count([render_evidence(evidence, Budget())])[0]


def check(compressor, asked, max_tokens):
    """What holds for every compressor: the budget, nothing invented, scores and costs kept."""
    groups, evidences = [list(group) for group, _ in asked], [one for _, one in asked]
    found = compressor.compress(groups, evidences)
    assert len(found) == len(evidences)
    for before, after in zip(evidences, found, strict=True):
        assert prompt_tokens(after) <= max(0, max_tokens)
        assert after.usage == before.usage
        was = {one.chunk.id: one for one in before.chunks}
        for one in after.chunks:
            assert one.score == was[one.chunk.id].score
            assert was[one.chunk.id].chunk.text.startswith(one.chunk.text)
        assert {one.note.id for one in after.notes} <= {one.note.id for one in before.notes}
        kept = {one.chunk.id for one in after.chunks}
        for hit in after.hits:
            assert set(hit.chunk_ids) == kept & set(hit.proposition.chunk_ids)
    assert compressor.compress(groups, evidences) == found
    alone = [compressor.compress([group], [one])[0] for group, one in zip(groups, evidences)]
    assert alone == found
    return found
