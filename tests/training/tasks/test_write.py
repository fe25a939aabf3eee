"""A tiny random decoder learns lessons; torch's transformers and peft say what a step must give."""

import gzip
import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.llm.grammar import GrammarCompiler, query_triplet_lines
from triax.models.decoder_params import apply_adapter, load_decoder
from triax.tracking.jsonl import JsonlTracker
from triax.training.loop import Schedule, fit
from triax.training.optimizer import adamw_linear
from triax.training.task import Task
from triax.training.tasks.write import WriteTask

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from .tiny_decoder import write_tiny_decoder  # noqa: E402

QUESTIONS = [
    ("Who wrote Brand?", ["Brand", "author", "?1"]),
    ("Who made Vertigo?", ["Vertigo", "director", "?1"]),
    ("Who wrote Oh?", ["Oh", "author", "?1"]),
]


@pytest.fixture(scope="module", name="base")
def fixture_base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    return folder, write_tiny_decoder(folder)


@pytest.fixture(scope="module", name="data")
def fixture_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rows = [
        {
            "id": f"q{n}",
            "question": question,
            "answer": "x",
            "dataset": "popqa_qa",
            "source": "s",
            "query_triples": [triplet],
        }
        for n, (question, triplet) in enumerate(QUESTIONS)
    ]
    for split in ("train", "dev"):
        (folder / "popqa_qa").mkdir(exist_ok=True)
        with gzip.open(folder / "popqa_qa" / f"{split}.jsonl.gz", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def make(base, data, **more):
    settings = {"assignments": ["decompose"], "rank": 4, "batch_tokens": 384, "buckets": [128]}
    return WriteTask(data, str(base[0]), **settings | more)


def test_a_batch_is_the_conversation_and_what_is_to_be_written(base, data):
    task = make(base, data)
    assert isinstance(task, Task)
    batch = task.batch(0, 0)
    assert batch["ids"].shape == (3, 128) and batch["ids"].dtype == np.int32
    rows = set()
    for ids, mask, places, targets, weights in zip(*(batch[name] for name in batch)):
        count = int(weights.sum())
        text = task._tokenizer.decode(
            [*ids[mask].tolist(), int(targets[count - 1])], skip_special=False
        )
        rows.add(text)
        # The state at a place tells the token after it.
        np.testing.assert_array_equal(ids[places[:count] + 1][:-1], targets[: count - 1])
        assert places[count - 1] == mask.sum() - 1
    assert rows == {
        f"<|im_start|>system\nDecompose.<|im_end|>\n<|im_start|>user\nQuestion: {question}"
        f"<|im_end|>\n<|im_start|>assistant\n{' | '.join(triplet[:2])} | ?a<|im_end|>"
        for question, triplet in QUESTIONS
    }


def on_device(batch):
    return {name: jnp.asarray(value) for name, value in batch.items()}


def torch_loss(model, batch):
    """The mean loss that transformers gives with all but the target masked."""
    ids = torch.tensor(batch["ids"].astype(np.int64))
    labels = torch.full((len(ids), ids.shape[1] + 1), -100)
    for row in range(len(ids)):
        count = int(batch["weights"][row].sum())
        labels[row, batch["places"][row, :count] + 1] = torch.tensor(
            batch["targets"][row, :count].astype(np.int64)
        )
    logits = model(input_ids=ids, attention_mask=torch.tensor(batch["mask"])).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())


@pytest.mark.parametrize("remat", [False, True])
def test_loss_and_gradient_are_those_of_transformers_and_peft(base, data, remat):
    peft = pytest.importorskip("peft")
    task = make(base, data, remat=remat)
    model, batch = task.build(0), task.batch(0, 0)
    generator = np.random.default_rng(0)
    names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    # lora_alpha = r: peft's scale is 1, as ours.
    config = peft.LoraConfig(r=4, lora_alpha=4, lora_dropout=0.0, target_modules=names)
    reference = peft.get_peft_model(_copy(base), config)
    theirs = {name: value for name, value in reference.named_parameters() if value.requires_grad}
    for path, variable in nnx.to_flat_state(nnx.state(model, nnx.LoRAParam)):
        drawn = generator.normal(size=variable.shape).astype(np.float32) * 0.1
        variable[...] = drawn
        theirs[_peft_name(path)].data = torch.tensor(drawn.T)

    graph, trained, frozen = nnx.split(model, nnx.LoRAParam, ...)

    def mean(trained):
        merged = nnx.merge(graph, trained, frozen)
        loss = task.loss(merged, on_device(batch), jax.random.key(0))
        return loss.total / loss.weight

    loss, grads = jax.jit(jax.value_and_grad(mean))(trained)
    expected = torch_loss(reference, batch)
    expected.backward()
    np.testing.assert_allclose(loss, expected.item(), rtol=1e-5)
    flat = nnx.to_flat_state(grads)
    assert len(flat) == len(theirs) == 2 * 2 * 7
    for path, grad in flat:
        wanted = theirs[_peft_name(path)].grad.numpy().T
        np.testing.assert_allclose(grad[...], wanted, rtol=2e-3, atol=2e-6, err_msg=str(path))


