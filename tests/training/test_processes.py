import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from triax.training.processes import (
    Processes,
    any_process,
    join,
    meet,
    of_first,
    own_part,
    processes,
)
from triax.training.step import data_mesh, replicate

# Four devices in two processes: what each sees before and after the others are asked.
PROGRAM = """
import json, sys
import jax, numpy as np
from triax.training import processes
from triax.training.step import data_mesh, place_batch, replicate

index, address = int(sys.argv[1]), sys.argv[2]
found = processes.processes(address, 2, index)
processes.join(found)
mesh = data_mesh()
tree = replicate({"a": np.arange(6.0), "n": np.int32(3)}, mesh)
own = processes.own_part(tree, mesh)
batch = place_batch({"x": np.arange(8.0).reshape(8, 1)}, mesh)
total = jax.jit(lambda batch: batch["x"].sum())(batch)
processes.meet("the end")
print(json.dumps({
    "devices": [jax.local_device_count(), jax.device_count()],
    "is_first": found.is_first,
    "any": [processes.any_process(index == 1), processes.any_process(False)],
    "first": processes.of_first({"b": 1e300 + index, "a": 1 / 3 + index}),
    "own": [np.asarray(own["a"]).tolist(), own["a"].is_fully_addressable, len(own["a"].devices())],
    "rows": sorted(np.asarray(part.data)[0, 0].item() for part in batch["x"].addressable_shards),
    "total": float(total),
}))
"""


def test_alone_without_a_step():
    """A batch script knows the number of tasks too, but is not one of them."""
    assert processes(environment={}) == Processes(0, 1)
    assert processes(environment={"SLURM_NTASKS": "4"}) == Processes(0, 1)
    step = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_PROCID": "1"}
    assert processes(environment=step | {"SLURM_NTASKS": "1"}) == Processes(0, 1)


def test_the_tasks_of_a_step():
    step = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"}
    found = processes(environment=step)
    assert found == Processes(3, 4) and not found.is_first
    # srun may take fewer tasks than the job has.
    found = processes(environment=step | {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"})
    assert found == Processes(0, 2) and found.is_first


def test_what_is_given_goes_before_slurm():
    step = {"SLURM_STEP_NODELIST": "n1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    assert processes("n1:1234", 3, 2, environment=step) == Processes(2, 3, "n1:1234")


@pytest.mark.parametrize("given", [("n1:1", None, 0), (None, 2, None), ("n1:1", 2, None)])
def test_half_an_answer_is_refused(given):
    with pytest.raises(ValueError, match="give all three, or none"):
        processes(*given, environment={})


def test_an_index_beyond_the_count_is_refused():
    with pytest.raises(ValueError, match="process 2 of 2, expected 0 to 1"):
        Processes(2, 2)


def test_one_process_needs_no_other():
    join(Processes())
    meet("nobody")
    assert any_process(True) and not any_process(False)
    assert of_first({"a": 0.1}) == {"a": 0.1}
    tree = replicate({"a": jnp.arange(3.0)}, data_mesh())
    assert own_part(tree, data_mesh()) is tree


def test_two_processes(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    program = tmp_path / "two.py"
    program.write_text(PROGRAM)
    source = str(Path(__file__).resolve().parents[2] / "src")
    running = [
        subprocess.Popen(
            [sys.executable, program, str(index), address],
            env=os.environ | flags | {"PYTHONPATH": source},
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    told = [json.loads(one.communicate(timeout=120)[0].splitlines()[-1]) for one in running]
    for index, one in enumerate(told):
        assert one["devices"] == [2, 4]
        assert one["is_first"] == (index == 0)
        assert one["any"] == [True, False]
        assert one["first"] == {"b": 1e300, "a": 1 / 3}  # in full precision
        assert one["own"] == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], True, 2]
        assert one["total"] == 28.0
    # Eight rows, two a device: the first process has rows 0 to 3.
    assert [one["rows"] for one in told] == [[0.0, 2.0], [4.0, 6.0]]
    assert jax.process_count() == 1
