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

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Key

from triax.models import weights
from triax.models.adapters import load_adapter, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.reading_answers import Best, Calibration, best_answer, calibrated, fit_logistic
from triax.models.reading_scores import WindowScorer, pad_windows
from triax.models.reading_windows import Window, Windower
from triax.models.span_reader import (
    MAX_SPAN,
    NO,
    NOT_HERE,
    TRAINABLE,
    YES,
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
    """One window and the gold choices: spans of the window's places, or else a verdict."""

    window: Window
    spans: tuple[tuple[int, int], ...] = ()
    verdict: int = NOT_HERE


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
        num_wrong: wrong passages that a lesson gives rows of; 0.5: every second lesson gives one.
        held_out: share of each of `validated`'s train questions that are kept for validation, so
            that the dev split is left for the report.
        validated: the sources whose held-out lessons choose the step.
        held_for_calibration: share of each other source's questions that are kept for the
            calibration alone, at most `max_calibration` lessons a source.
        start_from: the weights of a run of this task that is to be trained further, or of several,
            whose mean is taken (Wortsman et al. 2022, "Model soups", section 2: they must come of
            one run); fresh ones without.
        limit: at most so many lessons a source (for trials).
    """

    folder: str
    sources: Mapping[str, float | int]
    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    rank: int = 32
    max_length: int = 192
    batch_tokens: int = 2048
    num_wrong: float | int = 1
    held_out: float = 0.1
    validated: Sequence[str] = ("popqa", "musique")
    held_for_calibration: float = 0.06
    max_calibration: int = 80
    dtype: str = "float32"
    start_from: str | Sequence[str] | None = None
    limit: int | None = None
    rows_multiple: int = 1
    buckets: Sequence[int] = (64, 96, 128, 160, 192)
    name: str = "resolve"
    objective: str = "exact_match"
    trainable: Any = field(default=TRAINABLE, repr=False)

    @cached_property
    def _base_folder(self) -> Path:
        return weights.locate(self.base)

    @cached_property
    def _windower(self) -> Windower:
        return Windower(load_tokenizer(self._base_folder), self.max_length)

    @cached_property
    def _lessons(self) -> tuple[list[SlotLesson], list[SlotLesson], list[SlotLesson]]:
        """Lessons to learn from, each as often as its source says; to validate; to calibrate."""
        learnt: list[SlotLesson] = []
        held: list[SlotLesson] = []
        calibrating: list[SlotLesson] = []
        for source, times in self.sources.items():
            lessons = read_slots(Path(self.folder), source)[: self.limit]
            if source in POOLS:
                rows = read_jsonl(Path(self.folder) / POOLS[source])
                pool = [Passage(row["title"] or "", row["text"]) for row in rows]
            else:
                pool = [passage for lesson in lessons for passage in lesson.answered]
                pool = list(dict.fromkeys(pool))
            lessons = add_nearest_wrong(lessons, pool, count=4)
            is_validated = source in self.validated
            share = self.held_out if is_validated else self.held_for_calibration
            apart = [one for one in lessons if _draw(one.id, "held") < share]
            lessons = [one for one in lessons if _draw(one.id, "held") >= share]
            if is_validated:
                held += apart
            else:
                # Verdicts are no spans: what is calibrated is the filling of slots.
                spans = [one for one in apart if one.verdict == "span"]
                calibrating += sorted(spans, key=lambda one: _draw(one.id, "part"))[
                    : self.max_calibration
                ]
            whole, part = int(times), times - int(times)
            learnt += lessons * whole
            learnt += [one for one in lessons if _draw(one.id, "part") < part]
        # Questions share steps: a held lesson that is also learnt would show memory.
        seen = {one.query.casefold() for one in learnt}
        held, calibrating = (
            [one for one in some if one.query.casefold() not in seen]
            for some in (held, calibrating)
        )
        return learnt, held, calibrating

    @cached_property
    def _rows(self) -> list[_Row]:
        queries, passages, wanted = [], [], []
        for number, lesson in enumerate(self._lessons[0]):
            generator = np.random.default_rng((7, number))
            for passage in lesson.answered[:1]:
                queries.append(lesson.query)
                passages.append(passage.shown)
                wanted.append(lesson)
            # What a lesson without an answer teaches is its wrong passage.
            count = int(self.num_wrong + generator.random()) if lesson.answered else 1
            order = generator.permutation(len(lesson.wrong))[:count]
            for place in order.tolist():
                queries.append(lesson.query)
                passages.append(lesson.wrong[place].shown)
                wanted.append(None)
        rows = []
        cut = self._windower(queries, passages)
        for passage, lesson, windows in zip(passages, wanted, cut, strict=True):
            for number, window in enumerate(windows):
                row = _row(window, passage, lesson)
                # Of a long passage, the first window and those with the answer.
                if number == 0 or row.spans or row.verdict != NOT_HERE:
                    rows.append(row)
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
        """The base encoder with fresh adapters and heads, or those of `start_from`."""
        encoder, _ = load_encoder(self._base_folder, self.dtype)
        model = build_reader(encoder, self.rank, seed)
        given = self.start_from or ()
        found = []
        for folder in [given] if isinstance(given, str) else given:
            load_adapter(Path(folder).expanduser(), model, self.trainable)
            found.append(jax.tree.map(jnp.copy, nnx.state(model, self.trainable)))
        if found:
            nnx.update(model, jax.tree.map(lambda *values: sum(values) / len(values), *found))
        return model

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """ids, mask, types [rows, width]; gold [rows, choices] bool as in `SpanScores.flat`;
        weight [rows].
        """
        numbers, width = self._batches(step, seed)
        chosen = [self._rows[number] for number in numbers.tolist() if number >= 0]
        ids, mask, types = pad_windows([row.window for row in chosen], len(numbers), width, 0)
        verdicts = np.zeros((len(numbers), 3), bool)
        spans = np.zeros((len(numbers), width, MAX_SPAN), bool)
        verdicts[len(chosen) :, NOT_HERE] = True
        for number, row in enumerate(chosen):
            verdicts[number, row.verdict] = not row.spans
            for first, last in row.spans:
                spans[number, first, last - first] = True
        weight = np.zeros(len(numbers), np.float32)
        weight[: len(chosen)] = 1.0
        gold = np.concatenate([verdicts, spans.reshape(len(numbers), -1)], axis=1)
        return {"ids": ids, "mask": mask, "types": types, "gold": gold, "weight": weight}

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """The marginal loss over all choices."""
        scores = model(batch["ids"], batch["mask"], batch["types"]).flat
        weight = batch["weight"]
        said = scores.argmax(1)
        right = jnp.take_along_axis(batch["gold"], said[:, None], 1)[:, 0]
        agrees = (said == NOT_HERE) == batch["gold"][:, NOT_HERE]
        figures = {"here_accuracy": agrees, "accuracy": right}
        return Loss(
            (marginal_loss(scores, batch["gold"]) * weight).sum(),
            weight.sum(),
            {name: (one.astype(jnp.float32) * weight).sum() for name, one in figures.items()},
        )

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Exact match with the answered passage among five, best answer taken whatever its margin.

        Figures: exact_match (mean over sources), <source>_exact_match, not_here_f1.
        """
        found = self._held_answers(model, self._lessons[1])
        figures: dict[str, float] = {}
        for source in self.validated:
            right = [one.is_right for one in found if one.source == source and one.is_here]
            figures[f"{source}_exact_match"] = float(np.mean(right)) if right else 0.0
        figures["exact_match"] = float(np.mean(list(figures.values()) or [0.0]))
        figures["not_here_f1"] = _not_here_f1(found, _calibrate(found))
        return figures

    def _held_answers(self, model: nnx.Module, lessons: Sequence[SlotLesson]) -> list["_Held"]:
        graph, state = nnx.split(model)
        scorer = WindowScorer(graph, self.max_length)
        asked: list[tuple[SlotLesson, tuple[str, ...], bool]] = []
        for lesson in lessons:
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
        """Adapters, heads and the calibration on all that was held out."""
        held = [*self._lessons[1], *self._lessons[2]]
        calibration = _calibrate(self._held_answers(model, held))
        config = reader_config(
            self.base,
            self.rank,
            max_length=self.max_length,
            calibration=calibration.to_json(),
        )
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """Counts of lessons and rows."""
        learnt, held, calibrating = self._lessons
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
            "held_for_calibration": len(calibrating),
            "tokens": int(sum(row.window.length for row in self._rows)),
        }


@dataclass(frozen=True, slots=True)
class _Held:
    source: str
    best: Best
    is_here: bool
    is_right: bool


def _row(window: Window, passage: str, lesson: SlotLesson | None) -> _Row:
    if lesson is None:
        return _Row(window)
    if lesson.verdict != "span":
        return _Row(window, verdict={"yes": YES, "no": NO}[lesson.verdict])
    found = [window.places(*span) for span in occurrences(passage, lesson.answers)]
    return _Row(window, tuple(one for one in found if one and one[1] - one[0] < MAX_SPAN))


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
