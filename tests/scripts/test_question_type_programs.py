"""Question types from a training to a table: tiny data, a tiny base, a model that is a socket."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

FORMS = {
    "compositional": "who is the mother of the director of {} ?",
    "comparison": "who is older , {} or ada ?",
    "bridge_comparison": "is the director of {} or the director of ada older ?",
    "inference": "who is the uncle of {} ?",
}
NAMES = [f"n{number}" for number in range(12)]
WORDS = "who is the mother director uncle of older or ada , ?".split()


@pytest.fixture
def home(tmp_path):
    """All four types in train and dev, and as many questions without one."""
    for split, names in (("train", NAMES[:9]), ("dev", NAMES[9:])):
        rows = [
            {"id": f"{kind} {name}", "question": text.format(name), "type": kind}
            for name in names
            for kind, text in FORMS.items()
        ]
        rows += [{"id": f"? {name}", "question": name, "type": None} for name in names]
        (tmp_path / "data" / "toy").mkdir(parents=True, exist_ok=True)
        path = tmp_path / "data" / "toy" / f"{split}.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return {
        "HOME": str(tmp_path),
        "TRIAX_DATA": str(tmp_path / "data"),
        "TRIAX_RUNS": str(tmp_path / "runs"),
        "TRIAX_CACHE": str(tmp_path / "cache"),
    }


def told(done):
    return json.loads(done.stdout.splitlines()[-1])


def test_from_a_training_to_a_table(home, make_base):
    pytest.importorskip("sklearn")
    schedule = [f"schedule.{key}=2" for key in ("steps", "eval_every", "checkpoint_every")]
    small = [f"task.base={make_base([*WORDS, *NAMES])}", "task.rank=2", "task.max_length=24"]
    share = ["task.datasets=[toy]", "task.held_out=0.3", "task.batch_tokens=192"]
    made = told(run(home, "train", "question_type", "name=first", *schedule, *small, *share))
    assert made["steps"] == 2 and 0 <= made["macro_f1"] == made["macro_f1_toy"] <= 1
    toy = ["datasets=[toy]", "learnt_from=[toy]", "held_out=0.3", "num_asked=4"]
    trained = f"classifiers.trained.reader.adapter={made['weights']}"
    systems = "systems=[regex,tfidf,trained,asked]"
    with FakeServer(lambda body: "comparison") as server:
        model = ["llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"]
        done = run(home, "eval", "question_types", *toy, trained, systems, *model)
    folder = Path(told(done)["folder"])
    found = json.loads((folder / "metrics.json").read_text())
    table = found["table"]
    assert {name: row["questions"] for name, row in table.items()} == {
        "toy, regex": 12,
        "toy, tfidf": 12,
        "toy, trained": 12,
        "toy, asked": 4,  # the first ones only, one of each type
    }
    assert table["toy, regex"]["types/macro_f1"] == table["toy, tfidf"]["types/macro_f1"] == 1.0
    # Of one question a type it calls all comparisons: 1 hit of 4 told; of three types, 2 of 2.
    asked = table["toy, asked"]
    assert asked["types/macro_f1"] == pytest.approx(2 * 1 / (1 + 4) / 4)
    assert asked["types/macro_f1_merged"] == pytest.approx(2 * 2 / (2 + 4) / 3)
    assert asked["types/accuracy"] == 0.25 and asked["ms_alone"] > 0
    assert asked["confusion"]["inference"]["comparison"] == 1
    assert found["differences"]["toy, trained - asked"]["num_questions"] == 4
    rows = [json.loads(line) for line in (folder / "per_question.jsonl").open()]
    assert len(rows) == 3 * 12 + 4 and {row["gold"] for row in rows} == set(asked["confusion"])
    assert "| toy, regex" in (folder / "table.md").read_text()
    assert "macro F1 of three" in done.stdout


def test_what_is_not_there_is_said(home):
    gone = run(home, "eval", "question_types", "systems=[regex,guessed]", check=False)
    assert gone.returncode and "['guessed']; expected some of" in gone.stderr
    gone = run(home, "eval", "question_types", "systems=[regex]", "datasets=[none]", check=False)
    assert gone.returncode and "none/dev.jsonl.gz is missing" in gone.stderr
    assert "Traceback" not in gone.stderr
