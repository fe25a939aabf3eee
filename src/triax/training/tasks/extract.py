"""Extraction: an encoder learns to read triplets out of passages."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from jaxtyping import Array, Key

from triax.models import weights
from triax.models.adapters import save_adapter
from triax.models.passage_tokens import PassageTokenizer
from triax.models.tagged_triplets import Phrases, Thresholds
from triax.models.trained_tagger import PART, TRAINABLE, PassageReader, build_tagger
from triax.models.triplet_tagger import TaggerConfig, TripletTagger
from triax.records.files import read_jsonl
from triax.records.triplets import Triplet
from triax.scoring.extraction import Fields, precision_recall_f1, soft_match
from triax.training.batches import BucketedBatches
from triax.training.lessons.extractions import (
    ExtractionLesson,
    alignment,
    collect_phrases,
    keep_known,
    open_lesson,
    popqa_lesson,
    relation_lesson,
)
from triax.training.lessons.tagged_windows import TaggedWindow, make_batch, tag_windows
from triax.training.task import Loss
from triax.training.tasks.tagger_loss import tagger_loss

_READERS = {
    "silver_openie": open_lesson,
    "carb": open_lesson,
    "oie2016_wiki": open_lesson,
    "redocred": relation_lesson,
    "fewrel": relation_lesson,
    "popqa": popqa_lesson,
}
# What the thresholds are chosen from.
_STEPS = (0.03, 0.04, *np.arange(0.05, 0.96, 0.05).round(2).tolist())


@dataclass
class ExtractTask:
    """Trains a `TripletTagger` on lessons of `triax.training.lessons.extractions`.

    Args:
        folder: the data sets.
        sources: data set to how often each of its lessons is shown in an epoch (0.2: every fifth
            lesson).
        base: the encoder.
        rank: of the adapters.
        max_length: longest row, in tokens; longer passages are read in windows.
        max_windows: so many windows of a passage are learnt from, drawn by its id, so that a few
            long texts do not make up half of all.
        batch_tokens: rows x width of a batch.
        held_out: share of the train lessons that are kept for validation and for the thresholds,
            so that the dev split is left for the report.
        num_validated: at most so many held-out lessons a source.
        recall_weight: beta of the F-beta that the threshold of open triplets of titled passages
            maximises: above 1, as a triplet that is missing cannot be retrieved, while one too many
            costs little.
        limit: at most so many lessons a source (for trials).
    """

    folder: str
    sources: Mapping[str, float]
    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    rank: int = 32
    max_length: int = 256
    max_windows: int = 2
    batch_tokens: int = 1024
    held_out: float = 0.08
    num_validated: int = 60
    recall_weight: float = 1.5
    dtype: str = "float32"
    limit: int | None = None
    rows_multiple: int = 1
    buckets: Sequence[int] = (48, 96, 160, 256)
    name: str = "extract"
    objective: str = "f1"
    trainable: Any = field(default=TRAINABLE, repr=False)

    @cached_property
    def _base_folder(self) -> Path:
        return weights.locate(self.base)

    @cached_property
    def _tokenizer(self) -> PassageTokenizer:
        return PassageTokenizer(self._base_folder)

    @cached_property
    def _lessons(self) -> tuple[list[ExtractionLesson], list[ExtractionLesson]]:
        """Lessons to learn from, each as often as its source says, and lessons held out."""
        learnt: list[ExtractionLesson] = []
        held: list[ExtractionLesson] = []
        barred = supporting_passages(Path(self.folder) / "musique")
        for source, share in self.sources.items():
            if source not in _READERS:
                raise ValueError(f"no lessons are made of {source!r}; known: {sorted(_READERS)}")
            rows = read_jsonl(Path(self.folder) / source / "train.jsonl.gz")
            read = [_READERS[source](row) for row in rows]
            lessons = [one for one in read if one and (one.title, one.text) not in barred]
            lessons = lessons[: self.limit]
            if source in ("silver_openie", "carb", "redocred"):
                kept = [one for one in lessons if _draw(one.id, "held") < self.held_out]
                held += kept[: self.num_validated]
                lessons = [one for one in lessons if _draw(one.id, "held") >= self.held_out]
            whole, part = int(share), share - int(share)
            learnt += lessons * whole
            learnt += [one for one in lessons if _draw(one.id, "part") < part]
        return learnt, held

    @cached_property
    def phrases(self) -> Phrases:
        """The closed lists, from the lessons to learn from."""
        return collect_phrases(self._lessons[0])

    @cached_property
    def config(self) -> TaggerConfig:
        """The sizes of the head."""
        lists = self.phrases
        return TaggerConfig(len(lists.prefixes), len(lists.suffixes), len(lists.relations))

    @cached_property
    def _windows(self) -> list[TaggedWindow]:
        found = []
        for lesson in self._lessons[0]:
            windows = list(
                tag_windows(
                    keep_known(lesson, self.phrases),
                    self._tokenizer,
                    self.phrases,
                    self.config,
                    self.max_length,
                )
            )
            order = sorted(range(len(windows)), key=lambda n: _draw(f"{lesson.id}/{n}", "window"))
            found += [windows[number] for number in order[: self.max_windows]]
        return found

    @cached_property
    def _batches(self) -> BucketedBatches:
        lengths = [window.length for window in self._windows]
        return BucketedBatches(lengths, self.batch_tokens, self.buckets, self.rows_multiple)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every window is seen once."""
        return self._batches.steps_per_epoch

    def build(self, seed: int) -> nnx.Module:
        """The base encoder with fresh adapters and a fresh head."""
        return build_tagger(self._base_folder, self.config, self.rank, seed, self.dtype)

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """See `make_batch`."""
        numbers, width = self._batches(step, seed)
        chosen = [self._windows[number] for number in numbers.tolist() if number >= 0]
        return make_batch(chosen, len(numbers), width, self.config)

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """See `tagger_loss`; nothing is random in it."""
        assert isinstance(model, TripletTagger)
        return tagger_loss(model, batch)

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Soft F1 on held-out lessons at the best thresholds: of each source, and their mean."""
        return self._validated(model)[0]

    def _validated(self, model: nnx.Module) -> tuple[dict[str, float], Thresholds]:
        held = self._lessons[1]
        lowest = Thresholds(*[_STEPS[0]] * 4)
        reader = PassageReader(
            model, self._tokenizer, self.phrases, lowest, self.max_length, self.batch_tokens
        )
        found = reader.read([(lesson.title, lesson.text) for lesson in held])
        figures: dict[str, float] = {}
        for source in dict.fromkeys(lesson.source for lesson in held):
            pairs = [
                (triplets, lesson)
                for triplets, lesson in zip(found, held)
                if lesson.source == source
            ]
            best, _ = best_threshold(pairs, set(self.phrases.relations), 1.0)
            figures[f"{source}_f1"] = best
        figures["f1"] = float(np.mean(list(figures.values()) or [0.0]))
        return figures, self._choose(found)

    def _choose(self, found: Sequence[Sequence[Triplet]]) -> Thresholds:
        """Each threshold from the lessons of its kind."""
        chosen = {}
        for name, source, beta in (
            ("pair", "silver_openie", self.recall_weight),
            ("untitled", "carb", 1.0),
            ("relation", "redocred", 1.0),
        ):
            pairs = [
                (triplets, lesson)
                for triplets, lesson in zip(found, self._lessons[1])
                if lesson.source == source
            ]
            if pairs:
                chosen[name] = best_threshold(pairs, set(self.phrases.relations), beta)[1]
        return Thresholds(**chosen)

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Adapters, head, lists, and thresholds that are chosen now."""
        lists = self.phrases
        thresholds = self._validated(model)[1]
        config = {
            "part": PART,
            "base": self.base,
            "rank": self.rank,
            "max_length": self.max_length,
            "tagger": self.config.to_json(),
            "phrases": {
                "prefixes": list(lists.prefixes),
                "suffixes": list(lists.suffixes),
                "relations": list(lists.relations),
            },
            "thresholds": dataclasses.asdict(thresholds),
        }
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """Counts of lessons and rows, and how many of their triplets could be tied to the text."""
        learnt, held = self._lessons
        known = [keep_known(lesson, self.phrases) for lesson in dict.fromkeys(learnt)]
        return {
            "datasets": alignment(known),
            "rows": len(self._windows),
            "held_out": len(held),
            "tokens": int(sum(window.length for window in self._windows)),
        }


