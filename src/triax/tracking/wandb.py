"""Numbers to Weights & Biases, online or into files that `wandb sync` sends later."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triax.records.files import read_jsonl, write_json
from triax.tracking.jsonl import METRICS_FILE

STATE_FILE = "wandb.json"
MODES = ("online", "offline")


class WandbTracker:
    """One W&B run for one run folder, over any number of processes.

    The run's id is kept in `wandb.json`. W&B holds rows back before it sends or writes them, so
    a killed process takes some with it: a process that goes on with the run first hands over the
    rows of `metrics.jsonl` (see `triax.tracking.jsonl`) again. Online, W&B leaves out the steps
    that it has. Offline, each process makes a folder below `wandb/`, and the newest holds the
    whole run: `wandb sync` that one.

    Raises:
        ImportError: the package is not installed.
        ValueError: the mode is neither online nor offline.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        name: str,
        config: Mapping[str, Any],
        project: str = "triax",
        entity: str | None = None,
        group: str | None = None,
        mode: str = "online",
    ):
        """Starts the run, or takes it up again.

        Args:
            folder: the run folder; W&B's own files go to `wandb/` in it.
            name: of the run, as shown.
            config: shown with the run.
            project: where it is shown.
            entity: the team or user; None is the account's own.
            group: runs of one group are shown together.
            mode: "online" needs an account (`wandb login`), "offline" needs nothing.
        """
        if mode not in MODES:
            raise ValueError(f"the mode of W&B is {mode!r}, expected one of {list(MODES)}")
        try:
            import wandb
        except ImportError:
            raise ImportError(
                "the package wandb is not installed; `pip install 'triax[wandb]'`, or take "
                "tracker=jsonl"
            ) from None
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._is_resumed = False
        self.id = _kept_id(self._folder / STATE_FILE)
        self._run = wandb.init(
            project=project,
            entity=entity,
            group=group,
            name=name,
            config=dict(config),
            id=self.id,
            # Offline there is nobody to ask for the run: the id alone joins the parts.
            resume="allow" if mode == "online" else None,
            mode=mode,
            dir=str(self._folder),
            settings=wandb.Settings(console="off", silent=True),
        )

    def resume(self, step: int) -> None:
        """Hands over the rows up to this step that are in the run folder."""
        self._is_resumed = True
        path = self._folder / METRICS_FILE
        for row in read_jsonl(path) if path.exists() else ():
            if row["step"] <= step:
                values = {key: value for key, value in row.items() if value is not None}
                self._run.log(values, step=values.pop("step"))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Hands over the numbers of a step."""
        if not self._is_resumed:
            self.resume(step - 1)
        self._run.log({name: float(value) for name, value in metrics.items()}, step=step)

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Sets numbers of the whole run."""
        self._run.summary.update({name: float(value) for name, value in metrics.items()})

    def finish(self) -> None:
        """Sends, or writes, what is left."""
        self._run.finish()


def _kept_id(path: Path) -> str:
    """The id of the run of this folder, made by its first process."""
    if not path.exists():
        write_json(path, {"id": uuid.uuid4().hex[:12]})
    return json.loads(path.read_text("utf-8"))["id"]
