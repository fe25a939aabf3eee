import gzip
import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from triax.models.span_reader import MAX_SPAN, NOT_HERE
from triax.models.trained_reader import TrainedReader
from triax.records.files import read_jsonl, write_jsonl
from triax.records.readings import ReadRequest
from triax.tracking.composite import CompositeTracker
from triax.training.lessons.slots import read_slots
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.tasks.resolve import ResolveTask

PEOPLE = ["Ann", "Bob", "Cid", "Dan", "Eva", "Fay", "Gus", "Hal"]
TOWNS = ["Rome", "Oslo", "Bonn", "Lima", "Cork", "Bern", "Baku", "Nice"]
WORDS = ["|", "?", ".", "was", "born", "in", *PEOPLE, *TOWNS]
SHOWN = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]


@pytest.fixture(scope="module")
def base(make_base):
    """A random encoder over whole words."""
    return make_base(WORDS, width=32, layers=2, inner=48)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """MuSiQue rows: who was born where; every question has the other passages beside it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "musique").mkdir()
    passages = [
        {"title": who, "text": f"{who} was born in {where}"} for who, where in zip(PEOPLE, TOWNS)
    ]
    rows = [
        {
            "id": f"q{n}",
            "paragraphs": passages,
            "decomposition": [{"question": f"{who} >> born in", "answer": where, "support_idx": n}],
        }
        for n, (who, where) in enumerate(zip(PEOPLE, TOWNS))
    ]
    with gzip.open(folder / "musique" / "train.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    with gzip.open(folder / "musique" / "corpus.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in passages)
    return folder


@pytest.fixture
def task(base, data):
    return ResolveTask(
        folder=str(data),
        sources={"musique": 4},
        base=str(base),
        rank=8,
        max_length=24,
        batch_tokens=24 * 8,
        buckets=(24,),
        validated=("musique",),
        held_out=0.3,
    )


def test_rows_hold_the_answer_or_say_that_it_is_not_here(task):
    batch = task.batch(0, 0)
    assert batch["ids"].shape == (8, 24) and batch["gold"].shape == (8, 3 + 24 * MAX_SPAN)
    for row in range(8):
        words = [SHOWN[n] for n in batch["ids"][row] if n]
        (choice,) = np.flatnonzero(batch["gold"][row])
        asked, told = words[1], words[words.index("[SEP]") + 1]
        if asked == told:
            assert words[(choice - 3) // MAX_SPAN] == TOWNS[PEOPLE.index(asked)]
            assert (choice - 3) % MAX_SPAN == 0  # one word
        else:
            assert choice == NOT_HERE


def test_half_of_the_lessons_bring_a_wrong_passage(base, data):
    counts = []
    for num_wrong in (0, 0.5, 1):
        task = ResolveTask(
            str(data), {"musique": 40}, str(base), 8, 24, 192, num_wrong, buckets=(24,)
        )
        answered = sum(bool(row.spans) for row in task._rows)
        counts.append((len(task._rows) - answered) / answered)
    assert counts[0] == 0 and counts[2] == 1
    assert 0.4 < counts[1] < 0.6


def test_lessons_of_other_sources_are_held_for_the_calibration_only(base, data):
    task = ResolveTask(
        str(data), {"musique": 1}, str(base), 8, 24, validated=(), held_for_calibration=0.5
    )
    learnt, held, calibrating = task._lessons
    assert learnt and not held and calibrating
    assert not {one.id for one in learnt} & {one.id for one in calibrating}
    assert task.describe()["held_for_calibration"] == len(calibrating)


def test_batches_are_a_function_of_seed_and_step(task, base, data):
    again = ResolveTask(
        str(data),
        {"musique": 4},
        str(base),
        8,
        24,
        24 * 8,
        buckets=(24,),
        validated=("musique",),
        held_out=0.3,
    )
    for step in (0, task.steps_per_epoch + 1):
        one, two = task.batch(step, 5), again.batch(step, 5)
        assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(task.batch(0, 5)["ids"], task.batch(0, 6)["ids"])


def test_held_out_questions_are_not_learnt(task):
    learnt, held, _ = task._lessons
    assert held
    assert not {one.id.split("/")[0] for one in learnt} & {one.id.split("/")[0] for one in held}


def test_the_loss_of_a_padded_row_counts_nothing(task):
    model = task.build(0)
    batch = {name: jax.numpy.asarray(value) for name, value in task.batch(0, 0).items()}
    whole = task.loss(model, batch, jax.random.key(0))
    weight = batch["weight"].at[4:].set(0.0)
    half = task.loss(model, batch | {"weight": weight}, jax.random.key(0))
    cut = {name: value[:4] for name, value in batch.items()}
    alone = task.loss(model, cut, jax.random.key(0))
    assert float(whole.weight) == 8 and float(half.weight) == 4
    assert float(half.total) == pytest.approx(float(alone.total), rel=1e-5)


def test_it_learns_saves_and_reads(task, tmp_path):
    """On eight facts the answers are learnt by heart, base weights stay, and use gives the same."""
    optimizer = lambda steps: adamw_linear(steps, learning_rate=5e-3)  # noqa: E731
    task.sources = {"musique": 16}  # so that every wrong passage is seen
    result = fit(task, optimizer, tmp_path, CompositeTracker(()), Schedule(200, 200, 200))
    tensors = load_file(result.folder / "adapter.safetensors")
    assert all("lora" in name or "head" in name or name == "length_bias" for name in tensors)
    reader = TrainedReader(str(result.folder))
    learnt = sorted({one.query for one in task._lessons[0]})
    passages = tuple(f"{who}. {who} was born in {town}" for who, town in zip(PEOPLE, TOWNS))
    found = reader.read([ReadRequest(query, passages) for query in learnt])
    right = [
        one.text == TOWNS[PEOPLE.index(query.split(" |")[0])] for query, one in zip(learnt, found)
    ]
    assert np.mean(right) > 0.9
    for one in found:
        assert passages[one.passage][one.start : one.end] == one.text
        assert 0 <= one.p_right <= 1


def test_a_run_starts_from_the_weights_of_another(task, base, data, tmp_path):
    first = task.build(5)
    task.save(first, tmp_path)
    again = ResolveTask(
        str(data), {"musique": 4}, str(base), 8, 24, 192, buckets=(24,), start_from=str(tmp_path)
    )
    ids = jax.numpy.asarray([[2, 10, 3, 10, 7, 3]])
    rows = ids, ids > 0, jax.numpy.asarray([[0, 0, 0, 1, 1, 1]])
    told, fresh = again.build(0)(*rows).flat, task.build(0)(*rows).flat
    assert np.abs(np.asarray(told - first(*rows).flat)).max() < 1e-2  # float16 files
    assert np.abs(np.asarray(told - fresh)).max() > 1e-3


def test_a_run_starts_from_the_mean_of_several(task, base, data, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for seed, folder in enumerate(folders):
        task.save(task.build(seed), folder)
    again = ResolveTask(
        str(data),
        {"musique": 4},
        str(base),
        8,
        24,
        192,
        buckets=(24,),
        start_from=[str(folder) for folder in folders],
    )
    name = "verdict_head.kernel"
    one, two = (load_file(folder / "adapter.safetensors")[name] for folder in folders)
    mean = (one.astype(np.float32) + two) / 2
    np.testing.assert_allclose(again.build(0).verdict_head.kernel[...], mean, atol=1e-6)


def test_a_step_that_is_learnt_with_another_question_is_not_held(base, data, tmp_path):
    rows = list(read_jsonl(data / "musique" / "train.jsonl.gz"))
    twins = [{**row, "id": f"twin {row['id']}"} for row in rows]
    write_jsonl(tmp_path / "musique" / "train.jsonl.gz", [*rows, *twins])
    write_jsonl(tmp_path / "musique" / "corpus.jsonl.gz", rows[0]["paragraphs"])
    task = ResolveTask(
        str(tmp_path), {"musique": 1}, str(base), validated=("musique",), held_out=0.3
    )
    learnt, held, _ = task._lessons
    apart = {one.id for one in read_slots(tmp_path, "musique")} - {one.id for one in learnt}
    queries = {one.query for one in learnt}
    assert {one.id for one in held} < apart  # some of those set apart have a twin that is learnt
    assert not queries & {one.query for one in held}
