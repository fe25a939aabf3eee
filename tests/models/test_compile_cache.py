import os
import subprocess
import sys

PROGRAM = """
import jax, jax.numpy as jnp
jax.jit(lambda x: x + 1)(1.0)  # something was compiled before
from triax.models.compile_cache import use_compile_cache
folder = use_compile_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((8, 8))).block_until_ready()
print(folder)
"""


def run(**variables: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TRIAX_"))}
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, "PYTHONPATH": source, "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_programs_are_kept_below_the_cache_folder(tmp_path):
    folder = run(TRIAX_CACHE=str(tmp_path))
    assert folder.startswith(str(tmp_path / "xla"))
    assert any(name.endswith("-cache") for name in os.listdir(folder))


def test_a_folder_set_by_the_user_is_kept(tmp_path):
    assert run(JAX_COMPILATION_CACHE_DIR=str(tmp_path), TRIAX_CACHE="/nowhere") == str(tmp_path)
    assert any(name.endswith("-cache") for name in os.listdir(tmp_path))
