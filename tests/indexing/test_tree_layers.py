import json

import numpy as np
import pytest

from triax.indexing.hashing import HashingEncoder
from triax.indexing.mixtures import Mixing
from triax.indexing.summaries import ExtractiveSummarizer, Member, PromptedSummarizer
from triax.indexing.tree_layers import Grower, Growth, Layer, SummaryError
from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter

COUNTER = WordCounter(1.0)
ENCODER = HashingEncoder(32)
THEMES = ["the red fox runs", "a blue whale swims", "old ships carry salt", "new stars burn gas"]
TEXTS = [f"{THEMES[n % 4]} near place{n} in year{n // 2}." for n in range(36)]
MIXING = Mixing("pca", 3, max_clusters=5)


def layer_of(texts):
    return Layer(
        tuple(f"c{n:02}" for n in range(len(texts))),
        tuple(map(Member, texts)),
        np.array(COUNTER.count(texts), np.int64),
        ENCODER.encode(texts),
    )


def grow(folder, texts=TEXTS, summarizer=None, growth=None, batch_size=64, max_failed=0.05):
    """The cost, and of each layer the children and the texts of its summaries, by id."""
    summarizer = summarizer or ExtractiveSummarizer(COUNTER, 12)
    growth = growth or Growth(max_cluster_tokens=40, mixing=MIXING)
    grower = Grower(ENCODER, summarizer, COUNTER, growth, batch_size, max_failed, folder)
    cost = grower.grow(layer_of(texts))
    layers = []
    while (place := folder / f"layer-{len(layers) + 1}").exists():
        lines = (place / "summaries.jsonl").read_text("utf-8").splitlines()
        rows = {row["id"]: row for row in map(json.loads, lines)}
        layers.append((json.loads((place / "clusters.json").read_text("utf-8")), rows))
        np.testing.assert_array_equal(
            np.load(place / "vectors.npy"),
            ENCODER.encode([rows[key]["text"] for key in layers[-1][0]]),
        )
        assert len(list(place.iterdir())) == 3  # no shards are left
    return cost, layers


def said(request):
    """The last words that are shown: not the same for all, and few."""
    return " ".join(request.messages[-1].content.split()[-9:])


@pytest.mark.parametrize("num_nodes", [0, 1, 2, 10, 11, 12])
def test_r13_a_tree_begins_with_more_than_eleven_nodes(num_nodes, tmp_path):
    _, layers = grow(tmp_path, TEXTS[:num_nodes], growth=Growth(mixing=Mixing("pca")))
    assert len(layers) == (num_nodes > 11)


def test_r13_equal_nodes_are_one_cluster_or_halves_of_it(tmp_path):
    texts = ["ten words " * 5] * 16
    _, ((clusters, rows),) = grow(tmp_path / "a", texts, growth=Growth(mixing=Mixing("pca")))
    (root,) = clusters
    assert len(clusters[root]) == 16 and rows[root]["text"].startswith("ten words")
    # Four times ten words are what 40 has room for.
    _, layers = grow(tmp_path / "b", texts)
    assert [len(children) for children in layers[0][0].values()] == [4] * 4


def test_r13_texts_that_fit_with_no_other_end_the_tree(tmp_path):
    assert grow(tmp_path, growth=Growth(max_cluster_tokens=5, mixing=MIXING))[1] == []


def test_no_more_layers_than_asked(tmp_path):
    _, many = grow(tmp_path / "many")
    _, one = grow(tmp_path / "one", growth=Growth(1, 40, MIXING))
    assert len(many) > 1 and one == many[:1]
    assert grow(tmp_path / "none", growth=Growth(0, 40, MIXING))[1] == []


def test_r08_a_text_that_is_longer_than_a_cluster_is_cut(tmp_path):
    texts = [" ".join([f"w{n}"] * 90) if n == 0 else TEXTS[n] for n in range(36)]
    completer = ScriptedCompleter(said)
    _, layers = grow(tmp_path, texts, PromptedSummarizer(completer))
    assert ["c00"] in layers[0][0].values()
    shown = [request.messages[-1].content for request in completer.requests]
    assert " ".join(["w0"] * 40) in shown
    assert max(COUNTER.count(shown)) <= 40


def test_r03_a_failed_summary_is_counted_and_replaced(tmp_path):
    _, wanted = grow(tmp_path / "wanted", summarizer=ExtractiveSummarizer(COUNTER))
    num_first = len(wanted[0][0])
    asked = []

    def answer(request):
        asked.append(request)  # the second is empty, and is so when it is asked for once more
        return "" if len(asked) in (2, num_first + 1) else said(request)

    summarizer = PromptedSummarizer(ScriptedCompleter(answer))
    cost, layers = grow(tmp_path / "half", summarizer=summarizer, max_failed=0.5)
    ((key, failed),) = [(k, row) for _, rows in layers for k, row in rows.items() if row["error"]]
    assert failed["error"].startswith("unreadable:") and key in layers[0][0]
    assert failed["text"] == wanted[0][1][key]["text"]
    assert cost.calls == sum(len(clusters) for clusters, _ in layers) + 1
    with pytest.raises(SummaryError, match="1 of .* summaries failed.*max_failed=0"):
        asked.clear()
        grow(tmp_path / "none", summarizer=summarizer, max_failed=0.0)


def test_r04_r29_a_model_that_is_down_ends_it_and_the_next_call_goes_on(tmp_path):
    asked, is_down = [], [True]

    def answer(request):
        asked.append(request)
        return "__RAISE__: down" if is_down[0] and len(asked) > 1 else said(request)

    summarizer = PromptedSummarizer(ScriptedCompleter(answer))
    with pytest.raises(SummaryError, match="1 of .* summaries failed.*down.*run again"):
        grow(tmp_path, summarizer=summarizer, batch_size=1, max_failed=0.0)
    assert len(asked) == 2
    is_down[0] = False
    cost, layers = grow(tmp_path, summarizer=summarizer, batch_size=1, max_failed=0.0)
    assert not any(row["error"] for _, rows in layers for row in rows.values())
    # The first stands; the lost call is paid.
    assert len(asked) == cost.calls == sum(len(clusters) for clusters, _ in layers) + 1
