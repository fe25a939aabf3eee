"""Compiled XLA programs kept on disk, so that the next process need not compile them again."""

import hashlib
import logging
import os
import platform
from pathlib import Path

_log = logging.getLogger(__name__)


def use_compile_cache() -> Path:
    """Switches JAX's persistent compilation cache on and returns its folder.

    A folder that the user has set (JAX_COMPILATION_CACHE_DIR) is kept. Otherwise it is
    $TRIAX_CACHE/xla or ~/.cache/triax/xla, below it one folder for each kind of processor: JAX
    does not tell processors apart, and a program compiled for one may not run on another that
    shares the home folder.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if chosen := jax.config.jax_compilation_cache_dir:
        return Path(chosen)
    root = os.environ.get("TRIAX_CACHE") or Path.home() / ".cache" / "triax"
    folder = Path(root).expanduser() / "xla" / _processor()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The default of 1 s leaves out just the small programs that an encoder is made of.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # Without this, a process that has compiled anything before goes on without the cache.
    compilation_cache.reset_cache()
    _log.info("XLA compilation cache at %s", folder)
    return folder


def _processor() -> str:
    """The machine type and, where Linux tells them, a hash of the processor's features."""
    machine = platform.machine() or "unknown"
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return machine
    features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{machine}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"
