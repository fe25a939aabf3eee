import pytest
import yaml
from huggingface_hub import ModelCard
from scipy.stats import binom

from triax.training.card import (
    CardFacts,
    DataSet,
    Score,
    data_of,
    render_card,
    scores_of,
    write_card,
)

ENVIRONMENT = {
    "time": "2026-01-02T03:04:05+00:00",
    "python": "3.11.7",
    "machine": "x86_64",
    "cores": 2,
    "versions": {"jax": "0.10.2", "faiss-cpu": None},
    "git": "abc123",
    "git_is_clean": False,
}


def facts(**changes):
    given = {
        "name": "solver: first",
        "task": "resolve",
        "base": "sentence-transformers/all-MiniLM-L6-v2",
        "command": "python train/solver.py name=first",
        "config": {"seed": 3, "task": {"rank": 8, "sources": {"a|b": 1}}, "buckets": [1, 2]},
        "data": [DataSet("musique", 1234, "CC BY 4.0"), DataSet("popqa", None, "MIT")],
        "scores": [Score("exact_match", 0.5, 100, 0.4, 0.6), Score("ece", 0.0312)],
        "steps": 2000,
        "best_step": 1500,
        "seed": 3,
        "environment": ENVIRONMENT,
        "limits": ["Dates are weak."],
        "other": {"rows": 77},
    }
    return CardFacts(**given | changes)


def test_the_hub_reads_the_metadata():
    """Parsed by the hub's own client, and by a YAML library."""
    text = render_card(facts())
    card = ModelCard(text)
    assert card.data.license == "apache-2.0"
    assert card.data.library_name == "triax"
    assert card.data.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert card.data.datasets == ["musique", "popqa"]
    assert card.data.metrics == ["exact_match", "ece"]
    assert card.data.tags == ["triax", "resolve", "question-answering"]
    assert set(yaml.safe_load(text.split("---\n")[1])) == {
        "license",
        "library_name",
        "base_model",
        "datasets",
        "metrics",
        "tags",
    }


def test_a_card_says_all_that_is_needed_to_judge_and_repeat():
    text = render_card(facts())
    for line in (
        "# solver: first",
        "| musique | 1,234 | CC BY 4.0 |",
        "| popqa | – | MIT |",
        "| exact_match | 0.500 | 100 | [0.400, 0.600] |",
        "| ece | 0.031 | – | – |",
        "- Dates are weak.",
        "python train/solver.py name=first",
        "| task.rank | 8 |",
        "| task.sources.a\\|b | 1 |",
        "| buckets | [1, 2] |",
        "| rows | 77 |",
        "| jax | 0.10.2 |",
        "| faiss-cpu | not installed |",
        "`abc123` with uncommitted changes, 2026-01-02T03:04:05+00:00.",
    ):
        assert line in text.splitlines(), line
    assert "Of the weights after step 1500 of 2000" in text
    assert "Seed 3. Python 3.11.7, x86_64,\n2 cores; commit" in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_odd_values_stay_values():
    text = render_card(
        facts(
            base="/some/folder",
            config={"data": "/data/of/mine"},
            tags=["a: b", "- c"],
            data=[],
            license="cc-by-4.0",
        )
    )
    metadata = yaml.safe_load(text.split("---\n")[1])
    assert metadata["tags"][-2:] == ["a: b", "- c"]
    assert "base_model" not in metadata and "datasets" not in metadata
    assert metadata["license"] == "cc-by-4.0"
    assert "names no data sets" in text
    assert "| data | (a folder) |" in text and "/data/of" not in text


def test_data_sets_of_several_parts_stand_once_in_the_metadata():
    data = [DataSet(f"{part}/musique", 1, "CC BY 4.0") for part in ("decompose", "answer")]
    text = render_card(facts(data=data))
    assert yaml.safe_load(text.split("---\n")[1])["datasets"] == ["musique"]
    assert "| answer/musique | 1 | CC BY 4.0 |" in text


def test_a_card_is_written_beside_the_weights(tmp_path):
    path = write_card(tmp_path, facts())
    assert path == tmp_path / "README.md"
    assert path.read_text("utf-8") == render_card(facts())


def test_a_share_has_the_interval_of_its_items():
    """Against the quantiles of the binomial distribution, which the bootstrap of a share has."""
    whole, half, other = scores_of({"all": 1.0, "half": 0.5, "ece": 0.02}, {"all": 40, "half": 100})
    assert (half.count, other.count) == (100, None)
    assert half.low == pytest.approx(binom.ppf(0.025, 100, 0.5) / 100, abs=0.011)
    assert half.high == pytest.approx(binom.ppf(0.975, 100, 0.5) / 100, abs=0.011)
    assert (whole.low, whole.high) == (1.0, 1.0)
    assert (other.value, other.low, other.high) == (0.02, None, None)


@pytest.mark.parametrize("value", [0.505, 1.2, -0.1])
def test_what_is_no_share_is_named(value):
    with pytest.raises(ValueError, match=f"f1 is {value}, which is no share of 100 items"):
        scores_of({"f1": value}, {"f1": 100})


@pytest.mark.parametrize(
    "description",
    [
        {"datasets": {"musique": {"lessons": 5}, "mine": {"lessons": 7, "licence": "CC0-1.0"}}},
        {
            "data": [{"name": "musique", "lessons": 5, "licence": None}]
            + [{"name": "mine", "lessons": 7, "licence": "CC0-1.0"}]
        },
    ],
)
def test_data_sets_are_read_from_what_a_task_tells(description):
    assert data_of(description) == [
        DataSet("musique", 5, "CC BY 4.0"),
        DataSet("mine", 7, "CC0-1.0"),
    ]


@pytest.mark.parametrize("word", ["lessons", "passages", "examples"])
def test_a_task_may_call_its_lessons_otherwise(word):
    assert data_of({"datasets": {"carb": {word: 753.0, "triplets": 9.0}}})[0].count == 753


def test_lessons_of_several_parts_are_told_apart():
    found = data_of({"lessons": {"decompose/musique": 5, "answer/musique": 6, "x/odd": 1}})
    assert found == [
        DataSet("decompose/musique", 5, "CC BY 4.0"),
        DataSet("answer/musique", 6, "CC BY 4.0"),
        DataSet("x/odd", 1, "see its source"),
    ]
    assert data_of({}) == []
