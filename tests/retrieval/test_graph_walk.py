"""References: an order worked out by hand, and the walk in plain Python over drawn graphs."""

from collections import deque

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.conftest import proposition
from retrieval.drawn_evidence import ASKED, COUNTER, check
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.models.token_counter import WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.usage import Usage
from triax.records.verbs import Compressor
from triax.retrieval.graph_walk import GraphWalkCompressor
from triax.retrieval.shown import ShownTokens

# A chain from Ada over three hops to Dover, and on to Ely and its market.
CHAIN = [
    ("c0", ("Ada", "met", "Babbage"), "They met."),
    ("c1", ("Babbage", "taught", "Carol"), "He taught her."),
    ("c2", ("Carol", "moved to", "Dover"), "She moved."),
    ("c3", ("Dover", "is near", "Ely"), "Not far."),
    ("c4", ("Ely", "has", "a market"), "On Fridays."),
    ("c5", ("Xenia", "saw", "Yann"), "Whom to marry?"),
    ("c6", ("Zoe", "has", "a cat"), "It purrs."),
]
CHUNKS = {name: Chunk(name, name, text) for name, _, text in CHAIN}
RELATIONS = [" ".join(fields) for _, fields, _ in CHAIN]
NOTE = ScoredNote(Note("n", "All of it."), 0.3)
QUESTION = ["Whom did Ada marry?"]
ONE_A_WORD = ShownTokens(WordCounter(1.0))


def evidence_of(*names, hits=(), notes=()):
    chunks = [ScoredChunk(CHUNKS[name], place / 10) for place, name in enumerate(names)]
    return Evidence(tuple(chunks), tuple(hits), tuple(notes), Usage(calls=3))


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    facts = [proposition(fields, name) for name, fields, _ in CHAIN]
    folder = tmp_path_factory.mktemp("chain") / "index"
    return build_index(CHUNKS.values(), facts, HashingEncoder(64), folder)


def texts(evidence):
    return (
        [one.chunk.id for one in evidence.chunks],
        [one.proposition.text for one in evidence.hits],
    )


def walked(index, evidence, question=QUESTION, shown=ONE_A_WORD, **options):
    (found,) = GraphWalkCompressor(index, shown, **options).compress([question], [evidence])
    return found


BACKWARDS = ("c6", "c5", "c4", "c3", "c2", "c1", "c0")


