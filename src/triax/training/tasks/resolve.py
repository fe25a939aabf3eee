"""Resolution: a reader learns to fill the slot of a query triplet from passages, or to say no.

Rows are windows. A lesson gives one row for a passage that holds the answer, and rows for some of
its wrong passages, in which the answer is "not here".
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Key

from triax.models import weights
from triax.models.adapters import save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.reading_answers import Best, Calibration, best_answer, calibrated, fit_logistic
from triax.models.reading_scores import WindowScorer, pad_windows
from triax.models.reading_windows import Window, Windower
from triax.models.span_reader import (
    NUM_VERDICTS,
    TRAINABLE,
    build_reader,
    marginal_loss,
    reader_config,
)
from triax.models.tokenizer import load_tokenizer
from triax.records.files import read_jsonl
from triax.scoring.answers import best_exact_match
from triax.training.batches import BucketedBatches
from triax.training.lessons.negatives import add_nearest_wrong
from triax.training.lessons.slots import POOLS, Passage, SlotLesson, occurrences, read_slots
from triax.training.task import Loss


@dataclass(frozen=True, slots=True)
class _Row:
    """One window and the places of the gold answer in it: (0, 0) is "not here"."""

    window: Window
    gold: tuple[tuple[int, int], ...]


@dataclass
class ResolveTask:
    """Trains a `SpanReader` on lessons of `triax.training.lessons.slots`.

    Args:
        folder: the data sets.
        sources: data set to how often each of its lessons is shown in an epoch (0.5: every second
            lesson).
        base: the encoder.
        rank: of the adapters.
        max_length: longest row, in tokens.
        batch_tokens: rows x width of a batch.
        num_wrong: wrong passages that a lesson gives rows of.
        held_out: share of each of `validated`'s train questions that are kept for validation, so
            that the dev split is left for the report.
        validated: the sources whose held-out lessons are validated and calibrated on.
        limit: at most so many lessons a source (for trials).
    """

    folder: str
    sources: Mapping[str, float | int]
    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    rank: int = 32
    max_length: int = 192
    batch_tokens: int = 2048
    num_wrong: int = 1
    held_out: float = 0.1
    validated: Sequence[str] = ("popqa", "musique")
    dtype: str = "float32"
    limit: int | None = None
    rows_multiple: int = 1
    buckets: Sequence[int] = (64, 96, 128, 160, 192)
    name: str = "resolve"
    objective: str = "exact_match"
    trainable: Any = field(default=TRAINABLE, repr=False)
    _calibration: Calibration = field(default=Calibration(), repr=False)

    @cached_property
    def _base_folder(self) -> Path:
        return weights.locate(self.base)

    @cached_property
    def _windower(self) -> Windower:
        return Windower(load_tokenizer(self._base_folder), self.max_length)

    @cached_property
    def _lessons(self) -> tuple[list[SlotLesson], list[SlotLesson]]:
        """Lessons to learn from, each as often as its source says, and lessons held out."""
        learnt: list[SlotLesson] = []
        held: list[SlotLesson] = []
        for source, share in self.sources.items():
            lessons = read_slots(Path(self.folder), source)[: self.limit]
            if source in POOLS:
                rows = read_jsonl(Path(self.folder) / POOLS[source])
                pool = [Passage(row["title"] or "", row["text"]) for row in rows]
            else:
                pool = [passage for lesson in lessons for passage in lesson.answered]
                pool = list(dict.fromkeys(pool))
            lessons = add_nearest_wrong(lessons, pool, count=4)
            if source in self.validated:
                held += [one for one in lessons if _draw(one.id, "held") < self.held_out]
                lessons = [one for one in lessons if _draw(one.id, "held") >= self.held_out]
            whole, part = int(share), share - int(share)
            learnt += lessons * whole
            learnt += [one for one in lessons if _draw(one.id, "part") < part]
        return learnt, held

    @cached_property
    def _rows(self) -> list[_Row]:
        queries, passages, wanted = [], [], []
        for number, lesson in enumerate(self._lessons[0]):
            generator = np.random.default_rng((7, number))
            for passage in lesson.answered[:1]:
                queries.append(lesson.query)
                passages.append(passage.shown)
                wanted.append(lesson)
            order = generator.permutation(len(lesson.wrong))[: self.num_wrong]
            for place in order.tolist():
                queries.append(lesson.query)
                passages.append(lesson.wrong[place].shown)
                wanted.append(None)
        rows = []
        cut = self._windower(queries, passages)
        for passage, lesson, windows in zip(passages, wanted, cut, strict=True):
            for number, window in enumerate(windows):
                gold = _gold(window, passage, lesson)
                # Of a long passage, the first window and those with the answer.
                if number == 0 or gold != ((0, 0),):
                    rows.append(_Row(window, gold))
        return rows

    @cached_property
    def _batches(self) -> BucketedBatches:
        lengths = [row.window.length for row in self._rows]
        return BucketedBatches(lengths, self.batch_tokens, self.buckets, self.rows_multiple)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every row is seen once."""
        return self._batches.steps_per_epoch

    def build(self, seed: int) -> nnx.Module:
        """The base encoder with fresh adapters and heads."""
        encoder, _ = load_encoder(self._base_folder, self.dtype)
        return build_reader(encoder, self.rank, seed)

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """ids, mask, types [rows, width]; start, end [rows, width + 2] bool; weight [rows]."""
        numbers, width = self._batches(step, seed)
        chosen = [self._rows[number] for number in numbers.tolist() if number >= 0]
        ids, mask, types = pad_windows([row.window for row in chosen], len(numbers), width, 0)
        start, end = np.zeros((2, len(numbers), width + NUM_VERDICTS), bool)
        start[len(chosen) :, 0] = end[len(chosen) :, 0] = True
        for number, row in enumerate(chosen):
            for low, high in row.gold:
                # Verdicts are written as places from the end.
                start[number, low] = end[number, high] = True
        weight = np.zeros(len(numbers), np.float32)
        weight[: len(chosen)] = 1.0
        return {
            "ids": ids,
            "mask": mask,
            "types": types,
            "start": start,
            "end": end,
            "weight": weight,
        }

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """The mean of the marginal losses of both ends."""
        scores = model(batch["ids"], batch["mask"], batch["types"])
        each = marginal_loss(scores.start, batch["start"]) + marginal_loss(scores.end, batch["end"])
        weight = batch["weight"]
        none = batch["start"][:, 0]
        said_none = (scores.start.argmax(1) == 0) & (scores.end.argmax(1) == 0)
        agrees = (said_none == none).astype(jnp.float32)
        return Loss(
            (0.5 * each * weight).sum(), weight.sum(), {"here_accuracy": (agrees * weight).sum()}
        )

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Exact match with the answered passage among five, and calibration of the margins.

        Figures: exact_match (mean over sources), <source>_exact_match, not_here_f1.
        """
        found = self._held_answers(model)
        figures: dict[str, float] = {}
        for source in self.validated:
            right = [one.is_right for one in found if one.source == source and one.is_here]
            figures[f"{source}_exact_match"] = float(np.mean(right)) if right else 0.0
        figures["exact_match"] = float(np.mean(list(figures.values()) or [0.0]))
        self._calibration = _calibrate(found)
        figures["not_here_f1"] = _not_here_f1(found, self._calibration)
        return figures

    def _held_answers(self, model: nnx.Module) -> list["_Held"]:
        graph, state = nnx.split(model)
        scorer = WindowScorer(graph, self.max_length)
        asked: list[tuple[SlotLesson, tuple[str, ...], bool]] = []
        for lesson in self._lessons[1]:
            wrong = tuple(passage.shown for passage in lesson.wrong[:5])
            if lesson.answered:
                asked.append((lesson, (lesson.answered[0].shown, *wrong[:4]), True))
            if wrong:
                asked.append((lesson, wrong, False))
        queries = [lesson.query for lesson, passages, _ in asked for _ in passages]
        texts = [text for _, passages, _ in asked for text in passages]
        cut = self._windower(queries, texts)
        scores = iter(scorer(state, [window for windows in cut for window in windows]))
        groups = iter(cut)
        found = []
        for lesson, passages, is_here in asked:
            windows = [(n, window) for n in range(len(passages)) for window in next(groups)]
            best = best_answer(passages, windows, [next(scores) for _ in windows])
            if best is not None:
                right = is_here and best_exact_match(best.reading.text, lesson.answers) > 0
                found.append(_Held(lesson.source, best, is_here, right))
        return found

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Adapters, heads and the calibration of the last validation."""
        self.validate(model)
        config = reader_config(
            self.base,
            self.rank,
            max_length=self.max_length,
            calibration=self._calibration.to_json(),
        )
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """Counts of lessons and rows."""
        learnt, held = self._lessons
        counts = {
            source: sum(lesson.source == source for lesson in learnt) for source in self.sources
        }
        return {
            "datasets": {name: {"lessons": count} for name, count in counts.items()},
            "figure_counts": {
                f"{source}_exact_match": sum(
                    one.source == source and bool(one.answered) for one in held
                )
                for source in self.validated
            },
            "rows": len(self._rows),
            "held_out": len(held),
            "tokens": int(sum(row.window.length for row in self._rows)),
        }


