import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.indexing.hashing import HashingEncoder
from triax.indexing.mixtures import Mixing
from triax.indexing.summaries import ExtractiveSummarizer
from triax.indexing.tables import TripletTables
from triax.indexing.tree import Summary, SummaryTree, open_tree
from triax.indexing.tree_layers import Growth
from triax.indexing.updates import build_index
from triax.models.token_counter import WordCounter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence
from triax.records.verbs import Retriever
from triax.retrieval.raptor import Raptor, Selection, open_raptor

COUNTER = WordCounter(1.0)
ENCODER = HashingEncoder(64)
# Six chunks of two words; four summaries of three words, one chunk (c3) below two of them; a top of
# two of four words.
CHUNKS = [Chunk(f"c{n}", f"c{n}", f"chunk {n}") for n in range(6)]
TABLES = TripletTables.of(CHUNKS, [])


def node(name, layer, children, chunk_ids, words):
    text = " ".join([name, *["word"] * (words - 1)])
    return Summary(name, layer, text, tuple(children), tuple(chunk_ids))


SUMMARIES = (
    node("s0", 1, ["c0", "c1"], ["c0", "c1"], 3),
    node("s1", 1, ["c2", "c3"], ["c2", "c3"], 3),
    node("s2", 1, ["c3", "c4"], ["c3", "c4"], 3),
    node("s3", 1, ["c5"], ["c5"], 3),
    node("t0", 2, ["s0", "s1"], ["c0", "c1", "c2", "c3"], 4),
    node("t1", 2, ["s2", "s3"], ["c3", "c4", "c5"], 4),
)
TREE = SummaryTree(SUMMARIES, np.zeros((6, 1), np.float32))


class Given:
    """Scores of nodes by hand; an empty group has none."""

    def __init__(self, scores):
        self.row = np.array(scores, np.float32)

    def scores(self, groups):
        rows = [self.row if group else 0 * self.row for group in groups]
        return np.array(rows, np.float32).reshape(len(groups), len(self.row))


def search(scores, num_chunks=10, tree=TREE, **selection):
    retriever = Raptor(TABLES, tree, Given(scores), COUNTER, Selection(**selection))
    (found,) = retriever.search([["q"]], num_chunks)
    return found


def ids(found):
    return [one.chunk.id for one in found.chunks], [one.note.id for one in found.notes]


#          c0  c1  c2  c3  c4  c5  s0  s1  s2  s3  t0  t1
SCORES = [0.10, 0.20, 0.70, 0.30, 0.40, 0.15, 0.05, 0.60, 0.50, 0.35, 0.80, 0.25]


def test_the_collapsed_tree_takes_the_best_of_all_layers():
    found = search(SCORES, num_nodes=4, adds_leaves=False)
    # t0 .8, c2 .7, s1 .6, s2 .5
    assert ids(found) == (["c2"], ["summary:t0", "summary:s1", "summary:s2"])
    assert [one.score for one in found.notes] == pytest.approx([0.8, 0.6, 0.5])
    assert found.notes[0].note.chunk_ids == ("c0", "c1", "c2", "c3")
    assert found.notes[0].note.text == "t0 word word word"


def test_chunks_below_found_summaries_follow_by_their_own_scores():
    found = search(SCORES, num_nodes=4)
    # Below t0, s1, s2 and not found: c4 .4, c3 .3, c1 .2, c0 .1; c5 is below none of them.
    assert ids(found)[0] == ["c2", "c4", "c3", "c1", "c0"]
    assert [one.score for one in found.chunks] == pytest.approx([0.7, 0.4, 0.3, 0.2, 0.1])
    assert ids(search(SCORES, 3, num_nodes=4))[0] == ["c2", "c4", "c3"]
    assert ids(search(SCORES, 0, num_nodes=4)) == ([], ids(found)[1])


def test_r08_the_first_that_does_not_fit_ends_it():
    # 4 + 2 + 3 + 3 tokens; what is left goes to chunks of 2.
    wanted = {
        3: ([], []),
        4: ([], ["t0"]),
        6: (["c2"], ["t0"]),
        8: (["c2", "c3"], ["t0"]),  # below t0 alone
        9: (["c2"], ["t0", "s1"]),
        12: (["c2"], ["t0", "s1", "s2"]),
        14: (["c2", "c4"], ["t0", "s1", "s2"]),
    }
    for max_tokens, (chunks, notes) in wanted.items():
        found = search(SCORES, num_nodes=4, max_tokens=max_tokens)
        assert ids(found) == (chunks, [f"summary:{name}" for name in notes]), max_tokens


