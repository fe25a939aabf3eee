import gzip
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.encoder_params import hf_name
from triax.models.trained_writer import TrainedWriter
from triax.training.optimizer import adamw_linear
from triax.training.step import make_step
from triax.training.task import Task
from triax.training.tasks.decompose import DecomposeTask, Mix

SHARED = Path(__file__).parents[4] / "shared" / "data"
DATA = Path(os.environ.get("TRIAX_DATA") or SHARED)
FILMS = ["Vertigo", "Stalker", "Solaris", "Alien", "Metropolis", "Ran", "Brazil", "Persona"]


def question(film):
    return {
        "question": f"Who is the mother of the director of {film}?",
        "dataset": "2wikimultihopqa_qa",
        "source": "made",
        "query_triples": [[film, "director", "?1"], ["?1", "mother", "?2"]],
        "query_op": None,
        "decomposition": [],
    }


def steps(film):
    return {
        "question": f"Who is the mother of the director of {film} film?",
        "dataset": "musique",
        "source": "made",
        "decomposition": [{"question": f"{film} >> director"}, {"question": "#1 >> mother"}],
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two tiny data sets of one pattern each; dev repeats names of train."""
    folder = tmp_path_factory.mktemp("data")
    for split, films in (("train", FILMS[:6]), ("dev", FILMS[4:6])):
        for name, made in (("2wikimultihopqa_qa", question), ("musique", steps)):
            (folder / name).mkdir(exist_ok=True)
            with gzip.open(folder / name / f"{split}.jsonl.gz", "wt") as stream:
                stream.writelines(json.dumps(made(film)) + "\n" for film in films)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A model folder as `save_pretrained` writes it: a BERT of one layer."""
    folder = tmp_path_factory.mktemp("base")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "?", "who", "is", "the", "mother", "of"]
    words += ["director", "film", *(film.lower() for film in FILMS)]
    backend = Tokenizer(
        models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    )
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "bert",
        "vocab_size": len(words),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    }
    (folder / "config.json").write_text(json.dumps(config))
    encoder = TransformerEncoder(EncoderConfig.from_hf(config), rngs=nnx.Rngs(0))
    tensors = {}
    for path, variable in nnx.to_flat_state(nnx.state(encoder)):
        value = np.asarray(variable[...])
        name = hf_name(".".join(map(str, path)), "bert")
        tensors[name] = np.ascontiguousarray(value.T if path[-1] == "kernel" else value)
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def task(data, base):
    return DecomposeTask(
        data,
        [{"name": "musique", "weight": 2}, Mix("2wikimultihopqa_qa", 0.5)],
        str(base),
        rank=2,
        width=16,
        num_heads=2,
        inner_width=32,
        batch_tokens=96,
        buckets=(16,),
        min_count=1,
    )


def test_it_is_a_task(task):
    assert isinstance(task, Task)
    assert [lesson.origin for lesson, _ in task.lessons] == ["musique"] * 6 + [
        "2wikimultihopqa_qa"
    ] * 6


def test_weights_say_how_often_a_lesson_is_taken(task):
    """Twice each of six, and about half of six."""
    counts = np.bincount(task._numbers, minlength=12)
    assert counts[:6].tolist() == [2] * 6
    assert set(counts[6:]) <= {0, 1}
    assert 0 < counts[6:].sum() < 6


def test_a_batch_is_a_function_of_step_and_seed(task):
    one, other, later = task.batch(0, 0), task.batch(0, 0), task.batch(1, 0)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(one["ids"], later["ids"])


def test_what_a_batch_holds(task):
    batch = task.batch(0, 0)
    assert batch["ids"].shape == (6, 16)
    assert batch["given"].shape == batch["tokens"].shape == (6, 32)
    assert batch["copies"].shape == (6, 32, 16)
    size = int(batch["counted"][0].sum())
    # Teacher forcing: what is given at a step was right at the step before.
    for n in range(1, size):
        given = batch["given"][0, n]
        vocab = len(task.vocabulary)
        if given < vocab:
            assert batch["tokens"][0, n - 1] == given
        else:
            assert batch["copies"][0, n - 1, given - vocab]
    assert batch["tokens"][0, size - 1] == 0
    assert (batch["tokens"][0, size:] == -1).all()


def test_rows_beyond_the_lessons_count_nothing(task):
    """The last batch of an epoch is padded; its loss has no weight there and is finite."""
    model = task.build(0)
    for step in range(task.steps_per_epoch):
        batch = task.batch(step, 0)
        if not batch["counted"].any(axis=1).all():
            break
    else:
        pytest.fail("no batch of this epoch is short; change the sizes of this test")
    filled = batch["counted"].any(axis=1)
    graph, state = nnx.split(model)
    loss_of = jax.jit(lambda s, b: task.loss(nnx.merge(graph, s), b, jax.random.key(0)))
    loss, alone = (
        loss_of(state, {name: jnp.asarray(value[rows]) for name, value in batch.items()})
        for rows in (slice(None), filled)
    )
    assert loss.weight == batch["counted"].sum()
    np.testing.assert_allclose(loss.total, alone.total, rtol=1e-5)


def test_it_learns_its_lessons_and_the_saved_writer_writes_them(task, tmp_path):
    model = task.build(0)
    graph, trainable, frozen = nnx.split(model, task.trainable, ...)
    optimizer = adamw_linear(120, learning_rate=0.02, weight_decay=0.0)
    step = make_step(task, graph, optimizer, 1)
    moments = optimizer.init(trainable)
    for n in range(120):
        trainable, moments, _ = step(
            trainable, moments, frozen, task.batch(n, 0), jax.random.key(0)
        )
    model = nnx.merge(graph, trainable, frozen)
    figures = task.validate(model)
    assert figures["2wiki_equal"] == figures["musique_structure"] == figures["score"] == 1.0
    task.save(model, tmp_path)
    [written] = TrainedWriter(str(tmp_path), max_outputs=32).write([question("Ran")["question"]])
    assert [str(one) for one in written.triplets] == ["Ran | director | ?1", "?1 | mother | ?2"]
    assert written.operator == "none"


def test_the_card_gets_counts(task):
    assert task.describe()["datasets"] == {
        "musique": {"lessons": 6, "weight": 2.0},
        "2wikimultihopqa_qa": {"lessons": 6, "weight": 0.5},
    }
    json.dumps(task.describe())


@pytest.mark.data
@pytest.mark.weights
@pytest.mark.skipif(not DATA.is_dir(), reason="no shared data folder; set TRIAX_DATA")
def test_lessons_of_the_shared_data_can_be_written():
    names = [{"name": name} for name in ("musique", "2wikimultihopqa")]
    task = DecomposeTask(DATA, names)
    assert len(task._examples) > 0.95 * len(task.lessons) > 700
    for example, _ in task._examples[::40]:
        assert task.vocabulary.read(example.outputs, example.source).triplets
