"""A sweep of Weights & Biases over the jobs of a study, for its agents (`wandb agent`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The agent writes what it was given into a file and names it to its program in this variable.
CHOSEN_VARIABLE = "WANDB_SWEEP_PARAM_PATH"


def sweep_config(
    study: str, values: Mapping[str, Sequence[Any]], program: str, manifest: str, metric: str
) -> dict[str, Any]:
    """What `wandb sweep` takes: a grid over these values, each a call of `program`.

    Args:
        study: its name is the sweep's.
        values: of each swept setting.
        program: runs the job of a manifest that an agent was given.
        manifest: its path, as the agents see it.
        metric: what the sweep's page sorts by; a grid tries every value whatever it is.
    """
    return {
        "name": study,
        "program": program,
        "method": "grid",
        "metric": {"name": metric, "goal": "maximize"},
        "parameters": {key: {"values": list(found)} for key, found in values.items()},
        "command": [
            "${env}",
            "${interpreter}",
            "${program}",
            f"manifest={manifest}",
            # Not for the agent, which replaces whole words only, but for Hydra.
            f"chosen=${{oc.env:{CHOSEN_VARIABLE}}}",
        ],
    }


def chosen_values(path: Path | str) -> dict[str, Any]:
    """The values that an agent was given, from the file that it wrote.

    Raises:
        ValueError: it is no such file.
    """
    import yaml

    try:
        rows = yaml.safe_load(Path(path).read_text("utf-8"))
        return {key: row["value"] for key, row in rows.items() if key != "wandb_version"}
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} has no values of a W&B agent ({error!r}); expected `<setting>: {{value: ...}}`"
        ) from None
