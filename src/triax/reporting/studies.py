"""What a sweep varied and what came of it: runs that differ in a few settings, as lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from triax.runs.settings import flat

Settings = Mapping[str, Any]
_TARGET = "._target_"


def varied(configs: Mapping[str, Mapping[str, Any]], ignored: Sequence[str] = ()) -> list[str]:
    """The dotted names of settings in which the configurations differ, sorted.

    A setting that only some have counts as None in the others. Where another class is made, as for
    another pipeline, that alone is named (`pipeline._target_`), not what goes with it.

    Args:
        configs: nested configuration by run.
        ignored: dotted names, or beginnings of them up to a dot, that are passed over.
    """
    each = [flat(config) for config in configs.values()]
    names = {name for one in each for name in one}
    found = [
        name
        for name in names
        if not any(name == part or name.startswith(f"{part}.") for part in ignored)
        and any(one.get(name) != each[0].get(name) for one in each[1:])
    ]
    made = [name.removesuffix(_TARGET) for name in found if name.endswith(_TARGET)]
    return sorted(
        name
        for name in found
        if not any(name.startswith(f"{part}.") and name != part + _TARGET for part in made)
    )


def settings_of(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The values of these settings, None where the configuration has none."""
    values = flat(config)
    return {name: values.get(name) for name in names}


def shown(settings: Settings) -> str:
    """Settings by the last part of their names.

    >>> shown({"pipeline.num_chunks": 5, "pipeline._target_": "triax.pipelines.t2rag.T2RAG"})
    'num_chunks=5, pipeline=T2RAG'
    """
    parts = []
    for name, value in settings.items():
        if name.endswith(_TARGET):
            name, value = name.removesuffix(_TARGET), str(value).rpartition(".")[2]
        parts.append(f"{name.rpartition('.')[2]}={value}")
    return ", ".join(parts)


def lines_over(
    rows: Sequence[tuple[Settings, Mapping[str, Any]]], x: str, y: str
) -> dict[str, list[tuple[float, float]]]:
    """A line for each choice of the other settings: points (setting `x`, score `y`) by rising x.

    Rows without the score are left out.

    Raises:
        ValueError: a value of `x` is no number.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for settings, scores in rows:
        value = settings.get(x)
        if not is_number(value):
            raise ValueError(f"{x} has the value {value!r}; expected numbers to draw over")
        if scores.get(y) is not None:
            others = {name: one for name, one in settings.items() if name != x}
            lines.setdefault(shown(others) or y, []).append((float(value), float(scores[y])))
    return {name: sorted(points) for name, points in lines.items()}


def best_so_far(
    scores: Sequence[float | int | None], direction: str = "maximize"
) -> dict[str, list[tuple[float, float]]]:
    """Two lines over the number of the trial from 1: each score, and the best up to it.

    Scores that are None are left out.

    >>> best_so_far([0.5, 0.25, 0.75])["best so far"]
    [(1.0, 0.5), (2.0, 0.5), (3.0, 0.75)]

    Raises:
        ValueError: the direction is neither maximize nor minimize.
    """
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"the direction is {direction!r}, expected maximize or minimize")
    better = max if direction == "maximize" else min
    each = [(float(n), float(one)) for n, one in enumerate(scores, 1) if one is not None]
    best: list[tuple[float, float]] = []
    for number, score in each:
        best.append((number, better(score, best[-1][1]) if best else score))
    return {"best so far": best, "each trial": each}


def is_number(value: Any) -> bool:
    """Whether a setting can be an axis: yes and no are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)
