import numpy as np
import pytest

from triax.indexing import synonyms as module
from triax.indexing.synonyms import SynonymRule, find_synonyms, update_synonyms


def names(count):
    return [f"name {number:03}" for number in range(count)]


def draw(count, seed=0, dimension=6):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(phrases, vectors, rule):
    """Every pair, in float64, by the words of the definition."""
    cosines = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    pairs = {}
    for row, phrase in enumerate(phrases):
        letters = "".join(filter(str.isalnum, phrase)).encode()
        if len(letters) < rule.min_bytes:
            continue
        near = [o for o in range(len(phrases)) if o != row and cosines[row, o] >= rule.threshold]
        near.sort(key=lambda other: (-cosines[row, other], other))
        pairs |= {(row, other): cosines[row, other] for other in near[: rule.max_neighbours]}
    return pairs


def pairs_of(found):
    rows = zip(found.sources.tolist(), found.targets.tolist())
    return dict(zip(rows, found.cosines.tolist(), strict=True))


@pytest.mark.parametrize("rule", [SynonymRule(0.7), SynonymRule(0.5, 3)])
def test_r11_blocks_find_what_brute_force_finds(rule, monkeypatch):
    phrases, vectors = names(150), draw(150)
    expected = brute_force(phrases, vectors, rule)
    assert len(expected) > 150
    assert pairs_of(find_synonyms(phrases, vectors, rule)) == pytest.approx(expected, abs=1e-6)
    # The same in several blocks and tiles.
    everything = np.arange(150)
    parts = module._nearest(phrases, vectors, everything, everything, rule, block=64, tile=64)
    rows = zip(parts[0].tolist(), parts[1].tolist())
    assert dict(zip(rows, parts[2].tolist())) == pytest.approx(expected, abs=1e-6)


def test_short_vectors_bound_every_cosine():
    vectors = draw(200, dimension=40)
    short = module._bounding(vectors)
    assert short.shape == (200, 11)
    cosines = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    bounds = short.astype(np.float64) @ short.astype(np.float64).T
    assert (bounds >= cosines - 1e-6).all() and (bounds < 0.99).any()


def test_pairs_by_hand():
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [1, 0]], np.float32)
    found = find_synonyms(["a b c", "d e f", "g h i", "j k l"], vectors, SynonymRule(0.8))
    # 0 - 1: 0.8 (as float32, 0.800000012), 0 - 3: 1, 1 - 3: 0.8; 1 - 2 is 0.6.
    assert pairs_of(found) == pytest.approx(
        {(0, 1): 0.8, (0, 3): 1, (1, 0): 0.8, (1, 3): 0.8, (3, 0): 1, (3, 1): 0.8}
    )
    one = find_synonyms(["a b c", "d e f", "g h i", "j k l"], vectors, SynonymRule(0.8, 1))
    assert sorted(pairs_of(one)) == [(0, 3), (1, 0), (3, 0)]


def test_r07_short_names_of_dense_scripts_count():
    vectors = np.ones((4, 1), np.float32)
    found = find_synonyms(["c++", "us", "он", "北京"], vectors, SynonymRule(0.8))
    assert sorted({int(row) for row in found.sources}) == [2, 3]


def test_r10_updates_equal_a_search_over_everything():
    phrases, vectors = names(120), draw(120)
    random = np.random.default_rng(1)
    for rule in (SynonymRule(0.6), SynonymRule(0.3, 4)):
        before = np.sort(random.choice(120, 80, False))
        after = np.sort(random.choice(120, 90, False))
        known = find_synonyms([phrases[row] for row in before], vectors[before], rule)
        asked = []

        def embed(texts, asked=asked):
            asked += texts
            return vectors[[phrases.index(text) for text in texts]]

        found = update_synonyms(known, [phrases[row] for row in after], embed)
        whole = find_synonyms([phrases[row] for row in after], vectors[after], rule)
        assert pairs_of(found) == pairs_of(whole) and len(whole.sources) > 100
        assert (found.vectors == whole.vectors).all()
        assert asked == [phrases[row] for row in after if row not in before]


def test_r10_equal_vectors_and_a_full_list():
    """All are as near as can be: the cap takes the first phrases, and gaps are filled again."""
    phrases, vectors = names(9), np.tile(draw(1), (9, 1))
    rule = SynonymRule(0.8, 2)
    whole = find_synonyms(phrases, vectors, rule)
    assert [int(target) for target in whole.targets[:4]] == [1, 2, 0, 2]
    left = update_synonyms(whole, phrases[1:], lambda texts: vectors[:0])
    assert pairs_of(left) == pairs_of(find_synonyms(phrases[1:], vectors[1:], rule))
    again = update_synonyms(left, phrases, lambda texts: vectors[: len(texts)])
    assert pairs_of(again) == pairs_of(whole)


def test_r09_none_and_one():
    for count in (0, 1):
        found = find_synonyms(names(count), draw(count))
        assert found.sources.shape == found.cosines.shape == (0,)
        grown = update_synonyms(found, names(2), lambda texts: np.ones((len(texts), 6), "f"))
        assert grown.vectors.shape == (2, 6)
    gone = update_synonyms(find_synonyms(names(3), draw(3)), [], lambda texts: draw(0))
    assert gone.phrases == () and len(gone.sources) == 0
