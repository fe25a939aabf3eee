import json

import pytest
import yaml
from wandb.apis.public.sweeps import _validate_config_and_fill_distribution
from wandb.sdk.launch.sweeps.utils import (
    create_sweep_command,
    create_sweep_command_args,
    load_sweep_config,
)
from wandb.sdk.lib.config_util import save_config_file_from_dict

from triax.tracking.wandb_sweeps import CHOSEN_VARIABLE, chosen_values, sweep_config

VALUES = {"pipeline.num_chunks": [1, 3], "pipeline": ["dense", "bm25"], "tau": [0.5, 1.0]}


def test_a_sweep_as_wandb_reads_it(tmp_path):
    config = sweep_config("hotpot", VALUES, "eval/run_jobs.py", "m.jsonl", "answer/f1")
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    found = load_sweep_config(str(path))
    assert found == config == json.loads(json.dumps(config))
    # W&B completes what a parameter leaves open; all is said here.
    assert _validate_config_and_fill_distribution(found) == config
    assert found["method"] == "grid"
    assert {key: one["values"] for key, one in found["parameters"].items()} == VALUES


def test_an_agent_names_its_values_to_the_program(tmp_path, monkeypatch):
    """The agent's own functions: what it does with the command, and the file that it writes."""
    import wandb.env

    assert CHOSEN_VARIABLE == wandb.env.SWEEP_PARAM_PATH
    given = {"pipeline.num_chunks": {"value": 3}, "pipeline": {"value": "bm25"}}
    command = sweep_config("hotpot", VALUES, "eval/run_jobs.py", "m.jsonl", "answer/f1")["command"]
    made = create_sweep_command(command)
    macros = create_sweep_command_args({"args": given})
    macros |= {"env": ["/usr/bin/env"], "interpreter": ["python"], "program": ["run_jobs.py"]}
    words = [
        word
        for one in made
        for word in (macros[one[2:-1]] if one.startswith("${") and one.endswith("}") else [one])
    ]
    assert words == [
        *("/usr/bin/env", "python", "run_jobs.py", "manifest=m.jsonl"),
        "chosen=${oc.env:WANDB_SWEEP_PARAM_PATH}",
    ]
    save_config_file_from_dict(str(tmp_path / "config.yaml"), given)
    assert chosen_values(tmp_path / "config.yaml") == {"pipeline.num_chunks": 3, "pipeline": "bm25"}


@pytest.mark.parametrize("text", ["", "a: 1", "- a", "a: [", "a: {other: 1}"])
def test_a_file_that_no_agent_wrote(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="no values of a W&B agent"):
        chosen_values(path)
    with pytest.raises(ValueError, match="no values of a W&B agent"):
        chosen_values(tmp_path / "none.yaml")
