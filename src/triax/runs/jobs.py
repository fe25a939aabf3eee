"""The jobs of a study: what is to be run, as it was planned, extended and never mixed up.

manifest.jsonl   one job a line: number, name, overrides, values of what is swept
plan.json        what all of them share, so that a later call cannot change it unseen
"""

import itertools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triax.records.files import read_jsonl, write_json, write_jsonl
from triax.runs.settings import differences, flat, is_below, shown_differences

MANIFEST = "manifest.jsonl"
_PLAN = "plan.json"
_NAME = re.compile(r"[\w.=+-]+")


class PlanError(RuntimeError):
    """The jobs cannot be planned or read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a study.

    `overrides` are what its programs are called with, `settings` the value of each swept setting.
    `index` is the folder of the index that it needs; None if it needs none.
    """

    number: int
    name: str
    overrides: tuple[str, ...]
    settings: Mapping[str, Any]
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A job before it has a number, with the whole configuration, references unresolved."""

    name: str
    overrides: tuple[str, ...]
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    index: str | None = None


def read_jobs(path: Path | str) -> list[Job]:
    """The jobs of a manifest, by number.

    Raises:
        PlanError: it is not there, or a line is no job.
    """
    path = Path(path)
    if not path.is_file():
        raise PlanError(f"{path} is not there; run eval/plan_sweep.py first")
    try:
        jobs = [
            Job(**row | {"overrides": tuple(row["overrides"])})
            for row in sorted(read_jsonl(path), key=lambda row: row["number"])
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{path} is no list of jobs ({error}); delete it and plan again") from None
    if [job.number for job in jobs] != list(range(len(jobs))):
        raise PlanError(
            f"{path} has the numbers {[job.number for job in jobs]}, expected 0 to {len(jobs) - 1};"
            " delete it and plan again"
        )
    return jobs


def share(jobs: Sequence[Any], task: int, of: int) -> list[Any]:
    """What task number `task` (from 0) of `of` takes: every so many, so that all are taken once."""
    return list(jobs[task::of])


def plan(folder: Path | str, planned: Sequence[Planned], ignored: Collection[str] = ()) -> list:
    """Adds jobs to the plan of a study; those that are there keep their numbers.

    Args:
        folder: of the study.
        planned: at least one job.
        ignored: dotted settings that may differ from what was planned before: those that change
            no result. Jobs that are named again take the new overrides.

    Returns:
        All jobs of the study now.

    Raises:
        PlanError: two jobs have one name, a setting that is not swept differs from the plan, other
            settings are swept, or with what is there the values make no full grid.
    """
    folder = Path(folder)
    swept = _swept(planned)
    _check_names(planned)
    _check_shared(folder / _PLAN, planned, swept, ignored)
    old = read_jobs(folder / MANIFEST) if (folder / MANIFEST).exists() else []
    jobs = {job.name: job for job in old}
    for one in planned:
        before = jobs.get(one.name)
        if before and before.settings != one.settings:
            raise PlanError(
                f"{one.name} is planned with {dict(before.settings)}, now it has "
                f"{dict(one.settings)}; name= must say what is swept"
            )
        number = before.number if before else len(jobs)
        jobs[one.name] = Job(number, one.name, one.overrides, one.settings, one.index)
    found = sorted(jobs.values(), key=lambda job: job.number)
    _check_grid(found, swept)
    if found != old:
        write_jsonl(folder / MANIFEST, map(asdict, found))
    return found


def grid(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    """The values of each swept setting, in order of their first appearance."""
    values: dict[str, list[Any]] = {}
    for job in jobs:
        for key, value in job.settings.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return values


def _swept(planned: Sequence[Planned]) -> list[str]:
    if not planned:
        raise PlanError("there is no job to plan; expected at least one")
    swept = list(planned[0].settings)
    if not swept:
        raise PlanError(
            "nothing is swept; add +sweep=k, or give a setting several values: "
            "pipeline.num_chunks=1,3"
        )
    return swept


def _check_names(planned: Sequence[Planned]) -> None:
    seen: dict[str, Planned] = {}
    for one in planned:
        if not _NAME.fullmatch(one.name) or one.name.strip(".") == "":
            raise PlanError(
                f"{one.name!r} is no name of a run: letters, digits and any of . - _ + = may be in "
                "it; give another name="
            )
        if other := seen.get(one.name):
            raise PlanError(
                f"two jobs have the name {one.name}: {dict(other.settings)} and "
                f"{dict(one.settings)}; name= must say what is swept, such as "
                "'name=${study}-k${pipeline.num_chunks}'"
            )
        seen[one.name] = one


def _check_shared(
    path: Path, planned: Sequence[Planned], swept: Sequence[str], ignored: Collection[str]
) -> None:
    """Keeps what all jobs share, or holds it against what was kept."""
    configs = [flat(one.config) for one in planned]
    names = {name for config in configs for name in config}
    same = {
        name
        for name in names
        if all(name in one and one[name] == configs[0].get(name) for one in configs)
    }
    places = [_place(key) for key in swept]
    shared = {name: configs[0][name] for name in sorted(same) if not is_below(name, places)}
    found = {"swept": list(swept), "shared": shared, "varied": sorted(names - same)}
    found = json.loads(json.dumps(found))
    if not path.exists():
        write_json(path, found)
        return
    kept = json.loads(path.read_text("utf-8"))
    if sorted(kept["swept"]) != sorted(found["swept"]):
        raise PlanError(
            f"{path.parent} sweeps {kept['swept']}, now {found['swept']} are swept; use a new "
            "study=, or delete the folder"
        )
    passed = [*ignored, *kept["varied"], *found["varied"]]
    if changed := differences(kept["shared"], found["shared"], passed):
        raise PlanError(
            f"{path.parent} was planned with other settings ({shown_differences(changed)}); use a "
            "new study=, or delete the folder"
        )


def _place(key: str) -> str:
    """Where in the configuration an override such as `+pipeline/router@pipeline.router` ends."""
    return key.lstrip("+~").rpartition("@")[2].replace("/", ".")


def _check_grid(jobs: Sequence[Job], swept: Sequence[str]) -> None:
    values = grid(jobs)
    there = [tuple(job.settings[key] for key in swept) for job in jobs]
    wanted = itertools.product(*(values[key] for key in swept))
    if missing := [one for one in wanted if one not in there]:
        shown = ", ".join(str(dict(zip(swept, one, strict=True))) for one in missing[:4])
        raise PlanError(
            f"with the {len(jobs)} jobs of the study {len(missing)} of the grid are missing, among "
            f"them {shown}; give all values of each setting"
        )
