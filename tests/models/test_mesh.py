import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from triax.models import mesh as module
from triax.models.mesh import MeshError, current_mesh, open_mesh, replicated, rows_spread, use_mesh

EIGHT = jax.devices()[:1] * 8  # a place in a grid is all that is asked of them here


@pytest.fixture(autouse=True)
def as_chosen_before(monkeypatch):
    monkeypatch.setattr(module, "_chosen", module._chosen)


@pytest.mark.parametrize(
    ("data", "model", "shape"),
    [(None, 1, (8, 1)), (None, 4, (2, 4)), (2, 4, (2, 4)), (1, 8, (1, 8)), (8, 1, (8, 1))],
)
def test_data_takes_what_model_leaves(data, model, shape):
    mesh = open_mesh(data, model, EIGHT)
    assert mesh.axis_names == ("data", "model") and mesh.devices.shape == shape


@pytest.mark.parametrize(
    ("data", "model", "said"),
    [
        (None, 3, r"8 devices were found, which 3 cannot share.*\[1, 2, 4, 8\]"),
        (2, 2, r"mesh.data=2 mesh.model=2 are 4 devices, 8 were found.*mesh.data=null \(here 4\)"),
        (16, 1, "are 16 devices, 8 were found"),
        (None, 0, "expected 1 or more"),
        (0, 1, "expected 1 or more"),
    ],
)
def test_what_does_not_fit_is_refused(data, model, said):
    with pytest.raises(MeshError, match=said):
        open_mesh(data, model, EIGHT)


def test_what_is_chosen_is_current_and_what_does_not_fit_is_not_chosen():
    count = jax.local_device_count()
    assert current_mesh().devices.shape == (count, 1)
    use_mesh(None, count)
    assert current_mesh().devices.shape == (1, count)
    assert current_mesh(EIGHT[:count]).devices.shape == (1, count)
    with pytest.raises(MeshError, match="were found"):
        use_mesh(count + 1, 1)
    assert current_mesh().devices.shape == (1, count)


def test_rows_lie_on_all_devices_of_both_axes():
    mesh = open_mesh(2, 4, EIGHT)
    assert rows_spread(mesh).shard_shape((16, 3)) == (2, 3)
    assert replicated(mesh).shard_shape((16, 3)) == (16, 3)


CHILD = """
import sys
import jax, numpy as np
from flax import nnx
from triax.models.encoder import EncoderConfig, TransformerEncoder
from triax.models.encoder_params import load_encoder
from triax.models.mesh import open_mesh, replicated, use_mesh
from triax.models.reading_scores import WindowScorer
from triax.models.reading_windows import Window
from triax.models.question_head import build_classifier
from triax.models.span_reader import SpanReader
from triax.models.text_encoder import TextEncoder
from triax.models.tokenizer import load_tokenizer
from triax.models.question_scorer import QuestionScorer

base = sys.argv[1]
one = open_mesh(devices=jax.devices()[:1])
meshes = [one, open_mesh(8, 1), open_mesh(2, 4)]
texts = [f"ann {'bob ' * n}" for n in range(1, 20)]
windows = [Window([2, 4, 3, *[5] * n, 3], 3, [(k, k + 1) for k in range(n)]) for n in range(1, 12)]
router, router_state = nnx.split(build_classifier(load_encoder(base)[0], "mean", None, seed=3))
shape = EncoderConfig("bert", 20, 16, 1, 2, 24, 40)
reader, reader_state = nnx.split(
    SpanReader(TransformerEncoder(shape, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
)
logits, spans = [], []
for mesh in meshes:
    scorer = QuestionScorer(router, load_tokenizer(base), 24, mesh=mesh)
    logits.append(scorer(jax.device_put(router_state, replicated(mesh)), texts))
    found = WindowScorer(reader, 20, mesh=mesh)(
        jax.device_put(reader_state, replicated(mesh)), windows
    )
    spans.append(np.concatenate([np.append(one.verdicts, one.spans[:4]) for one in found]))
vectors = []
for sizes in ((8, 1), (2, 4)):
    use_mesh(*sizes)
    encoder = TextEncoder(base, pooling="mean", max_length=24)
    vectors.append(encoder.encode(texts))
    out = encoder._embed(np.ones((16, 8), np.int32), np.ones((16, 8), bool))
    assert out.addressable_shards[0].data.shape[0] == 2
for found in (logits, spans, vectors):
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-5)
        assert np.abs(other).max() > 1e-3
print("same")
"""


def test_eight_devices_in_any_grid_give_the_result_of_one(make_base):
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-c", CHILD, str(make_base(["ann", "bob"]))]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert child.stdout.split() == ["same"], child.stderr[-3000:]
