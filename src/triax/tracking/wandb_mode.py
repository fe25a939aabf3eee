"""Whether Weights & Biases may be spoken to: the configuration says how far, a node less far."""

import logging
import os
from collections.abc import Mapping

# From the least to the most.
MODES = ("disabled", "offline", "online")
VARIABLE = "WANDB_MODE"
# Older words of W&B's own.
_ALSO = {"dryrun": "offline", "run": "online"}
_log = logging.getLogger(__name__)


def allowed_mode(asked: str, environment: Mapping[str, str] = os.environ) -> str:
    """The mode of a run: the lesser of what is asked for and what the environment says.

    A node without a network sets WANDB_MODE=offline and is obeyed though the configuration says
    online. WANDB_MODE=online raises nothing: who asks for files gets files.

    Raises:
        ValueError: the mode that is asked for is none of `MODES`.

    >>> allowed_mode("online", {"WANDB_MODE": "offline"})
    'offline'
    >>> allowed_mode("offline", {"WANDB_MODE": "online"})
    'offline'
    """
    if asked not in MODES:
        raise ValueError(f"the mode of W&B is {asked!r}, expected one of {list(MODES)}")
    given = environment.get(VARIABLE, "").strip().lower()
    given = _ALSO.get(given, given)
    if not given:
        return asked
    if given not in MODES:
        _log.warning(
            "%s=%s is none of %s and counts for nothing; the run is %s",
            VARIABLE,
            given,
            ", ".join(MODES),
            asked,
        )
        return asked
    mode = min(asked, given, key=MODES.index)
    if mode != asked:
        _log.info("%s=%s: W&B is %s, not %s as asked", VARIABLE, given, mode, asked)
    return mode
