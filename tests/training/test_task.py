import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from triax.training.task import Loss, Task

sys.path.insert(0, str(Path(__file__).parent))

from toy import ToyTask


def test_a_task_has_all_the_verbs_and_names():
    assert isinstance(ToyTask(), Task)

    class Nameless:
        build = batch = loss = validate = save = describe = None

    assert not isinstance(Nameless(), Task)


def test_sums_of_parts_are_the_sums_of_the_whole():
    """What makes accumulation and sharding exact: a loss is additive over rows."""
    task = ToyTask(rows=8)
    model, batch = task.build(0), task.batch(3, 0)
    halves = [{name: value[n::2] for name, value in batch.items()} for n in (0, 1)]
    whole, *parts = (
        task.loss(model, jax.tree.map(jnp.asarray, rows), jax.random.key(0))
        for rows in (batch, *halves)
    )
    added = jax.tree.map(lambda a, b: a + b, *parts)
    assert isinstance(whole, Loss)
    assert np.allclose(jax.tree.leaves(whole), jax.tree.leaves(added), rtol=1e-6)
    assert float(whole.weight) == batch["weight"].sum()
