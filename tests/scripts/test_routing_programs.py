"""From an index to a routed answer: ranks, labels, a trained router, its controls, a hybrid."""

import json
import sys
from pathlib import Path

import pytest
from running import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

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
    with FakeServer(lambda body: "graph") as server:
        done = run(
            home,
            "eval",
            "routing",
            f"labels={labels}/demo",
            f"test_labels={labels}/demo-dev",
            f"router_trained.reader.adapter={weights}",
            "systems=[always_vanilla,always_graph,word_count,kind,tfidf,random,asked,trained,oracle]",
            *("llm=http", "llm.model=fake", f"llm.base_url={server.base_url}"),
        )
    table = json.loads((runs / "routing" / "routing" / "metrics.json").read_text())
    assert table["oracle"]["routing/f1"] == 1.0 and table["always_graph"]["routing/recall"] == 1.0
    assert table["always_vanilla"]["routing/graph_ratio"] == 0.0
    assert table["asked"]["routing/graph_ratio"] == 1.0 and table["asked"]["ms_alone"] > 0
    assert "| trained" in done.stdout
    assert (runs / "routing" / "routing" / "sweep.svg").read_text().startswith("<svg")


def test_missing_pieces_are_named(home):
    gone = run(home, "train", "label_router", "name=x", "ranks=[/no/such]", check=False)
    assert gone.returncode and "eval/gold_ranks.py" in gone.stderr
    gone = run(home, "eval", "routing", "labels=/no/such", check=False)
    assert gone.returncode and "train/label_router.py" in gone.stderr


KINDS = {True: "who is the mother of the director of film {}", False: "when did film {} come out"}


@pytest.fixture
def answered(home, tmp_path):
    """Labels of 60 questions, and runs in which all of 24 others went one way, hand-made.

    Every third needs the graph. Vanilla retrieval answers the others, the graph these; a rewriting
    helps nothing. The last two have no label; the graph answers both.
    """
    from triax.extraction.verbalize import propositions
    from triax.indexing.hashing import HashingEncoder
    from triax.indexing.updates import build_index
    from triax.records.documents import Chunk
    from triax.records.routes import RouterExample
    from triax.records.triplets import Extraction, Triplet

    def example(n):
        need = n % 3 == 0
        text = KINDS[need].format(n)
        return RouterExample(f"q{n}", text, "", not need, need, None, None, 1).to_json()

    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    labels = {"train": range(40), "validation": range(40, 60), "test": range(60, 82)}
    for part, numbers in labels.items():
        write(tmp_path / f"labels/{part}.jsonl", [example(n) for n in numbers])
    (tmp_path / "labels/config.json").write_text('{"part": "test"}')
    # Questions that a router learnt from are in the runs too, and must not count.
    for side in ("vanilla", "graph", "rewritten"):
        rows = []
        for n in [0, *range(60, 84)]:
            good = {"vanilla": n % 3 != 0, "graph": n % 3 == 0 or n > 81, "rewritten": False}[side]
            good = float(good)
            rows.append({"question_id": f"q{n}", "em": good, "f1": good, "recall@5": good / 2})
        write(tmp_path / side / "per_question.jsonl", rows)
        texts = [KINDS[n % 3 == 0].format(n) for n in [0, *range(60, 84)]]
        told = [
            {"question_id": row["question_id"], "question": text} for row, text in zip(rows, texts)
        ]
        write(tmp_path / side / "answers.jsonl", told)
    chunks = [Chunk(f"c{n}", f"d{n}", f"film {n} came out when", "") for n in range(10)]
    facts = propositions([Extraction("c0", (Triplet("film 0", "came out", "1990"),))])
    build_index(chunks, facts, HashingEncoder(), tmp_path / "index", extractor="toy")
    return [f"labels={tmp_path}/labels", f"searched_index={tmp_path}/index", "encoder=hashing"] + [
        f"{side}_run={tmp_path}/{side}" for side in ("vanilla", "graph", "rewritten")
    ]


def test_answers_are_composed_by_route(home, answered):
    pytest.importorskip("sklearn")
    systems = "systems=[always_vanilla,always_graph,tfidf,gated,gated_boosted,oracle]"
    done = run(home, "eval", "routing", "name=composed", "share=0.3334", systems, *answered)
    assert "answers of 24 questions" in done.stdout and "gated: margin below" in done.stdout
    folder = Path(home["TRIAX_RUNS"]) / "routing" / "composed"
    table = json.loads((folder / "metrics.json").read_text())
    f1 = {name: row["answer/f1"] for name, row in table.items() if name != "config"}
    # 8 of 24 (60 to 81 by threes) need the graph, which answers 82 and 83 besides.
    assert f1["always_vanilla"] == pytest.approx(16 / 24)
    assert f1["always_graph"] == pytest.approx(10 / 24)
    assert f1["oracle"] == f1["tfidf"] == pytest.approx(1.0)
    assert table["oracle"]["answer/graph_ratio"] == pytest.approx(8 / 24)
    equal = json.loads((folder / "at_share.json").read_text())
    assert equal["tfidf"]["answer/f1"] == 1.0
    assert equal["chance"]["answer/f1"] == pytest.approx((2 * 16 + 10) / 72, abs=1e-3)
    sweep = [json.loads(line) for line in (folder / "sweep.jsonl").open()]
    assert {row["router"] for row in sweep} == {"tfidf", "gated", "gated_boosted"}
    ends = {row["graph_ratio"]: row["f1"] for row in sweep if row["graph_ratio"] in (0, 1)}
    assert ends == {0: pytest.approx(16 / 24), 1: pytest.approx(10 / 24)}
    found = [json.loads(line)["recall@5"] for line in (folder / "sweep_recall.jsonl").open()]
    assert max(found) == 0.5  # all at the best cut
    # What is rewritten is lost: with growing tau the 8 of the graph, one after another.
    taus = [json.loads(line) for line in (folder / "tau.jsonl").open()]
    taus = [row for row in taus if row["router"] == "tfidf"]
    assert taus[0] == {"router": "tfidf", "tau": 0.0, "rewritten_ratio": 0.0, "f1": 1.0}
    assert taus[-1]["rewritten_ratio"] == pytest.approx(8 / 24)
    for row in taus:
        assert row["f1"] == pytest.approx(1 - row["rewritten_ratio"])
    for figure in ("sweep", "sweep_recall", "tau"):
        assert (folder / f"{figure}.svg").read_text().startswith("<svg")


def test_what_cannot_be_composed_or_searched_is_said(home, answered):
    found = run(home, "eval", "routing", "systems=[gated,oracle]", *answered[:1])
    assert "left out: gated" in found.stdout and "| gated" not in found.stdout
    gone = run(home, "eval", "routing", *answered[:1], answered[3], check=False)
    assert gone.returncode and "give both" in gone.stderr
    gone = run(home, "eval", "routing", *answered[:1], "searched_index=/no/such", check=False)
    assert gone.returncode and "eval/index.py" in gone.stderr