def test_the_traversal_goes_down_from_the_best_of_each_layer():
    traversed = dict(mode="traversal", adds_leaves=False)
    # Top: t0 .8. Its children: s1 .6 over s0. Its children: c2 .7 over c3.
    assert ids(search(SCORES, num_nodes_per_layer=1, **traversed)) == (
        ["c2"],
        ["summary:t0", "summary:s1"],
    )
    # Both tops; s1 .6, s2 .5 of four; c2 .7, c4 .4 of c2, c3, c4.
    assert ids(search(SCORES, num_nodes_per_layer=2, **traversed)) == (
        ["c2", "c4"],
        ["summary:t0", "summary:s1", "summary:s2", "summary:t1"],
    )
    # All nodes where five a layer are enough: c1 is the sixth chunk but one.
    assert ids(search(SCORES, num_nodes_per_layer=5, **traversed))[0] == [
        "c2",
        "c4",
        "c3",
        "c1",
        "c5",
    ]
    # The budget is filled from the top: 4 + 3, then 2.
    assert ids(search(SCORES, num_nodes_per_layer=1, max_tokens=8, **traversed)) == (
        [],
        ["summary:t0", "summary:s1"],
    )


def test_r09_equal_scores_no_summaries_and_nothing_at_all():
    assert ids(search([0.5] * 12, 10, num_nodes=7)) == (
        ["c0", "c1", "c2", "c3", "c4", "c5"],
        ["summary:s0"],
    )
    flat = SummaryTree((), np.zeros((0, 1), np.float32))
    for mode, wanted in (("collapsed", 6), ("traversal", 5)):
        found = search(SCORES[:6], tree=flat, mode=mode)
        assert ids(found) == (["c2", "c4", "c3", "c1", "c5", "c0"][:wanted], [])
        bare = Raptor(TripletTables.of([], []), flat, Given([]), COUNTER, Selection(mode))
        assert bare.search([["q"], []], 3) == [Evidence(), Evidence()]
    retriever = Raptor(TABLES, TREE, Given(SCORES), COUNTER)
    assert retriever.search([[], ["q"]], 1)[0] == Evidence()
    assert retriever.search([], 1) == []


scores = st.lists(st.integers(-3, 3).map(lambda n: n / 4), min_size=12, max_size=12)


@given(
    scores, st.integers(0, 8), st.integers(0, 30), st.booleans(),
    st.sampled_from(["collapsed", "traversal"]),
)  # fmt: skip
def test_evidence_keeps_its_bounds_and_its_order(row, num_chunks, max_tokens, adds, mode):
    found = search(row, num_chunks, max_tokens=max_tokens, adds_leaves=adds, mode=mode)
    texts = [one.chunk.passage for one in found.chunks] + [one.note.text for one in found.notes]
    assert sum(COUNTER.count(texts)) <= max_tokens
    chunks, notes = ids(found)
    assert len(chunks) == len(set(chunks)) <= num_chunks and len(notes) == len(set(notes))
    note_scores = [one.score for one in found.notes]
    assert note_scores == sorted(note_scores, reverse=True)


TEXTS = ["red fox runs fast", "blue whale swims deep", "old ship carries salt"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    chunks = [Chunk(f"c{n:02}", f"c{n:02}", f"{TEXTS[n % 3]} place{n}.") for n in range(24)]
    folder = tmp_path_factory.mktemp("raptor") / "index"
    return build_index(chunks, [], ENCODER, folder, extractor="t")


def grown(index):
    growth = Growth(max_cluster_tokens=60, mixing=Mixing("pca", 3, max_clusters=6))
    return open_tree(index, ENCODER, ExtractiveSummarizer(COUNTER, 20), COUNTER, growth)


def test_over_an_index_scores_are_cosines_and_questions_come_in_groups(index):
    tree = grown(index)
    assert tree.summaries
    retriever = open_raptor(index, ENCODER, tree, COUNTER, num_nodes=3, adds_leaves=False)
    assert isinstance(retriever, Retriever) and retriever.reads_triplets is False
    groups = [["the blue whale"], ["the blue whale", "old salt"], []]
    evidences = retriever.search(groups, 5)
    texts = [chunk.passage for chunk in index.tables.all_chunks()]
    texts += [one.text for one in tree.summaries]
    nodes = ENCODER.encode(texts)
    for group, found in zip(groups[:2], evidences):
        wanted = np.sort((ENCODER.encode(group) @ nodes.T).max(axis=0))[::-1][:3]
        scored = [one.score for one in (*found.chunks, *found.notes)]
        np.testing.assert_allclose(np.sort(scored)[::-1], wanted, rtol=1e-5)
    assert evidences[2] == Evidence()
    assert retriever.search(groups, 5) == evidences


def test_what_it_cannot_stand_on_is_refused(index, tmp_path):
    tree = grown(index)
    with pytest.raises(ValueError, match="made from something else"):
        open_raptor(index, HashingEncoder(8), tree, COUNTER)
    chunks = [Chunk("a", "a", "text")]
    bare = build_index(chunks, [], ENCODER, tmp_path / "i", extractor="t", embeds_chunks=False)
    with pytest.raises(ValueError, match="embeds_chunks=True"):
        open_raptor(bare, ENCODER, tree, COUNTER)
    with pytest.raises(ValueError, match="mode is 'flat'"):
        open_raptor(index, ENCODER, tree, COUNTER, mode="flat")