def test_all_fits_hop_by_hop(chain):
    """Ada 0, Babbage 1, Carol 2, Dover 3; so Ely 4, since c3 has it beside Dover."""
    evidence = evidence_of(*BACKWARDS, notes=[NOTE])
    compressor = GraphWalkCompressor(chain, ONE_A_WORD)
    assert isinstance(compressor, Compressor)
    (found,) = compressor.compress([QUESTION], [evidence])
    # The market is not reached: c4 mentions no entity of the walk itself. c5 has the word "marry".
    assert texts(found)[0] == ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]
    assert texts(found)[1] == [*RELATIONS[:4], RELATIONS[6], RELATIONS[5], RELATIONS[4]]
    assert [one.score for one in found.chunks] == [0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    assert found.notes == (NOTE,) and found.usage == Usage(calls=3)
    assert [hit.chunk_ids for hit in found.hits][:2] == [("c0",), ("c1",)]


def test_the_budget_is_filled_in_that_order(chain):
    """Headings 3 words. Relations cost 4, 4, 5, 5 with their mark, chunks 3, 4, 3, 3, 3, 4, 3."""
    evidence = evidence_of(*BACKWARDS, notes=[NOTE])

    def kept(max_tokens, **options):
        return texts(walked(chain, evidence, max_tokens=max_tokens, **options))

    assert kept(5) == ([], [])
    assert kept(6) == (["c0"], [])  # the relation before it has no room, which ends nothing
    assert kept(7) == ([], RELATIONS[:1])
    assert kept(10) == (["c0"], RELATIONS[:1])
    assert kept(14) == (["c0"], RELATIONS[:2])
    # 3 + 4 + 3 + 4 + 4 = 18; the third relation needs 5 and its chunk 3.
    assert kept(21) == (["c0", "c1", "c2"], RELATIONS[:2])
    assert kept(23) == (["c0", "c1"], RELATIONS[:3])


def test_relations_stay_past_the_budget_as_released(chain):
    evidence = evidence_of("c1", "c0")
    found = walked(chain, evidence, max_tokens=9, keeps_all_relations=True)
    # Headings 2, relation 4, c0 3; then Babbage's relation all the same.
    assert texts(found) == (["c0"], RELATIONS[:2])


def test_hops_are_counted_within_what_the_evidence_states_or_over_all(chain):
    evidence = evidence_of("c6", "c2", "c0")
    assert texts(walked(chain, evidence))[0] == ["c0", "c6", "c2"]
    # Over c1, which is not there, Carol is two hops away.
    assert texts(walked(chain, evidence, within_evidence=False))[0] == ["c0", "c2", "c6"]
    # But two hops no longer lead from Ada to c3.
    far = evidence_of("c6", "c3", "c0")
    assert texts(walked(chain, far, within_evidence=False, max_hops=2))[0] == ["c0", "c6", "c3"]
    # A hit is of the evidence too, though no chunk of it states it.
    hit = Hit(proposition(CHAIN[1][1], "c1"), 0.9, ("c1",))
    bridged = walked(chain, evidence_of("c6", "c2", "c0", hits=[hit]))
    assert texts(bridged)[0] == ["c0", "c2", "c6"]
    assert (bridged.hits[1].score, bridged.hits[1].chunk_ids) == (0.9, ())


def test_more_mentions_first_then_as_found(tmp_path):
    facts = [("Ada", "met", "Bob", "b"), ("Ada", "met", "Cid", "b"), ("Ada", "saw", "Dan", "c")]
    facts += [("Ada", "saw", "Eve", "a")]
    chunks = {name: Chunk(name, name, f"Text {name}.") for name in "abc"}
    index = build_index(
        chunks.values(),
        [proposition(tuple(fields), name) for *fields, name in facts],
        HashingEncoder(64),
        tmp_path / "index",
    )
    evidence = Evidence(tuple(ScoredChunk(chunks[name], 0.5) for name in "cab"))
    found = walked(index, evidence, ["Where is Ada?"])
    assert [one.chunk.id for one in found.chunks] == ["b", "c", "a"]


def test_a_reader_that_is_shown_no_relations_is_given_none(chain):
    shown = ShownTokens(WordCounter(1.0), ("notes", "chunks"))
    found = walked(chain, evidence_of("c1", "c0", notes=[NOTE]), shown=shown, max_tokens=6)
    assert texts(found) == (["c0"], [])  # headings 2, c0 3; c1 needs 4
    hit = Hit(proposition(CHAIN[0][1], "c0"), 0.9, ("c0",))
    found = walked(chain, evidence_of("c1", "c0", hits=[hit]), shown=shown, max_tokens=1)
    assert found.hits == (Hit(hit.proposition, 0.9, ()),) and found.chunks == ()


@pytest.mark.parametrize("question", [["Who?"], [""], [], ["Where is Qatar?"]])
def test_a_question_that_names_nothing_truncates(chain, question):
    evidence = evidence_of("c6", "c1", "c0")
    assert walked(chain, evidence, question) == evidence
    # Heading 1, c6 3, and of c1 its number and two words.
    found = walked(chain, evidence, question, max_tokens=7)
    assert [one.chunk.text for one in found.chunks] == ["It purrs.", "He taught"]


def reference(facts, named, order, max_hops):
    """Chunks in the order of the walk, from the description alone: dictionaries and a queue.

    `facts` are (chunk, subject, object), `order` the chunks as found.
    """
    own = [fact for fact in facts if fact[0] in order]
    hop = {name: 0 for name in named if any(name in fact[1:] for fact in own)}
    queue = deque(hop)
    while queue:
        here = queue.popleft()
        for _, one, other in own:
            if here in (one, other) and hop[here] < max_hops:
                for end in (one, other):
                    if end not in hop:
                        hop[end] = hop[here] + 1
                        queue.append(end)
    if not hop:
        return list(order)
    mentioned = {c: {end for fact in own if fact[0] == c for end in fact[1:]} for c in order}
    near = [c for c in order if mentioned[c] & set(hop)]
    added = {end for c in near for end in mentioned[c] if end not in hop}
    hop |= dict.fromkeys(added, max(hop.values()) + 1)

    def key(chunk):
        found = [hop[end] for end in mentioned[chunk] if end in hop]
        return (0, min(found), -len(found)) if found else (1, 0, 0)

    return sorted(order, key=key)


NAMES = [f"name{letter}" for letter in "abcdefgh"]
CHUNK_NAMES = [f"c{number}" for number in range(6)]
FACTS = st.lists(
    st.tuples(st.sampled_from(CHUNK_NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    max_size=12,
    unique=True,
)


@given(
    FACTS,
    st.lists(st.tuples(st.sets(st.sampled_from(NAMES)), st.permutations(CHUNK_NAMES)), max_size=3),
    st.integers(0, 3),
    st.integers(1, 2),
)
@settings(max_examples=30)
def test_the_order_is_that_of_the_walk_in_plain_python(tmp_path_factory, facts, asked, hops, tile):
    chunks = {name: Chunk(name, name, "Nothing.") for name in CHUNK_NAMES}
    made = [proposition((one, "with", other), chunk) for chunk, one, other in facts]
    folder = tmp_path_factory.mktemp("drawn") / "index"
    index = build_index(chunks.values(), made, HashingEncoder(8), folder, embeds_chunks=False)
    groups = [[" ".join(sorted(named))] for named, _ in asked]
    orders = [order[:4] for _, order in asked]
    evidences = [
        Evidence(tuple(ScoredChunk(chunks[name], 0.0) for name in order)) for order in orders
    ]
    compressor = GraphWalkCompressor(index, ONE_A_WORD, max_hops=hops, tile=tile)
    found = compressor.compress(groups, evidences)
    for evidence, (named, _), order in zip(found, asked, orders, strict=True):
        expected = reference(facts, sorted(named), order, hops)
        assert [one.chunk.id for one in evidence.chunks] == expected


@given(ASKED, st.integers(-2, 60), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_budget_holds(index, asked, max_tokens, within):
    shown = ShownTokens(COUNTER)
    compressor = GraphWalkCompressor(index, shown, max_tokens, within_evidence=within)
    check(compressor, asked, max_tokens)


def test_the_smallest(build, tmp_path):
    nothing = GraphWalkCompressor(build(), ONE_A_WORD)
    assert nothing.compress([], []) == []
    assert nothing.compress([["Ada"], []], [Evidence(), Evidence()]) == [Evidence()] * 2
    index = build_index([CHUNKS["c0"]], [], HashingEncoder(8), tmp_path / "no-triplets")
    evidence = evidence_of("c0", notes=[NOTE])
    assert walked(index, evidence) == evidence
    # Chunks that the index does not know are found by their words alone.
    one = GraphWalkCompressor(build("ada"), ONE_A_WORD, within_evidence=False)
    assert one.compress([["Ada"]], [evidence_of("c5", "c6")]) == [evidence_of("c5", "c6")]
