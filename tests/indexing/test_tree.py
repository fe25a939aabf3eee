import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.mixtures import Mixing
from triax.indexing.summaries import ExtractiveSummarizer, PromptedSummarizer
from triax.indexing.tree import open_tree
from triax.indexing.tree_layers import Growth
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter
from triax.pipelines.assembly import Indexed
from triax.records.documents import Chunk

COUNTER = WordCounter(1.0)
ENCODER = HashingEncoder(32)
GROWTH = Growth(max_cluster_tokens=40, mixing=Mixing("pca", 3, max_clusters=5))
THEMES = ["the red fox runs", "a blue whale swims", "old ships carry salt", "new stars burn gas"]


def texts(num):
    return [f"{THEMES[n % 4]} near place{n} in year{n // 2}." for n in range(num)]


def make_index(folder, given=None, shuffled=None, **options):
    given = texts(36) if given is None else given
    chunks = [Chunk(f"c{n:02}", f"c{n:02}", text) for n, text in enumerate(given)]
    if shuffled is not None:
        random.Random(shuffled).shuffle(chunks)
    return build_index(chunks, propositions([]), ENCODER, folder, extractor="t", **options)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_index(tmp_path_factory.mktemp("tree") / "index")


def opened(index, summarizer=None, growth=GROWTH, **options):
    summarizer = summarizer or ExtractiveSummarizer(COUNTER, 12)
    return open_tree(index, ENCODER, summarizer, COUNTER, growth, **options)


def test_every_chunk_is_below_the_widest_layer_and_clusters_keep_their_bound(index):
    tree = opened(index)
    assert isinstance(tree, Indexed) and tree.index_cost.calls == 0
    layers = sorted({one.layer for one in tree.summaries})
    assert layers == list(range(1, len(layers) + 1)) and len(layers) >= 2
    chunks = {f"c{n:02}": text for n, text in enumerate(texts(36))}
    below = {key: (text, {key}) for key, text in chunks.items()}
    for number in layers:
        layer = [one for one in tree.summaries if one.layer == number]
        assert len(layer) < len(below)
        assert {child for one in layer for child in one.children} == set(below)
        for one in layer:
            sizes = COUNTER.count([below[child][0] for child in one.children])
            assert len(sizes) == 1 or sum(sizes) <= 40
            assert one.chunk_ids == tuple(sorted(set().union(*(below[c][1] for c in one.children))))
            assert COUNTER.count([one.text])[0] <= 12 and one.error == ""
        below = {one.id: (one.text, set(one.chunk_ids)) for one in layer}
    assert set().union(*(ids for _, ids in below.values())) == set(chunks)
    # The last layer is small, or not to be made smaller.
    assert len(below) <= 4 or len(layers) == 5
    vectors = ENCODER.encode([one.text for one in tree.summaries])
    np.testing.assert_array_equal(tree.vectors, vectors)


def test_r18_neither_a_second_build_nor_the_order_of_chunks_changes_it(index, tmp_path):
    tree = opened(index)
    for shuffled in (None, 1):
        other = opened(make_index(tmp_path / f"index{shuffled}", shuffled=shuffled))
        assert other.summaries == tree.summaries
        assert other.vectors.tobytes() == tree.vectors.tobytes()


CHILD = """
import os, signal, sys
from indexing.test_tree import make_index, opened, said
from triax.indexing.summaries import PromptedSummarizer
from triax.llm.scripted import ScriptedCompleter

def answer(request):
    with open(sys.argv[2], "a") as stream:
        stream.write("x")
    if os.path.getsize(sys.argv[2]) > int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return said(request)

opened(make_index(sys.argv[1]), PromptedSummarizer(ScriptedCompleter(answer)), batch_size=1)
"""


def said(request):
    """The last words of each text that is shown: not the same for all, of few words."""
    return " ".join(request.messages[-1].content.split()[-9:])


def test_r04_a_killed_build_goes_on_and_repeats_no_finished_call(tmp_path):
    whole = ScriptedCompleter(said)
    wanted = opened(make_index(tmp_path / "whole"), PromptedSummarizer(whole), batch_size=1)
    num_first = sum(one.layer == 1 for one in wanted.summaries)
    assert 2 <= num_first < len(wanted.summaries) - 1
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths}
    log, broken = tmp_path / "log", tmp_path / "broken"
    # In the second layer, whose second call is the one that is lost.
    command = [sys.executable, "-c", CHILD, str(broken), str(log), str(num_first + 1)]
    child = subprocess.run(command, env=environment)
    assert child.returncode == -signal.SIGKILL
    completer = ScriptedCompleter(said)
    found = opened(make_index(broken), PromptedSummarizer(completer), batch_size=1)
    assert found.summaries == wanted.summaries and found.index_cost == wanted.index_cost
    assert found.vectors.tobytes() == wanted.vectors.tobytes()
    assert num_first + 1 + len(completer.requests) == len(whole.requests)
    # Once finished, it is read.
    assert opened(make_index(broken), PromptedSummarizer(completer)).summaries == wanted.summaries
    assert num_first + 1 + len(completer.requests) == len(whole.requests)


def test_r28_summarizer_counter_and_growth_decide_the_folder(index):
    opened(index)
    place = index.folder.with_name(f"{index.folder.name}.tree")
    before = {path.name for path in place.iterdir() if path.is_dir()}
    opened(index)
    assert {path.name for path in place.iterdir() if path.is_dir()} == before
    opened(index, ExtractiveSummarizer(COUNTER, 11))
    opened(index, growth=Growth(4, 40, GROWTH.mixing))
    opened(index, growth=Growth(5, 40, Mixing("pca", 3, 0.2, 5)))
    open_tree(index, ENCODER, ExtractiveSummarizer(COUNTER, 12), WordCounter(1.1), GROWTH)
    assert len({path.name for path in place.iterdir() if path.is_dir()} - before) == 4


def test_an_index_that_it_cannot_stand_on_is_refused(tmp_path, index):
    bare = make_index(tmp_path / "index", embeds_chunks=False)
    with pytest.raises(ValueError, match="no chunk vectors.*embeds_chunks=True"):
        opened(bare)
    with pytest.raises(ValueError, match="made from something else"):
        open_tree(index, HashingEncoder(8), ExtractiveSummarizer(COUNTER), COUNTER, GROWTH)
