"""What the programs tell a tracker: which run it is, its numbers, and what was made from what.

corpus -> triplets -> index -> answers -> scores -> study, and trained weights -> what they made.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig

from triax.corpora.corpus import Corpus
from triax.records.questions import Question
from triax.runs.manifest import describe_environment
from triax.tracking.tracker import Artifact, Tracker

# Groups whose choice is a word to find a run by.
TAGGED = ("corpus", "extractor", "encoder", "pipeline", "solver", "llm")
Rows = Sequence[Mapping[str, Any]]


@contextmanager
def tracked(
    cfg: DictConfig, job_type: str, name: str, folder: Path, config: Mapping[str, Any]
) -> Iterator[Tracker]:
    """The tracker of one program's run; a fault that passes through it makes the run a failed one.

    `config` is what the run is made from. Its code is named too where a tracker shows it: asking
    git takes time that a run with its folder alone does not spend.
    """
    if cfg.tracker.get("others"):
        config = {**config, "environment": describe_environment()}
    choices = HydraConfig.get().runtime.choices
    tracker = instantiate(cfg.tracker)(
        folder=folder,
        name=name,
        config=config,
        study=cfg.get("study"),
        job_type=job_type,
        tags=[f"{group}:{choices[group]}" for group in TAGGED if choices.get(group)],
    )
    failed = True
    try:
        yield tracker
        failed = False
    finally:
        tracker.finish(failed=failed)


def stage_folder(cfg: DictConfig, program: str, made: Path) -> Path:
    """The run folder of a program that makes a folder of derived data."""
    return Path(cfg.paths.runs).expanduser() / program / made.parent.name / made.name


def tell_triplets(
    tracker: Tracker,
    corpus: Corpus,
    folder: Path,
    report: Mapping[str, Any],
    adapters: Mapping[str, str],
) -> None:
    """An extraction: its report, the corpus, and the triplets from it."""
    tracker.summary({key: one for key, one in report.items() if isinstance(one, int | float)})
    documents = {"documents": len(corpus.documents), "chunks": report["num_chunks"]}
    name, digest = _corpus(corpus)
    # A corpus lies where its reader found it, which is no folder of ours.
    tracker.artifact(Artifact(name, "corpus", digest, counts=documents))
    counts = {key: report[key] for key in ("num_chunks", "num_triplets")}
    inputs = {name: digest} | _weights(adapters)
    name, digest = _stage("triplets", folder)
    tracker.artifact(Artifact(name, "triplets", digest, folder, counts=counts, inputs=inputs))


def tell_index(
    tracker: Tracker, folder: Path, triplets: Path, counts: Mapping[str, int], seconds: float
) -> None:
    """An index, made from a folder of triplets."""
    tracker.summary({**counts, "seconds": seconds})
    name, digest = _stage("index", folder)
    inputs = dict([_stage("triplets", triplets)])
    tracker.artifact(Artifact(name, "index", digest, folder, counts=counts, inputs=inputs))


def tell_answers(
    tracker: Tracker,
    name: str,
    folder: Path,
    answers: Rows,
    corpus: Corpus,
    opened: Mapping[str, Path],
    adapters: Mapping[str, str],
) -> None:
    """Answers, made from a corpus, from what was `opened` (folders by kind) and from weights."""
    failed = sum(row["error"] is not None for row in answers)
    seconds = sum(row["seconds"] for row in answers)
    tracker.summary({"questions": len(answers), "failed": failed, "seconds": seconds})
    stages = [_stage(kind, place) for kind, place in opened.items()]
    inputs = dict([_corpus(corpus), *stages]) | _weights(adapters)
    counts = {"questions": len(answers), "failed": failed}
    files = ("answers.jsonl", "traces.jsonl", "run.trec", "config.json")
    tracker.artifact(_of_files("answers", name, folder, files, counts, inputs))


def tell_scores(
    tracker: Tracker,
    name: str,
    folder: Path,
    metrics: Mapping[str, float],
    table: Rows,
) -> None:
    """Scores of a run, and one row a question."""
    tracker.summary(metrics)
    tracker.table("per_question", table)
    inputs = {f"answers-{name}": file_digest(folder / "answers.jsonl")}
    files = ("metrics.json", "per_question.jsonl")
    counts = {"questions": len(table)}
    tracker.artifact(_of_files("scores", name, folder, files, counts, inputs))


def tell_study(tracker: Tracker, study: str, folder: Path, rows: Sequence, runs: Path) -> None:
    """The table of a sweep and its figure, made from the scores of its runs in `runs`.

    `rows` are the settings, the scores and the name of each run.
    """
    tracker.table("runs", [{"run": name, **settings, **scores} for settings, scores, name in rows])
    if (folder / "figure.svg").is_file():
        tracker.figure("figure", folder / "figure.svg")
    names = [name for _, _, name in rows]
    inputs = {f"scores-{name}": file_digest(runs / name / "metrics.json") for name in names}
    files = ("table.jsonl", "table.md", "figure.svg")
    tracker.artifact(_of_files("study", study, folder, files, {"runs": len(rows)}, inputs))


def question_table(rows: Rows, questions: Sequence[Question], answers: Rows) -> list[dict]:
    """The scores of each question behind its text, its gold answers and what was answered."""
    asked = {question.id: question for question in questions}
    said = {row["question_id"]: row["answer"] for row in answers}
    return [
        {
            "question_id": row["question_id"],
            "question": asked[row["question_id"]].text,
            "answers": list(asked[row["question_id"]].answers),
            "prediction": said[row["question_id"]],
            **_without(row, "question_id"),
        }
        for row in rows
    ]


def file_digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _of_files(
    kind: str,
    name: str,
    folder: Path,
    files: tuple[str, ...],
    counts: Mapping[str, int],
    inputs: Mapping[str, str],
) -> Artifact:
    """Files of a run folder. The first one has what the others follow from."""
    digest = file_digest(folder / files[0])
    return Artifact(f"{kind}-{name}", kind, digest, folder, files, counts, inputs)


def _corpus(corpus: Corpus) -> tuple[str, str]:
    return f"corpus-{corpus.name}", corpus.fingerprint


def _stage(kind: str, folder: Path) -> tuple[str, str]:
    """Name and digest of derived data; its folder's name ends in the hash of all its inputs."""
    return f"{kind}-{folder.parent.name}-{folder.name}", folder.name.rpartition("-")[2]


def _weights(adapters: Mapping[str, str]) -> dict[str, str]:
    """Weights are called by their fingerprint, wherever they lie."""
    return {f"weights-{digest[:12]}": digest for digest in adapters.values()}


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
