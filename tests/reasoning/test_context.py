from triax.reasoning.context import Budget, render_evidence
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.triplets import Proposition, Triplet

CHUNKS = tuple(
    ScoredChunk(Chunk(name, name, f"one two three four {name}", name.upper()), 1.0) for name in "ab"
)
HITS = tuple(
    Hit(Proposition(name, Triplet(name, "is", "x"), f"{name} is x", ("a",)), 1.0, ("a",))
    for name in "pq"
)
BOTH = Evidence(CHUNKS, HITS)


def test_passages_then_facts():
    assert render_evidence(BOTH, Budget()) == (
        "Passages:\n[1] A\none two three four a\n[2] B\none two three four b\n\n"
        "Facts:\n- p is x\n- q is x"
    )


def test_chunks_can_be_left_out():
    assert render_evidence(BOTH, Budget(), keeps_chunks=False) == "Facts:\n- p is x\n- q is x"


def test_r08_a_budget_bounds_all_three():
    shown = render_evidence(BOTH, Budget(1, 3, 1))
    assert shown == "Passages:\n[1] A one two \u2026\n\nFacts:\n- p is x"


def test_a_budget_of_nothing_leaves_no_heading():
    assert render_evidence(BOTH, Budget(0, None, 0)) == ""
    assert render_evidence(Evidence(), Budget()) == ""


def test_a_text_within_the_budget_is_not_touched():
    assert Budget(max_words_per_chunk=2).cut("one\n  two ") == "one\n  two "
    assert Budget(max_words_per_chunk=0).cut("one") == " \u2026"
    assert Budget().cut("one two") == "one two"


def test_notes_stand_first_and_are_cut_too():
    note = Note("n", "Hitchcock made films in two countries.", "Films", ("a",))
    evidence = Evidence(CHUNKS[:1], (), (ScoredNote(note, 1.0),))
    shown = render_evidence(evidence, Budget(max_words_per_chunk=3))
    assert shown.startswith("Summaries:\n- Films Hitchcock made …\n\nPassages:\n[1] ")
    assert "Summaries" not in render_evidence(evidence, Budget(max_notes=0))
