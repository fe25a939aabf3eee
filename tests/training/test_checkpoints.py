import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from triax.training.checkpoints import Checkpoints


def tree(scale=1.0):
    parameters = {
        "kernel": scale * jnp.arange(6.0).reshape(2, 3),
        "half": jnp.ones(2, jnp.bfloat16),
    }
    return {
        "trainable": parameters,
        "moments": optax.adamw(0.1).init(parameters),
        "best_score": np.float64(scale / 3),
        "done": np.int64(7 * scale),
    }


def test_a_tree_comes_back_bit_by_bit(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.latest is None
        checkpoints.save(7, tree())
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.latest == 7
        found = checkpoints.restore(tree(0.0))
    assert jax.tree.structure(found) == jax.tree.structure(tree())
    for got, expected in zip(jax.tree.leaves(found), jax.tree.leaves(tree()), strict=True):
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        assert np.array_equal(got, expected)


def test_the_newest_is_read_and_two_are_kept(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        for step in (1, 2, 3):
            checkpoints.save(step, tree(float(step)))
        checkpoints.save(3, tree(9.0))  # is there already
        assert float(checkpoints.restore(tree())["best_score"]) == 1.0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.isdigit()) == ["2", "3"]


def test_a_torn_checkpoint_is_not_seen(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, tree())
        name = next(path.name for path in tmp_path.iterdir() if path.is_dir())
    torn = tmp_path / f"{2}.orbax-checkpoint-tmp-0"
    torn.mkdir()
    (torn / "default").write_bytes(b"half")
    with Checkpoints(tmp_path) as checkpoints:
        assert name == "1" and checkpoints.latest == 1
        checkpoints.save(2, tree(2.0))
        assert checkpoints.latest == 2


def test_another_model_is_refused(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, tree())
        other = tree() | {"trainable": {"kernel": jnp.zeros((4, 3)), "half": jnp.ones(2)}}
        with pytest.raises(ValueError):
            checkpoints.restore(other)
        with pytest.raises(ValueError):
            checkpoints.restore(tree() | {"more": np.int64(1)})
