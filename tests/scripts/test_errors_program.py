"""A run of the demo, answered and scored, is taken apart; so is one of another corpus refused."""

import json
import sys

from running import ROOT, run

from triax.records.files import read_jsonl

sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer

SHARED = ["extractor=sentences", "encoder=hashing", "corpus=demo", "corpus.split=dev"]
SHARED += ["corpus.limit=6", "solver=small_prompted", "llm=http", "llm.model=fake"]


def reply(body):
    """Decomposes every question alike, thinks in SPARQL where it is asked to, knows one name."""
    system = body["messages"][0]["content"]
    if "placeholder" in system:
        return "The Last Picture Show | directed by | ?director"
    if "SPARQL" in system:
        return 'SELECT ?d WHERE { "A" is ?d }\n?d = B\nFINAL ANSWER: Peter Bogdanovich'
    return "Peter Bogdanovich"


def test_errors_and_sparql_of_answered_runs(tmp_path):
    places = {"TRIAX_RUNS": "runs", "TRIAX_ARTIFACTS": "artifacts", "TRIAX_CACHE": "cache"}
    home = {key: str(tmp_path / name) for key, name in places.items()} | {"HOME": str(tmp_path)}
    with FakeServer(reply) as server:
        options = [*SHARED, f"llm.base_url={server.base_url}"]
        run(home, "eval", "extract", *options)
        run(home, "eval", "index", *options)
        for name, more in (
            ("loop", ["pipeline=t2rag"]),
            ("plan", ["pipeline=bm25", "reader=sparql"]),
            ("closed", ["pipeline=closed_book"]),
        ):
            run(home, "eval", "answer", f"name={name}", *more, *options)
    done = run(home, "eval", "errors", "names=[loop,plan,closed]", *SHARED)
    assert "reasoning share, M3" in done.stdout and "missing retrieval" in done.stdout
    rows = list(read_jsonl(tmp_path / "runs/answer/loop/errors.jsonl"))
    assert len(rows) == 6 and all(row["m1"] is not None for row in rows)
    assert all(row["class"] for row in rows if not row["right"])
    found = json.loads((tmp_path / "runs/answer/plan/errors.json").read_text("utf-8"))
    assert found["measure"] == "lenient" and found["all"]["count/questions"] == 6
    assert "errors/class/synthesis" not in found["all"]
    found = json.loads((tmp_path / "runs/answer/closed/errors.json").read_text("utf-8"))
    assert "errors/accuracy" in found["all"] and "errors/m1" not in found["all"]
    wrong = run(home, "eval", "errors", "names=[loop]", *SHARED, "corpus.limit=2", check=False)
    assert wrong.returncode == 1 and "give the corpus that it was made with" in wrong.stderr
    table = json.loads(run(home, "eval", "sparql", "names=[plan,loop]").stdout.splitlines()[-1])
    assert table["plan"]["coverage/parsed"] == 1.0 and table["plan"]["coverage/bound"] == 1.0
    assert table["loop"]["coverage/with_query"] == 0.0
