"""A search over settings that any number of processes share, by way of one file (Optuna).

Optuna proposes (`ask`) and is told; what is proposed is a job like any other. The file is Optuna's
journal, which needs no server and no more of a shared file system than links.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from triax.runs.attempts import Worker
from triax.runs.settings import differences, shown_differences
from triax.runs.statuses import (
    SILENCE_S,
    JobStatus,
    age,
    is_before,
    is_held,
    load,
    save,
    status_path,
)

if TYPE_CHECKING:
    import optuna

JOURNAL = "optuna.journal"
# Seconds after which the lock of a process that died is taken from it.
_LOCK_GRACE_S = 30


class SearchError(RuntimeError):
    """The search cannot go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A trial that this process is to run: its number, the name of its run, its settings."""

    number: int
    name: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Best:
    """The best trial so far, and how many are there."""

    name: str
    settings: Mapping[str, Any]
    value: float
    finished: int
    failed: int
    running: int


class Search:
    """One study of Optuna in the folder of a study.

    Trials of processes that died are proposed again under the name of their run, which so takes
    up where it was.
    """

    def __init__(
        self,
        folder: Path | str,
        space: Mapping[str, "optuna.distributions.BaseDistribution"],
        shared: Mapping[str, Any],
        *,
        trials: int,
        direction: str = "maximize",
        seed: int = 0,
        make_sampler: Callable[..., "optuna.samplers.BaseSampler"] | None = None,
    ):
        """Opens the study, or makes it.

        Args:
            folder: of the study; its name begins the names of the runs.
            space: what can be chosen for each setting.
            shared: flat settings that all trials have, by dotted name.
            trials: how many there are to be, those that failed included.
            direction: "maximize" or "minimize".
            seed: with the number of a trial it decides what is drawn for it.
            make_sampler: takes `seed`; default Optuna's TPE.

        Raises:
            SearchError: the study was begun with other shared settings.
            ImportError: Optuna is not installed.
        """
        try:
            import optuna
        except ImportError:
            raise ImportError(
                "the package optuna is not installed; `pip install 'triax[slurm]'`"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._space, self._trials, self._seed = dict(space), trials, seed
        self._make_sampler = make_sampler or optuna.samplers.TPESampler
        storage = optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(self._folder / JOURNAL))
        )
        with self._alone():
            self._study = optuna.create_study(
                storage=storage,
                study_name=self._folder.name,
                direction=direction,
                load_if_exists=True,
            )
            self._check(shared, direction)

    def propose(self, worker: Worker) -> Proposal | None:
        """The next trial for this process; None once all are taken.

        Its status is written, so that others see that it runs.
        """
        import optuna

        with self._alone():
            self._take_from_the_dead(worker)
            found = self._study.get_trials(deepcopy=False)
            replaced = {trial.user_attrs.get("replaces") for trial in found}
            kept = [trial for trial in found if trial.number not in replaced]
            waiting = [t for t in found if t.state == optuna.trial.TrialState.WAITING]
            if not waiting and len(kept) >= self._trials:
                return None
            # A number for each draw: a process that starts again draws nothing twice.
            drawn = len(found) - len(waiting)
            seed = np.random.SeedSequence([self._seed, drawn]).generate_state(1)[0]
            self._study.sampler = self._make_sampler(seed=int(seed))
            trial = self._study.ask(self._space)
            name = trial.user_attrs.get("run", f"{self._folder.name}-{trial.number:03d}")
            trial.set_user_attr("run", name)
            trial.set_user_attr("worker", asdict(worker))
            save(self._folder, JobStatus(name, "running", worker))
            return Proposal(trial.number, name, trial.params)

    def tell(self, proposal: Proposal, value: float | None) -> bool:
        """Hands in what came of a trial; None if its run failed.

        Returns:
            False if it was given to another process meanwhile, whose value counts.
        """
        import optuna

        with self._alone():
            found = self._study.get_trials(deepcopy=False)[proposal.number]
            if found.state.is_finished():
                return False
            state = optuna.trial.TrialState.FAIL if value is None else None
            self._study.tell(proposal.number, value, state=state)
            return True

    def best(self) -> Best | None:
        """The best trial so far; None while none is finished."""
        import optuna

        found = self._study.get_trials(deepcopy=False)
        states = optuna.trial.TrialState
        replaced = {trial.user_attrs.get("replaces") for trial in found}
        count = {
            state: sum(t.state == state for t in found if t.number not in replaced)
            for state in (states.COMPLETE, states.FAIL, states.RUNNING)
        }
        if not count[states.COMPLETE]:
            return None
        best = self._study.best_trial
        return Best(
            best.user_attrs["run"],
            best.params,
            best.value,
            count[states.COMPLETE],
            count[states.FAIL],
            count[states.RUNNING],
        )

    def _take_from_the_dead(self, worker: Worker) -> None:
        """Proposes anew what processes had that are no more; the lock is held."""
        import optuna

        found = self._study.get_trials(deepcopy=False)
        replaced = {trial.user_attrs.get("replaces") for trial in found}
        for trial in found:
            if trial.state != optuna.trial.TrialState.RUNNING:
                continue
            name = trial.user_attrs.get("run")
            if name and self._is_alive(name, worker):
                continue
            if trial.number not in replaced:
                again = {"replaces": trial.number} | ({"run": name} if name else {})
                self._study.enqueue_trial(trial.params, user_attrs=again)
            self._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def _is_alive(self, name: str, worker: Worker) -> bool:
        """Whether a process is still to tell what came of the trial of this run."""
        status = load(self._folder, name)
        if status is None or status.state == "stopped":
            return False
        if status.state == "running":
            return status.attempt == worker or is_held(status, worker)
        # The run has ended, and its process is about to tell, or died just before.
        return age(status_path(self._folder, name)) <= SILENCE_S and not is_before(
            status.attempt, worker
        )

    def _check(self, shared: Mapping[str, Any], direction: str) -> None:
        before = self._study.user_attrs.get("shared")
        if before is None:
            self._study.set_user_attr("shared", dict(shared))
        elif changed := differences(before, shared):
            raise SearchError(
                f"{self._folder} searches with other settings ({shown_differences(changed)}); use "
                "a new study=, or delete the folder"
            )
        if self._study.direction.name.lower() != direction:
            raise SearchError(
                f"{self._folder} is to {self._study.direction.name.lower()}, now it says "
                f"{direction}; use a new study=, or delete the folder"
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time looks at what is there and takes a trial."""
        from optuna.storages.journal import JournalFileSymlinkLock

        (self._folder / "search").touch()
        lock = JournalFileSymlinkLock(str(self._folder / "search"), _LOCK_GRACE_S)
        lock.acquire()
        try:
            yield
        finally:
            lock.release()
