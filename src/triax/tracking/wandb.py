"""A run in Weights & Biases, online or as files that `slurm/sync_wandb.sh` sends later."""

import hashlib
import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from triax.records.files import read_jsonl, write_json
from triax.tracking.jsonl import METRICS_FILE
from triax.tracking.slurm_ids import array_id, slurm_ids
from triax.tracking.tracker import Artifact
from triax.tracking.wandb_files import alias, make_artifact, make_table, safe_name, staging_in
from triax.tracking.wandb_mode import allowed_mode

STATE_FILE = "wandb.json"
SCORING = "score"  # the program whose run has the metric of a sweep
FINISHED_FILE = "finished"
# The x axis of all metrics. W&B's own count of steps is one of calls where a table is logged.
STEP = "train/step"
_log = logging.getLogger(__name__)


class WandbTracker:
    """One W&B run for one program in one run folder, over any number of processes.

    The run's id is kept in `wandb.json`. W&B holds rows back before it sends or writes them, so
    a killed process takes some with it: a process that goes on with the run first hands over the
    rows of `metrics.jsonl` (see `triax.tracking.jsonl`) again. Online, W&B leaves out the steps
    that it has. Offline, each process makes a folder below `wandb/`, and the newest holds the
    whole run: that one is sent. A file `finished` in it says that it is complete.

    The mode is the lesser of the one given and WANDB_MODE (see `wandb_mode`); where it comes to
    "disabled", the package is not even imported. An online run whose server cannot be had goes on
    offline. Whatever else W&B fails at is a warning, once a kind, and the run goes on.

    Raises:
        ImportError: the package is not installed.
        ValueError: the mode is none that there is.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        name: str,
        config: Mapping[str, Any],
        study: str | None = None,
        job_type: str = "run",
        tags: Sequence[str] = (),
        project: str = "triax",
        entity: str | None = None,
        group: str | None = None,
        mode: str = "disabled",
        max_upload_mb: float | int = 20,
        finish_timeout_s: float | int = 600,
    ):
        """Starts the run, or takes it up again.

        Args:
            folder: the run folder; W&B's own files go to `wandb/` in it.
            name: of the run, as shown.
            config: shown with the run, with the ids of the Slurm job beside it.
            study: the sweep that the run belongs to.
            job_type: the program; each has a run of its own in a folder.
            tags: words that runs are found by; W&B takes 64 characters of each.
            project: where it is shown.
            entity: the team or user; None is the account's own.
            group: runs of one group are shown together; None takes the study, or else the job
                array of Slurm.
            mode: "online" needs an account (`wandb login`), "offline" needs nothing.
            max_upload_mb: artifacts above this size are named by path instead of being sent.
            finish_timeout_s: how long the end of a run waits for a server. What is not sent then
                stays on disk.
        """
        self._folder = Path(folder)
        self._max_upload_mb = max_upload_mb
        self._is_resumed = False
        self._run = None
        self._used: set[str] = set()
        self._faults: Counter[str] = Counter()
        self.id: str | None = None
        self.mode = allowed_mode(mode)
        if self.mode == "disabled":
            return
        self._wandb = _package()
        self._folder.mkdir(parents=True, exist_ok=True)
        group = group or study or array_id()
        self.id = _kept_id(self._folder, job_type, name, group)
        given = {
            "project": project,
            "entity": entity,
            "group": group,
            "job_type": job_type,
            "name": name,
            "tags": [tag[:64] for tag in tags],
            "config": {**config, "slurm": slurm_ids()},
            "id": self.id,
            "dir": str(self._folder),
            "settings": self._wandb.Settings(
                console="off", silent=True, finish_timeout=float(finish_timeout_s)
            ),
        }
        self._start(given)

    def resume(self, step: int) -> None:
        """Hands over the rows up to this step that are in the run folder."""
        self._is_resumed = True
        path = self._folder / METRICS_FILE
        if self._run is None or not path.exists():
            return
        for row in read_jsonl(path):
            if row["step"] <= step:
                self._log({key: value for key, value in row.items() if value is not None})

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Hands over the numbers of a step."""
        if not self._is_resumed:
            self.resume(step - 1)
        self._log({"step": step} | {name: float(value) for name, value in metrics.items()})

    def summary(self, metrics: Mapping[str, float]) -> None:
        """Sets numbers of the whole run."""
        values = {name: float(value) for name, value in metrics.items()}
        self._try("summary", lambda run: run.summary.update(values))

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Shows the rows as a table of that name."""
        self._try("table", lambda run: run.log({name: make_table(self._wandb, rows)}))

    def figure(self, name: str, path: Path) -> None:
        """Shows the figure. W&B's images are no drawings, so it goes as a page."""

        def show(run: Any) -> None:
            run.log({name: self._wandb.Html(path.read_text("utf-8"), inject=False)})

        self._try("figure", show)

    def artifact(self, made: Artifact) -> None:
        """Registers what was made.

        Its inputs are in the metadata, by name and digest. Online they are linked too, as far as
        the server has them; offline W&B knows no names to link to.
        """
        if self.mode == "online":
            for name, digest in made.inputs.items():
                self._use(f"{safe_name(name)}:{alias(digest)}")

        def send(run: Any) -> None:
            artifact = make_artifact(self._wandb, made, self._max_upload_mb)
            run.log_artifact(artifact, aliases=["latest", alias(made.digest)])

        self._try("artifact", send)

    def finish(self, *, failed: bool = False) -> None:
        """Sends, or writes, what is left."""
        if self._run is None:
            return
        place = Path(self._run.settings.sync_dir)

        def close(run: Any) -> None:
            run.finish(exit_code=int(failed))
            (place / FINISHED_FILE).touch()

        self._try("finish", close)
        self._run = None
        if self._faults:
            told = ", ".join(f"{count} of {what}" for what, count in self._faults.items())
            _log.warning("W&B did not take everything (%s); the run folder has it", told)

    def _start(self, given: Mapping[str, Any]) -> None:
        """Online first where that is asked for, then offline, then without W&B."""
        for mode in dict.fromkeys((self.mode, "offline")):
            self.mode = mode
            # Offline there is nobody to ask for the run: the id alone joins the parts.
            resume = "allow" if mode == "online" else None
            try:
                self._run = self._wandb.init(mode=mode, resume=resume, **given)
                self._run.define_metric(STEP)
                self._run.define_metric("*", step_metric=STEP)
                return
            except Exception as error:
                self._run = None
                _log.warning("no %s run of W&B could be started: %s", mode, error)
        self.mode = "disabled"

    def _log(self, row: Mapping[str, Any]) -> None:
        step = row["step"]
        values = {name: value for name, value in row.items() if name != "step"}
        self._try("metrics", lambda run: run.log({STEP: step} | values, step=step))

    def _use(self, name: str) -> None:
        if self._run is None or name in self._used:
            return
        self._used.add(name)
        try:
            self._run.use_artifact(name)
        except Exception as error:
            # Made without W&B, or by a run that is not sent yet; the metadata names it anyway.
            _log.info("W&B has no %s to link to (%s)", name, error)

    def _try(self, what: str, call: Callable[[Any], Any]) -> Any:
        """What the call gives; a fault must not end the run that is only watched."""
        if self._run is None:
            return None
        try:
            with staging_in(self._folder / "wandb" / "data"):
                return call(self._run)
        except Exception as error:
            if not self._faults[what]:
                _log.warning("W&B took no %s: %s", what, error)
            self._faults[what] += 1
            return None


def _package() -> ModuleType:
    try:
        import wandb
    except ImportError:
        raise ImportError(
            "the package wandb is not installed; `pip install 'triax[wandb]'`, or take "
            "tracker=jsonl"
        ) from None
    return wandb


def _kept_id(folder: Path, job_type: str, name: str, group: str | None) -> str:
    """The id of this program's run in this folder, made by its first process.

    In a group it follows from what the run is, so that a task that is requeued to a node without
    the file has the same id; else it is made up. Under an agent of a W&B sweep the run whose scores
    the sweep compares is the one that the agent has made.
    """
    if job_type == SCORING and os.environ.get("WANDB_SWEEP_ID") and os.environ.get("WANDB_RUN_ID"):
        return os.environ["WANDB_RUN_ID"]
    path = folder / STATE_FILE
    held = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if job_type not in held:
        if group is None:
            held[job_type] = uuid.uuid4().hex[:12]
        else:
            # User and folder: two who do the same study have two runs.
            parts = [str(os.getuid()), str(folder.absolute()), group, name, job_type]
            held[job_type] = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
        write_json(path, held)
    return held[job_type]
