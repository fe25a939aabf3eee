import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.models.trained_router import TrainedRouteReader
from triax.records.files import write_jsonl
from triax.records.routes import RouterExample
from triax.tracking.composite import CompositeTracker
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.tasks.route import RouteTask

NAMES = ["ann", "bob", "cid", "dan", "eva", "fay"]
WORDS = ["who", "is", "the", "mother", "of", "?", *NAMES]


def example(number, needs_graph, is_both=False):
    name = NAMES[number % len(NAMES)]
    text = f"who is the mother of {name} ?" if needs_graph else f"who is {name} ?"
    return RouterExample(
        f"q{number}", text, "", not needs_graph, needs_graph or is_both, None, None, 1
    )


@pytest.fixture
def labels(tmp_path):
    rows = [example(n, n % 4 == 0, n % 4 == 1) for n in range(40)]
    for part, found in (("train", rows), ("validation", rows[:12])):
        write_jsonl(tmp_path / f"{part}.jsonl", [one.to_json() for one in found])
    return tmp_path


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(WORDS, width=32, layers=1, inner=48)


def task(labels, base, **more):
    return RouteTask(
        str(labels), str(base), rank=4, batch_size=16, max_length=16, buckets=(16,), **more
    )


def test_targets_are_both_sides(labels, base):
    batch = task(labels, base).batch(0, 0)
    assert batch["ids"].shape == (16, 16) and batch["targets"].shape == (16, 2)
    for ids, (vanilla, graph) in zip(batch["ids"], batch["targets"]):
        asks_for_mother = (ids > 0).sum() > 7
        assert vanilla == (not asks_for_mother)
        assert graph or not asks_for_mother


def test_rare_labels_are_drawn_more(labels, base):
    """10 of 40 need the graph; 1/10 against 1/30 or, for what is not both, 1/20: see the code."""
    balanced, plain = task(labels, base), task(labels, base, balanced=False)
    drawn = [
        np.mean([1 - one.batch(step, 0)["targets"][:, 0].mean() for step in range(60)])
        for one in (balanced, plain)
    ]
    # Weights: graph-only 10 x 1/10; both 10 x 1/20; vanilla-only 20 x 1/20.
    assert drawn[0] == pytest.approx(1 / 2.5, abs=0.04)
    assert drawn[1] == pytest.approx(0.25, abs=0.04)


def test_batches_are_a_function_of_seed_and_step(labels, base):
    one, two = task(labels, base), task(labels, base)
    assert all(
        np.array_equal(one.batch(3, 1)[name], two.batch(3, 1)[name]) for name in one.batch(3, 1)
    )
    assert not np.array_equal(one.batch(3, 1)["ids"], one.batch(4, 1)["ids"])


def test_the_loss_is_the_focal_loss_by_hand(labels, base):
    """alpha_t (1 - p_t)^gamma (-log p_t), the mean of both sides (Lin et al. 2017, equation 5)."""
    one = task(labels, base, gamma=2.0, alpha=0.25, rate=0.0)
    model = one.build(0)
    model.encoder.eval()
    batch = {name: jnp.asarray(value) for name, value in one.batch(0, 0).items()}
    # A key switches the encoder's dropout on, so the same logits are had with the same key.
    key = jax.random.key(0)
    found = one.loss(model, batch, key)
    logits = np.asarray(model(batch["ids"], batch["mask"], key), np.float64)
    targets = np.asarray(batch["targets"])
    p = 1 / (1 + np.exp(-logits))
    p_true = np.where(targets == 1, p, 1 - p)
    alpha = np.where(targets == 1, 0.25, 0.75)
    wanted = (alpha * (1 - p_true) ** 2 * -np.log(p_true)).mean(1).sum()
    assert float(found.total) == pytest.approx(wanted, rel=1e-5)
    assert float(found.weight) == 16


def test_it_learns_saves_and_is_used(labels, base, tmp_path):
    one = task(labels, base, rate=0.0)
    optimizer = lambda steps: adamw_linear(steps, learning_rate=1e-2)  # noqa: E731
    result = fit(one, optimizer, tmp_path / "run", CompositeTracker(()), Schedule(60, 60, 60))
    assert result.metrics["f1"] == 1.0
    config = json.loads((result.folder / "config.json").read_text("utf-8"))
    assert config["threshold"] == result.metrics["threshold"]
    reader = TrainedRouteReader(str(result.folder))
    found = reader.read(["who is the mother of eva ?", "who is eva ?"])
    assert found[0, 1] - found[0, 0] > config["threshold"] >= found[1, 1] - found[1, 0]


def test_missing_and_useless_labels(labels, base, tmp_path):
    with pytest.raises(FileNotFoundError, match="label_router"):
        task(tmp_path / "none", base).batch(0, 0)
    rows = [example(n, False) for n in range(8)]
    write_jsonl(labels / "train.jsonl", [one.to_json() for one in rows])
    with pytest.raises(ValueError, match="nothing to learn"):
        task(labels, base).batch(0, 0)


def test_the_card_says_what_the_labels_are_of(labels, base):
    made = {"ranks": ["runs/ranks/one-train", "runs/ranks/two-train"], "cut": 5}
    (labels / "config.json").write_text(json.dumps(made), "utf-8")
    told = task(labels, base).describe()
    assert (told["labels_of"], told["labels_cut"]) == ("one-train, two-train", 5)
    # 10 need the graph, 10 are served by both, 20 by vanilla retrieval only: see the fixture.
    (counts,) = told["datasets"].values()
    assert counts == {"examples": 40, "graph_only": 10, "vanilla_only": 20, "both": 10}


def test_the_labels_are_known_by_their_hash(labels, base):
    (first,) = task(labels, base).describe()["inputs"].values()
    rows = (labels / "validation.jsonl").read_text("utf-8")
    (labels / "validation.jsonl").write_text(rows + rows)
    (second,) = task(labels, base).describe()["inputs"].values()
    assert len(first) == 64 and first != second
