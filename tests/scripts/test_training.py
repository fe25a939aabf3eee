"""The training programs have a pulse: a tiny task from the tests, and a hub that is a socket."""

import base64
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from running import ROOT, run

TOY = ["~task", "+task={_target_: toy.ToyTask, rows: 16}"]
QUICK = ["schedule.steps=6", "schedule.eval_every=3", "schedule.checkpoint_every=2"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    return {
        "HOME": str(folder),
        "TRIAX_RUNS": str(folder / "runs"),
        "TRIAX_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(ROOT / "tests" / "training"),
    }


def test_a_training_makes_weights_a_card_and_rows(home):
    done = run(home, "train", "solver", "name=first", *TOY, *QUICK, "schedule.log_every=3")
    told = json.loads(done.stdout)
    folder = Path(home["TRIAX_RUNS"]) / "train" / "solver" / "first"
    assert told["weights"] == str(folder / "weights")
    assert (told["steps"], told["stopped_early"]) == (6, False)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], "train/loss" in row) for row in rows] == [
        (3, True),
        (3, False),
        (6, True),
        (6, False),
    ]
    scores = {row["step"]: row["dev/score"] for row in rows if "dev/score" in row}
    assert told["score"] == max(scores.values()) == scores[told["best_step"]]
    card = ModelCard.load(folder / "weights" / "README.md")
    assert card.data.tags[:2] == ["triax", "toy"]
    assert "python train/solver.py name=first" in card.text
    assert "| toy | 16 | CC0-1.0 |" in card.text
    # The same call again trains nothing, and what another kept checkpoint changes is allowed.
    again = run(home, "train", "solver", "name=first", *TOY, *QUICK, "schedule.log_every=1")
    assert json.loads(again.stdout)["best_step"] == told["best_step"]
    assert "resumed after step 6" in again.stderr
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    # A run of another configuration is refused, and says in what it differs.
    refused = run(home, "train", "solver", "name=first", *TOY, *QUICK, "seed=1", check=False)
    assert refused.returncode == 1
    assert "error: " in refused.stderr and "(seed: 0 -> 1)" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_extractor_has_a_program_of_its_own(home):
    done = run(home, "train", "extractor", "+experiment=debug_training", "name=x", *TOY)
    told = json.loads(done.stdout)
    assert told["weights"] == str(
        Path(home["TRIAX_RUNS"]) / "train" / "extractor" / "x" / "weights"
    )
    assert told["steps"] == 4


def test_a_loss_that_is_no_number_is_an_error_in_one_line(home):
    toy = ["~task", "+task={_target_: toy.ToyTask, nan_from: 1}"]
    done = run(home, "train", "solver", "name=7", *toy, *QUICK, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: loss is nan at step 2; lower the")


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub's client asks for when it makes a repository and commits small files."""

    seen: list = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Hub.seen.append((self.path, body, self.headers["Authorization"]))
        if self.path == "/api/repos/create":
            name = "/".join(json.loads(body)[key] for key in ("organization", "name"))
            self.answer({"url": f"http://{self.headers['Host']}/{name}", "name": name})
        elif self.path.endswith("/preupload/main"):
            files = json.loads(body)["files"]
            self.answer(
                {
                    "files": [
                        {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                        for file in files
                    ]
                }
            )
        else:
            self.answer(
                {
                    "commitOid": "c0ffee",
                    "commitUrl": f"http://{self.headers['Host']}/me/solver/commit/c0ffee",
                }
            )

    def do_GET(self):
        self.answer({"siblings": [], "sha": "0", "id": "me/solver"})

    def answer(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def test_weights_are_pushed_with_their_card_and_nothing_else(home, tmp_path):
    for name in ("adapter.safetensors", "config.json", "README.md", "secret.txt"):
        (tmp_path / name).write_text(f"content of {name}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": "hf_made_up",
        "NO_PROXY": "127.0.0.1",
    }
    try:
        done = run(home | hub, "train", "push", f"weights={tmp_path}", "repository=me/solver")
    finally:
        server.shutdown()
    assert json.loads(done.stdout) == {"repository": "me/solver", "revision": "c0ffee"}
    asked = {path: body for path, body, _ in Hub.seen}
    made = json.loads(asked["/api/repos/create"])
    # Clients before 2.0 say it in the first way.
    assert made.get("private") is True or made.get("visibility") == "private"
    lines = [json.loads(line) for line in asked["/api/models/me/solver/commit/main"].splitlines()]
    files = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"]).decode()
        for line in lines
        if line["key"] == "file"
    }
    assert files == {
        name: f"content of {name}" for name in ("adapter.safetensors", "config.json", "README.md")
    }
    assert {token for *_, token in Hub.seen} == {"Bearer hf_made_up"}


def test_weights_without_a_card_are_not_pushed(home, tmp_path):
    (tmp_path / "adapter.safetensors").write_text("x")
    (tmp_path / "config.json").write_text("{}")
    done = run(home, "train", "push", f"weights={tmp_path}", "repository=me/solver", check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: {tmp_path}/README.md is missing")


def test_full_data_sets_are_written_where_lessons_look(home, tmp_path):
    rows = [
        {
            "id": f"s{n}",
            "title": "Henrik_Ibsen",
            "context": "Ibsen was born in Skien.",
            "question": f"Where was Ibsen born ({n})?",
            "answers": {"text": ["Skien"], "answer_start": [18]},
        }
        for n in range(3)
    ]
    source = tmp_path / "squad"
    source.mkdir()
    for split in ("train", "validation"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (source / f"{split}.jsonl").write_text(text, "utf-8")
    where = ["sets=[squad]", f"data={tmp_path / 'full'}", f"repository={source}"]
    told = json.loads(run(home, "train", "download", *where).stdout)
    assert told["rows"] == {"train": 3, "dev": 3}
    files = sorted((tmp_path / "full" / "squad").iterdir())
    assert [one.name for one in files] == ["dev.jsonl.gz", "train.jsonl.gz"]
    with gzip.open(files[1], "rt", encoding="utf-8") as stream:
        first = json.loads(stream.readline())
    assert (first["answer"], first["paragraphs"][0]["title"]) == ("Skien", "Henrik Ibsen")
    assert json.loads(run(home, "train", "download", *where).stdout)["already"] is True
    bad = run(home, "train", "download", "sets=[squid]", check=False)
    assert bad.returncode and "expected some of" in bad.stderr
    gone = run(home, "train", "download", *where[:1], "data=x", "repository=/no/such", check=False)
    assert gone.returncode and "name a copy of it" in gone.stderr
