import gzip
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.models.trained_question_types import TrainedTypeReader
from triax.records.question_types import QUESTION_TYPES
from triax.tracking.composite import CompositeTracker
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.tasks.question_type import QuestionTypeTask

NAMES = ["ann", "bob", "cid", "dan", "eva", "fay", "gus", "hal", "ida", "jon"]
FORMS = {
    "compositional": "who is the mother of {} ?",
    "comparison": "is {} older ?",
    "bridge_comparison": "is the mother of {} older ?",
    "inference": "who is the uncle of {} ?",
}
WORDS = ["who", "is", "the", "mother", "uncle", "of", "older", "?", *NAMES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two data sets: one of all four types, one of two."""
    place = tmp_path_factory.mktemp("data")
    for name, kinds in (("wiki", list(FORMS)), ("hotpot", ["compositional", "comparison"])):
        (place / name).mkdir()
        rows = [
            {"id": f"{kind} {one}", "question": FORMS[kind].format(one), "type": kind}
            for kind in kinds
            for one in NAMES
        ]
        rows.append({"id": "?", "question": "who ?", "type": None})
        with gzip.open(place / name / "train.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return place


@pytest.fixture(scope="module")
def base(make_base):
    return make_base(WORDS, width=32, layers=1, inner=48)


def task(folder, base, **more):
    settings = {"datasets": ["wiki", "hotpot"], "rank": 4, "batch_tokens": 96} | more
    return QuestionTypeTask(
        str(folder), base=str(base), max_length=10, held_out=0.2, buckets=(10,), **settings
    )


def test_an_epoch_shows_every_question_once_and_none_that_is_held_back(folder, base):
    one = task(folder, base)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    seen = []
    for step in range(one.steps_per_epoch):
        batch = one.batch(step, 0)
        rows = zip(batch["ids"], batch["mask"], batch["targets"], batch["weights"], strict=True)
        for ids, mask, target, weight in rows:
            assert mask.any() == (weight == 1.0)
            if weight:
                text = " ".join(names[token] for token in ids[mask][1:-1])
                seen.append((text, QUESTION_TYPES[target]))
    named = {kind: "bridge" if kind == "compositional" else kind for kind in FORMS}
    every = [
        (FORMS[kind].format(name), named[kind])
        for kinds in (list(FORMS), ["compositional", "comparison"])
        for kind in kinds
        for name in NAMES
    ]
    held = one.describe()["held_out"]
    assert 0 < held < len(every) / 2 and len(seen) == len(every) - held
    # The two data sets share questions; each is learnt from in both or in neither.
    assert all(seen.count(pair) == every.count(pair) for pair in seen)


def test_batches_are_a_function_of_seed_and_step(folder, base):
    one, two = task(folder, base), task(folder, base)
    assert all(
        np.array_equal(one.batch(3, 1)[name], two.batch(3, 1)[name]) for name in one.batch(3, 1)
    )
    orders = [
        np.concatenate([one.batch(step, seed)["targets"] for step in (0, 1)]) for seed in (0, 1)
    ]
    assert not np.array_equal(*orders)


def test_the_loss_is_the_cross_entropy_by_hand(folder, base):
    one = task(folder, base, rate=0.0)
    model = one.build(0)
    batch = {name: jnp.asarray(value) for name, value in one.batch(0, 0).items()}
    batch["weights"] = batch["weights"].at[0].set(0.0)  # a row that does not count
    # A key switches the encoder's dropout on, so the same logits are had with the same key.
    key = jax.random.key(0)
    found = one.loss(model, batch, key)
    logits = np.asarray(model(batch["ids"], batch["mask"], key), np.float64)
    assert logits.shape[1] == 4
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    weights, targets = np.asarray(batch["weights"]), np.asarray(batch["targets"])
    rows = np.flatnonzero(weights)
    assert float(found.total) == pytest.approx(-np.log(p[rows, targets[rows]]).sum(), rel=1e-5)
    assert float(found.weight) == len(rows)
    right = (logits.argmax(axis=1) == targets)[rows].sum()
    assert float(found.metrics["accuracy"]) == right


def test_it_learns_saves_and_is_used(folder, base, tmp_path):
    one = task(folder, base, rate=0.0, batch_tokens=96)
    optimizer = lambda steps: adamw_linear(steps, learning_rate=1e-2)  # noqa: E731
    result = fit(one, optimizer, tmp_path / "run", CompositeTracker(()), Schedule(300, 300, 300))
    figures = result.metrics
    assert figures["macro_f1"] == (figures["macro_f1_wiki"] + figures["macro_f1_hotpot"]) / 2
    # Of four types, a handful of held-back questions; one of them may be told wrong.
    assert figures["macro_f1"] > 0.6
    found = TrainedTypeReader(str(result.folder)).read([f.format("ann") for f in FORMS.values()])
    assert found.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert found.sum(axis=1) == pytest.approx(np.ones(4))


def test_what_cannot_be_learnt_from_is_said(folder, base):
    with pytest.raises(FileNotFoundError, match="train.jsonl.gz"):
        task(folder, base, datasets=["none"]).batch(0, 0)
    with pytest.raises(ValueError, match="too small"):
        task(folder, base, limit=1).batch(0, 0)


def test_the_card_says_what_was_learnt_from(folder, base):
    told = task(folder, base).describe()
    assert set(told["datasets"]) == {"wiki", "hotpot"}
    learnt = sum(one["examples"] for one in told["datasets"].values())
    assert learnt + told["held_out"] == 60
    assert told["figure_counts"] == {"accuracy": told["held_out"]}
    assert all(len(digest) == 64 for digest in told["inputs"].values())
    assert told["inputs"]["questions-wiki"] != told["inputs"]["questions-hotpot"]
    counts = [int(part.split()[1]) for part in told["types"].split(", ")]
    assert sum(counts) == learnt