def _copy(base):
    import transformers

    return transformers.LlamaForCausalLM.from_pretrained(base[0]).eval()


def _peft_name(path):
    *modules, leaf = map(str, path)
    letter = {"lora_a": "A", "lora_b": "B"}[leaf]
    return f"base_model.model.model.{'.'.join(modules)}.lora_{letter}.default.weight"


def test_what_is_learnt_is_written_and_shipped(base, data, tmp_path):
    """From a random model to every question right; the saved adapter writes the same."""
    task = make(
        base,
        data,
        rank=16,
        grammars={"decompose": query_triplet_lines(1)},
        compiler=GrammarCompiler,
    )

    optimizer = partial(adamw_linear, learning_rate=2e-2, warmup_share=0.1)
    schedule = Schedule(steps=60, eval_every=60, checkpoint_every=60)
    result = fit(task, optimizer, tmp_path, JsonlTracker(tmp_path), schedule)
    assert result.metrics["decompose/parsed"] == 1.0
    assert result.metrics["exact"] == 1.0
    config = json.loads((result.folder / "config.json").read_text())
    assert (config["part"], config["rank"], config["base"]) == ("decoder", 16, str(base[0]))
    decoder, _ = load_decoder(base[0])
    assert apply_adapter(decoder, result.folder)["assignments"] == ["decompose"]
    lessons = [one.lesson for one in task._dev]
    assert task.write(decoder, lessons) == [one.target for one in lessons]


def test_writing_leaves_the_model_as_it_was(base, data):
    task = make(base, data)
    model = task.build(0)
    for _, variable in nnx.to_flat_state(nnx.state(model, nnx.LoRAParam)):
        variable[...] = jnp.ones(variable.shape) * 0.1
    before = [np.array(leaf) for leaf in jax.tree.leaves(nnx.state(model))]
    task.write(model, [task._dev[0].lesson])
    for leaf, kept in zip(jax.tree.leaves(nnx.state(model)), before, strict=True):
        np.testing.assert_array_equal(leaf, kept)


def test_rows_that_pad_a_batch_weigh_nothing(base, data):
    task = make(base, data, batch_tokens=512)
    is_used = (task.batch(0, 0)["weights"] > 0).any(1)
    assert sorted(is_used.tolist()) == [False, True, True, True]
    model = task.build(0)
    padded, exact = (
        jax.jit(lambda batch: task.loss(model, batch, jax.random.key(0)))(on_device(batch))
        for batch in (task.batch(0, 0), make(base, data).batch(0, 0))
    )
    np.testing.assert_allclose(padded.total, exact.total, rtol=1e-5)
    np.testing.assert_allclose(padded.weight, exact.weight)


def test_lessons_that_are_too_long_are_left_out(base, data):
    lengths = sorted(one.length for one in make(base, data)._train)
    assert lengths[0] < lengths[1]
    task = make(base, data, buckets=[lengths[0]])
    assert [one.length for one in task._train] == lengths[:1]
    with pytest.raises(ValueError, match="every lesson is longer than 16 tokens"):
        make(base, data, buckets=[16])._train  # noqa: B018


def test_counts_are_told_by_assignment_and_data_set(base, data):
    described = make(base, data, mix={"popqa_qa": 2.0}).describe()
    assert described["lessons"] == {"decompose/popqa_qa": 6}


def test_wrong_settings_are_refused(base, data):
    with pytest.raises(ValueError, match="assignments are \\['sing'\\], choose from"):
        make(base, data, assignments=["sing"])
    with pytest.raises(ValueError, match="without a compiler"):
        make(base, data, grammars={"decompose": query_triplet_lines(1)})
