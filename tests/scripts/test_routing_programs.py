"""From an index to a routed answer: ranks, labels, a trained router, its controls, a hybrid."""

import json
from pathlib import Path

import pytest
from running import run

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo"]
WORDS = ["who", "which", "film", "director", "of", "the", "what", "where", "was", "born", "?"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("routing")
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    return {key: str(folder / name) for key, name in places.items()} | {"HOME": str(folder)}


def told(done):
    return json.loads(done.stdout.splitlines()[-1])


def test_from_an_index_to_a_routed_answer(home, make_base):
    for program in ("extract", "index"):
        run(home, "eval", program, *SHARED)
    for split in ("test", "dev"):
        options = [f"name={split}", f"corpus.split={split}", *SHARED]
        found = told(run(home, "eval", "gold_ranks", *options))
        assert {"dense", "graph"} <= set(found)
    runs, artifacts = Path(home["TRIAX_RUNS"]), Path(home["TRIAX_ARTIFACTS"])
    ranks = [json.loads(line) for line in (runs / "ranks/test/dense.jsonl").open()]
    assert all(1 <= rank <= 130 for row in ranks for rank in row["ranks"])
    done = run(home, "train", "label_router", "name=demo", f"ranks=[{runs}/ranks/test]", "cut=null")
    examples = told(done)["examples"]
    assert sum(examples.values()) == len(ranks)  # without a cut nothing is left out
    assert "graph only" in done.stdout and "names" in done.stdout
    test = ["name=demo-dev", f"ranks=[{runs}/ranks/dev]", "cut=null", "part=test"]
    run(home, "train", "label_router", *test)
    labels = artifacts / "router_labels"
    base = make_base(WORDS, positions=80)
    schedule = [f"schedule.{key}=4" for key in ("steps", "eval_every", "checkpoint_every")]
    base = [f"task.base={base}", "task.batch_size=8", "task.rank=2"]
    options = ["name=first", f"task.labels={labels}/demo", *schedule, *base]
    weights = told(run(home, "train", "router", *options))["weights"]
    assert 0.0 <= json.loads((Path(weights) / "config.json").read_text())["threshold"] < 0.5
    done = run(
        home,
        "eval",
        "routing",
        f"labels={labels}/demo",
        f"test_labels={labels}/demo-dev",
        f"router_trained.reader.adapter={weights}",
        "systems=[always_vanilla,always_graph,word_count,tfidf,random,trained,oracle]",
    )
    table = json.loads((runs / "routing" / "routing" / "metrics.json").read_text())
    assert table["oracle"]["routing/f1"] == 1.0 and table["always_graph"]["routing/recall"] == 1.0
    assert table["always_vanilla"]["routing/graph_ratio"] == 0.0
    assert "| trained" in done.stdout
    assert (runs / "routing" / "routing" / "sweep.svg").read_text().startswith("<svg")


def test_missing_pieces_are_named(home):
    gone = run(home, "train", "label_router", "name=x", "ranks=[/no/such]", check=False)
    assert gone.returncode and "eval/gold_ranks.py" in gone.stderr
    gone = run(home, "eval", "routing", "labels=/no/such", check=False)
    assert gone.returncode and "train/label_router.py" in gone.stderr
