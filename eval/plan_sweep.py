"""The jobs of a sweep, in a list that the tasks of a Slurm array share.

python eval/plan_sweep.py +sweep=k study=hotpot corpus=hotpotqa pipeline.num_chunks=2,4

It takes what `eval/answer.py -m` takes, and Hydra itself expands it. Nothing is run: it writes
runs/studies/<study>/manifest.jsonl, and wandb_sweep.yaml of the same values, and says how both are
started. Planned again with more values, the study grows; its jobs keep their numbers.
"""

import json
import shlex
import sys
from inspect import signature
from pathlib import Path

import hydra
import wiring
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from triax.records.files import atomic_write
from triax.runs.jobs import MANIFEST, Job, PlanError, Planned, grid, plan, read_jobs
from triax.tracking.wandb_sweeps import sweep_config

METRIC = "answer/f1"
# Hydra shows something instead of running.
SHOWING = {"--cfg", "-c", "--help", "-h", "--hydra-help", "--info", "-i", "--version"}
planned: list[Planned] = []
places: set[Path] = set()


@hydra.main(version_base="1.3", config_path="../conf", config_name="run")
def main(cfg: DictConfig) -> None:
    """Called by Hydra once for each job."""
    if not cfg.get("study"):
        sys.exit("error: the sweep has no study; add +sweep=k study=NAME, or +study=NAME")
    hydra_cfg = HydraConfig.get()
    overrides = tuple(hydra_cfg.overrides.task)
    folder = Path(cfg.paths.runs).expanduser() / "studies" / cfg.study
    _refuse_held(cfg, folder)
    keys = [*(hydra_cfg.sweeper.params or {}), *_swept_by_hand()]
    settings = {key: _value(cfg, key, overrides) for key in dict.fromkeys(keys)}
    config = OmegaConf.to_container(cfg, resolve=False)
    planned.append(Planned(cfg.name, overrides, settings, config, _index(cfg)))
    places.add(folder)


def _swept_by_hand() -> list[str]:
    """What the command line gives several values."""
    given = [one for one in sys.argv[1:] if not one.startswith("-")]
    return [
        one.get_key_element()
        for one in OverridesParser.create().parse_overrides(given)
        if one.is_sweep_override()
    ]


def _value(cfg: DictConfig, key: str, overrides: tuple[str, ...]):
    """The value of a swept setting; of a part that is chosen by name, that name."""
    found = OmegaConf.select(cfg, key.lstrip("+"), default=None)
    if not isinstance(found, bool | int | float | str):
        found = next(one for one in overrides if one.startswith(f"{key}=")).partition("=")[2]
    return found


def _refuse_held(cfg: DictConfig, folder: Path) -> None:
    """A run of another study would be taken for the one of this job."""
    holder = None
    config = wiring.run_folder(cfg, cfg.name) / "config.json"
    if config.exists():
        study = json.loads(config.read_text("utf-8")).get("study")
        holder = f"study {study}" if study else "no study"
    others = [one for one in folder.parent.glob(f"*/{MANIFEST}") if one.parent != folder]
    for manifest in others:
        if any(job.name == cfg.name for job in read_jobs(manifest)):
            holder = f"study {manifest.parent.name}"
    if holder not in (None, f"study {cfg.study}"):
        raise PlanError(f"the run {cfg.name} is there and belongs to {holder}; use a new study=")


def _index(cfg: DictConfig) -> str | None:
    if not _takes_index(wiring.plain(cfg.pipeline)):
        return None
    corpus = _corpus(json.dumps([wiring.plain(cfg.corpus), wiring.plain(cfg.chunks)]), cfg)
    return str(wiring.index_folder(cfg, corpus))


def _takes_index(part) -> bool:
    """Whether a part, or a part of it, is a constructor that takes the index."""
    if isinstance(part, list):
        return any(map(_takes_index, part))
    if not isinstance(part, dict):
        return False
    target = part.get("_target_")
    if target and "index" in signature(get_object(target)).parameters:
        return True
    return any(map(_takes_index, part.values()))


_corpora: dict = {}


def _corpus(key: str, cfg: DictConfig):
    """The same corpus is read once for all jobs."""
    if key not in _corpora:
        _corpora[key] = wiring.open_corpus(cfg)[0]
    return _corpora[key]


def _write(folder: Path) -> None:
    before = (folder / MANIFEST).exists() and read_jobs(folder / MANIFEST)
    jobs = plan(folder, planned, (*wiring.IGNORED, "name"))
    manifest = folder / MANIFEST
    program = Path(__file__).with_name("run_jobs.py")
    sweep = sweep_config(folder.name, grid(jobs), str(program), str(manifest.resolve()), METRIC)
    with atomic_write(folder / "wandb_sweep.yaml") as stream:
        yaml.safe_dump(sweep, stream, sort_keys=False)
    word = "as they were" if before == jobs else f"{len(before or [])} before"
    print(f"{manifest}: {len(jobs)} jobs ({word})")
    _say_how(manifest, jobs)


def _say_how(manifest: Path, jobs: list[Job]) -> None:
    path = shlex.quote(str(manifest))
    missing = sorted({job.index for job in jobs if job.index} - _built(jobs))
    dependency = ""
    if missing:
        print(f"\n{len(missing)} index(es) are not built yet: {', '.join(missing)}. First one job:")
        print(f"  first=$(sbatch --parsable slurm/sweep_array.sbatch {path} prepare=true)")
        dependency = " --dependency=afterok:$first --kill-on-invalid-dep=yes"
    print("\nAn array, each task taking every so many of the jobs (finished ones are skipped):")
    print(f"  sbatch --array=0-{len(jobs) - 1}{dependency} slurm/sweep_array.sbatch {path}")
    print("\nAgents of W&B, on nodes that reach its server:")
    print(f"  wandb sweep {shlex.quote(str(manifest.with_name('wandb_sweep.yaml')))}")
    print(f"  sbatch --array=0-{len(jobs) - 1}{dependency} slurm/wandb_agent.sbatch SWEEP_ID")
    print(f"\nThen: python eval/study.py study={shlex.quote(manifest.parent.name)}")


def _built(jobs: list[Job]) -> set[str]:
    return {job.index for job in jobs if job.index and (Path(job.index) / "manifest.json").exists()}


if __name__ == "__main__":
    if any(one.startswith("hydra/launcher") for one in sys.argv):
        sys.exit(
            "error: jobs are only listed here; leave out hydra/launcher=, or call answer.py -m"
        )
    if not SHOWING & set(sys.argv) and not {"-m", "--multirun"} & set(sys.argv):
        sys.argv.append("-m")
    try:
        main()
        if planned:
            _write(*places)
    except PlanError as error:
        sys.exit(f"error: {error}")