def supporting_passages(folder: Path) -> set[tuple[str, str]]:
    """(title, text) of the passages that MuSiQue's questions rest on.

    They are kept out of the lessons, so that the answers found in their triplets measure what was
    learnt, not what was remembered.
    """
    barred = set()
    for part in ("train", "dev"):
        path = folder / f"{part}.jsonl.gz"
        for row in read_jsonl(path) if path.is_file() else ():
            for paragraph in row["paragraphs"]:
                if paragraph["is_supporting"]:
                    barred.add((" ".join(paragraph["title"].split()), paragraph["text"]))
    return barred


def gold_fields(lesson: ExtractionLesson) -> list[list[Fields]]:
    """The triplets of a lesson as texts, one form each."""
    whole = lesson.passage
    found = []
    for triplet in lesson.triplets:
        predicate = triplet.predicate
        if predicate is not None:
            copied = whole[slice(*predicate.span)] if predicate.span else ""
            text = " ".join(filter(None, (predicate.prefix, copied, predicate.suffix)))
            found.append([(whole[slice(*triplet.subject)], text, whole[slice(*triplet.object)])])
    for relation in lesson.relations:
        ends = (whole[slice(*relation.subject)], whole[slice(*relation.object)])
        found.append([(ends[0], relation.name, ends[1])])
    return found


def best_threshold(
    pairs: Sequence[tuple[Sequence[Triplet], ExtractionLesson]],
    relations: set[str],
    beta: float,
) -> tuple[float, float]:
    """The highest soft F-beta over thresholds, and its threshold.

    A lesson with open triplets is scored on open ones, the others on named relations.
    """
    best = (0.0, 0.5)
    for threshold in _STEPS:
        matches = [
            soft_match(
                [
                    triplet.fields
                    for triplet in triplets
                    if (triplet.confidence or 0.0) >= threshold
                    and (triplet.predicate in relations) != lesson.is_open
                ],
                gold_fields(lesson),
            )
            for triplets, lesson in pairs
        ]
        precision, recall, _ = precision_recall_f1(matches)
        total = beta * beta * precision + recall
        score = (1 + beta * beta) * precision * recall / total if total else 0.0
        best = max(best, (score, threshold))
    return best


def _draw(text: str, purpose: str) -> float:
    """A number in [0, 1) that depends on the lesson's id only."""
    digest = hashlib.sha256(f"{purpose}|{text}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
