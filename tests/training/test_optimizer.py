import jax.numpy as jnp
import numpy as np
import optax
import pytest

from triax.training.optimizer import adamw_linear

STEPS, WARMUP = 10, 3


def gradients():
    rng = np.random.default_rng(0)
    return [
        {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
        for _ in range(STEPS)
    ]


SHAPES = {"kernel": (3, 4), "bias": (4,)}


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("warmup", [0, WARMUP])
def test_ten_steps_equal_torch(clip, warmup):
    """torch.optim.AdamW under transformers' linear schedule, clipped by torch."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    start = {name: np.full(shape, 0.5, np.float32) for name, shape in SHAPES.items()}
    theirs = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start.items()}
    adamw = torch.optim.AdamW(theirs.values(), lr=0.02, weight_decay=0.1)
    schedule = transformers.get_linear_schedule_with_warmup(adamw, warmup, STEPS)
    ours = {name: jnp.asarray(value) for name, value in start.items()}
    transform = adamw_linear(
        STEPS, learning_rate=0.02, warmup_share=warmup / STEPS, weight_decay=0.1, max_grad_norm=clip
    )
    moments = transform.init(ours)
    for grads in gradients():
        for name, parameter in theirs.items():
            parameter.grad = torch.tensor(grads[name])
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(theirs.values(), clip)
        adamw.step()
        schedule.step()
        updates, moments = transform.update(grads, moments, ours)
        ours = optax.apply_updates(ours, updates)
        for name, parameter in theirs.items():
            expected = parameter.detach().numpy()
            # Ten steps of rounding, and torch adds 1e-6 to the norm that it divides by.
            assert np.allclose(ours[name], expected, rtol=0, atol=2e-6)
    assert not np.allclose(ours["kernel"], start["kernel"], atol=0.01)


def test_the_rate_ends_at_nothing():
    transform = adamw_linear(4, learning_rate=1.0, warmup_share=0.0, max_grad_norm=None)
    parameters = {"x": jnp.ones(2)}
    moments = transform.init(parameters)
    sizes = []
    for _ in range(5):
        updates, moments = transform.update({"x": jnp.ones(2)}, moments, parameters)
        sizes.append(float(jnp.abs(updates["x"]).max()))
    # A constant gradient: Adam's direction is 1, decay adds 0.01, so an update is the rate x 1.01.
    assert np.allclose(sizes, [1.01, 0.7575, 0.505, 0.2525, 0.0], rtol=1e-5)


@pytest.mark.parametrize(("steps", "share"), [(0, 0.1), (10, 1.0), (10, -0.1)])
def test_what_makes_no_schedule_is_named(steps, share):
    with pytest.raises(ValueError, match=rf"steps is {steps} and warmup_share {share}"):
        adamw_linear(steps, learning_rate=0.1, warmup_share=share)
