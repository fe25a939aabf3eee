"""Model cards: README.md beside the weights, in the layout of the model hub.

The block at the top is the metadata that the hub reads (huggingface.co/docs/hub/model-cards); the
sections follow Mitchell et al. 2019, "Model Cards for Model Reporting".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from triax.records.files import atomic_write
from triax.scoring.significance import mean_interval

CARD_FILE = "README.md"
_TEMPLATE = "card.md.j2"
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
UNKNOWN = "see its source"
# As their sources state them; "repository MIT" where only the carrying repository does.
LICENCES = {
    "2wikimultihopqa": "Apache-2.0",
    "2wikimultihopqa_qa": "Apache-2.0",
    "break_qdmr": "repository MIT",
    "carb": "repository MIT",
    "entity_questions": "MIT",
    "fewrel": "repository MIT",
    "hotpotqa": "CC BY-SA 4.0",
    "hotpotqa_answers": "CC BY-SA 4.0",
    "hotpotqa_qa": "CC BY-SA 4.0",
    "ircot_cot": "Apache-2.0",
    "musique": "CC BY 4.0",
    "musique_qa": "CC BY 4.0",
    "nq_oracle": "CC BY-SA 3.0",
    "oie2016_wiki": "repository MIT",
    "popqa": "MIT; passages of Wikipedia CC BY-SA",
    "popqa_qa": "MIT",
    "probtree_decomposition": "repository MIT",
    "qed": "CC BY-SA 3.0",
    "redocred": "repository MIT",
    "silver_openie": "repositories MIT",
    "strategyqa": "repository MIT",
    "xquad_en": "CC BY-SA 4.0",
}


@dataclass(frozen=True, slots=True)
class Score:
    """A figure on held-out data; the number of items and the interval where they are known."""

    name: str
    value: float
    count: int | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class DataSet:
    """What a run learnt from, and how much of it."""

    name: str
    count: int | None
    licence: str


@dataclass(frozen=True, slots=True)
class CardFacts:
    """All that a card says.

    `environment` is as `triax.runs.manifest.describe_environment` gives it; `config` is the whole
    configuration of the run; `other` are further facts that the task tells of itself.
    """

    name: str
    task: str
    base: str
    command: str
    config: Mapping[str, Any]
    data: Sequence[DataSet]
    scores: Sequence[Score]
    steps: int
    best_step: int
    seed: int
    environment: Mapping[str, Any]
    license: str = "apache-2.0"
    tags: Sequence[str] = ()
    limits: Sequence[str] = ()
    other: Mapping[str, Any] = field(default_factory=dict)
    scored_on: str = "lessons held out from training"


def write_card(folder: Path, facts: CardFacts) -> Path:
    """Writes README.md into a folder of weights, whole or not at all."""
    path = folder / CARD_FILE
    with atomic_write(path) as stream:
        stream.write(render_card(facts))
    return path


def render_card(facts: CardFacts) -> str:
    """The text of a card: metadata as YAML between two lines of dashes, then Markdown."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML
    )
    environment.filters["number"] = _number
    environment.filters["cell"] = _cell
    settings = [(name, _shown(value)) for name, value in sorted(_flat(facts.config).items())]
    return environment.get_template(_TEMPLATE).render(
        facts=facts,
        settings=settings,
        base_is_hub_name=bool(_HUB_NAME.fullmatch(facts.base)),
        data_names=sorted({part.name.rpartition("/")[2] for part in facts.data}),
    )


def scores_of(figures: Mapping[str, float], counts: Mapping[str, int]) -> list[Score]:
    """Scores from the figures of a validation.

    Args:
        figures: what `Task.validate` gave.
        counts: for a figure that is a share of right items, the number of items. Its interval is
            the 95% bootstrap interval over items; a figure that is not named here has none.

    Raises:
        ValueError: a figure is no share of its count.
    """
    found = []
    for name, value in figures.items():
        if not (count := counts.get(name)):
            found.append(Score(name, float(value)))
            continue
        right = round(value * count)
        if abs(value * count - right) > 1e-3 or not 0 <= right <= count:
            raise ValueError(
                f"{name} is {value}, which is no share of {count} items; give counts only for "
                "figures that are the mean of right and wrong"
            )
        interval = mean_interval([1.0] * right + [0.0] * (count - right))
        found.append(Score(name, float(value), count, interval.low, interval.high))
    return found


def data_of(description: Mapping[str, Any]) -> list[DataSet]:
    """The data sets in what `Task.describe` gave.

    It may hold `datasets` {name: {"lessons": count, ...}}, `lessons` {"part/name": count}, or
    `data` [{"name": ..., "lessons": count, "licence": ...}, ...]. A task may call its lessons
    passages or examples.
    """
    if rows := description.get("data"):
        return [
            DataSet(row["name"], _count(row), row.get("licence") or _licence(row["name"]))
            for row in rows
        ]
    if named := description.get("datasets"):
        return [
            DataSet(name, _count(facts), facts.get("licence") or _licence(name))
            for name, facts in named.items()
        ]
    counted = description.get("lessons", {})
    return [DataSet(name, count, _licence(name)) for name, count in counted.items()]


def _count(facts: Mapping[str, Any]) -> int | None:
    names = ("lessons", "passages", "examples", "rows", "count")
    count = next((facts[key] for key in names if key in facts), None)
    return None if count is None else int(count)


def _licence(name: str) -> str:
    return LICENCES.get(name.rpartition("/")[2], UNKNOWN)


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names; lists and what is empty stay as they are."""
    if not isinstance(value, Mapping) or not value:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat |= _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return flat


def _shown(value: Any) -> Any:
    """A setting as a stranger may see it: folders of a machine are nobody's business."""
    is_path = isinstance(value, str) and value.startswith(("/", "~"))
    return "(a folder)" if is_path else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _cell(value: Any) -> str:
    """Text that does not end the cell of a table."""
    return str(value).replace("|", "\\|").replace("\n", " ")
