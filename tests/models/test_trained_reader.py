import json

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.models.adapters import AdapterError, add_lora, merge_lora, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.reading_answers import Calibration
from triax.models.span_reader import TRAINABLE, SpanReader, reader_config
from triax.models.trained_reader import TrainedReader, load_reader, shared_reader
from triax.records.readings import ReadRequest
from triax.records.verbs import PassageReader

WORDS = ["who", "?", "Ann", "Bob", "met", "in", "Rome", "Oslo"]
PASSAGES = ("Ann met Bob in Rome", "Bob met Ann in Oslo in Rome in Oslo in Rome in Oslo in Rome")


@pytest.fixture(scope="module")
def adapter(make_base, tmp_path_factory):
    """A random base and a random adapter over it."""
    base = make_base(WORDS, positions=24, noise=0.3)
    rng = np.random.default_rng(0)
    encoder, _ = load_encoder(base)
    rngs = nnx.Rngs(5)
    add_lora(encoder, 2, rngs)
    reader = SpanReader(encoder, rngs=rngs)
    state = nnx.state(reader, TRAINABLE)
    for _, variable in nnx.to_flat_state(state):
        noise = rng.standard_normal(variable[...].shape).astype(np.float16)
        variable[...] = 0.5 * noise.astype(np.float32)
    nnx.update(reader, state)
    calibration = Calibration((-0.5, 0.1, 0.0), (0.0, 0.2, 0.0))
    more = {"max_length": 16, "calibration": calibration.to_json()}
    folder = tmp_path_factory.mktemp("adapter")
    save_adapter(folder, reader, TRAINABLE, reader_config(str(base), 2, **more))
    return folder, reader, base


def test_the_heads_are_trained_and_saved(adapter):
    state = nnx.to_flat_state(nnx.state(adapter[1], TRAINABLE))
    names = [".".join(map(str, path)) for path, _ in state]
    assert {"ends_head.kernel", "first_head.bias", "length_bias", "verdict_head.kernel"} <= set(
        names
    )


def test_what_is_loaded_computes_what_was_saved(adapter):
    folder, reader, base = adapter
    config = json.loads((folder / "config.json").read_text("utf-8"))
    loaded = load_reader(folder, config, base, "float32")
    ids = np.array([[2, 4, 5, 3, 6, 8, 7, 3]], np.int32)
    rows = jnp.asarray(ids), jnp.ones((1, 8), bool), jnp.asarray([[0, 0, 0, 0, 1, 1, 1, 1]])
    ours, theirs = loaded(*rows), reader(*rows)
    assert np.abs(np.asarray(ours.flat) - np.asarray(theirs.flat)).max() < 2e-2  # float16 files
    assert merge_lora(loaded) == 0


def test_answers_are_pieces_of_their_passage_and_do_not_depend_on_the_batch(adapter):
    reader = TrainedReader(str(adapter[0]))
    assert isinstance(reader, PassageReader)
    requests = [
        ReadRequest("who ?", PASSAGES),
        ReadRequest("who met ?", PASSAGES[1:]),
        ReadRequest("who ?", ()),
    ]
    done = []
    together = reader.read(requests, progress=done.append)
    assert together[2] is None
    for request, found in zip(requests[:2], together):
        assert request.passages[found.passage][found.start : found.end] == found.text
        assert 0 < found.p_right < 1 and 0 < found.p_here < 1
        (alone,) = reader.read([request])
        assert (alone.text, alone.passage) == (found.text, found.passage)
        assert alone.margin == pytest.approx(found.margin, abs=1e-4)


def test_a_request_says_what_may_answer_it(adapter):
    reader = TrainedReader(str(adapter[0]))
    requests = [ReadRequest("who ?", PASSAGES, kinds) for kinds in ("span", "verdict")]
    span, verdict = reader.read(requests, allows_verdicts=True)
    assert span.kind == "span" and verdict.kind in ("yes", "no")


def test_parts_that_ask_for_the_same_reader_share_it(adapter):
    assert shared_reader(str(adapter[0])) is shared_reader(str(adapter[0]))


def test_an_adapter_of_another_part_is_refused(adapter, tmp_path):
    config = json.loads((adapter[0] / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"part": "writer"}), "utf-8")
    (tmp_path / "adapter.safetensors").write_bytes(
        (adapter[0] / "adapter.safetensors").read_bytes()
    )
    with pytest.raises(AdapterError, match="'writer', expected 'span_reader'"):
        TrainedReader(str(tmp_path)).read([ReadRequest("who ?", PASSAGES)])