@dataclass(frozen=True, slots=True)
class _Held:
    source: str
    best: Best
    is_here: bool
    is_right: bool


def _gold(window: Window, passage: str, lesson: SlotLesson | None) -> tuple[tuple[int, int], ...]:
    if lesson is None:
        return ((0, 0),)
    if lesson.verdict != "span":
        place = {"yes": -2, "no": -1}[lesson.verdict]
        return ((place, place),)
    spans = [window.places(*span) for span in occurrences(passage, lesson.answers)]
    return tuple(span for span in spans if span is not None) or ((0, 0),)


def _calibrate(found: Sequence[_Held]) -> Calibration:
    if not found:
        return Calibration()
    features = np.array([one.best.features for one in found])
    here = np.array([float(one.is_here) for one in found])
    right = np.array([float(one.is_right) for one in found])
    return Calibration(fit_logistic(features, right), fit_logistic(features, here))


def _not_here_f1(found: Sequence[_Held], calibration: Calibration) -> float:
    said = [calibrated(one.best, calibration).p_here < 0.5 for one in found]
    hits = sum(a and not one.is_here for a, one in zip(said, found))
    asked = sum(said) + sum(not one.is_here for one in found)
    return 2 * hits / asked if asked else 0.0


def _draw(text: str, purpose: str) -> float:
    """A number in [0, 1) that depends on the question's id only; steps of one share it."""
    question = text.rsplit("/", 1)[0] if purpose == "held" else text
    digest = hashlib.sha256(json.dumps([purpose, question]).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
