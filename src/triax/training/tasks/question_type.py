"""Question types: an encoder learns of which kind a question is, from its text alone.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 3.4)
asks a language model for three types; here a small encoder tells the four that 2WikiMultiHopQA
names, by a softmax under cross-entropy.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Key

from triax.corpora.typed_questions import hold_out, load_typed
from triax.models import weights
from triax.models.adapters import save_adapter
from triax.models.buckets import Batch, pad_batch
from triax.models.encoder import Pooling
from triax.models.encoder_params import load_encoder
from triax.models.question_head import (
    TRAINABLE,
    QuestionClassifier,
    build_classifier,
    head_config,
)
from triax.models.question_scorer import QuestionScorer, question_tokens
from triax.models.tokenizer import Tokenizer, load_tokenizer
from triax.models.trained_question_types import PART
from triax.records.question_types import QUESTION_TYPES
from triax.records.questions import Question
from triax.scoring.type_scores import score_types
from triax.training.batches import BucketedBatches
from triax.training.task import Loss


@dataclass
class QuestionTypeTask:
    """Trains a `QuestionClassifier` on the types that data sets give their questions.

    Args:
        folder: has a folder a data set, with train.jsonl.gz.
        datasets: which of them are learnt from. The objective is the mean over them of macro F1
            on the questions that are held back.
        base: the encoder.
        pooling: how its rows become one vector.
        rank: of the adapters; None trains every weight.
        max_length: longest question, in tokens.
        batch_tokens: rows x width of a step.
        held_out: share of the train questions that are kept to choose the step, so that the dev
            split is left for the report.
        rate: dropout above the encoder; in it the rates are those of its configuration.
        limit: at most so many questions a data set (for trials).
    """

    folder: str
    datasets: Sequence[str]
    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    pooling: Pooling = "mean"
    rank: int | None = 16
    max_length: int = 64
    batch_tokens: int = 1024
    held_out: float = 0.1
    rate: float = 0.1
    dtype: str = "float32"
    limit: int | None = None
    buckets: Sequence[int] = (16, 24, 32, 48, 64)
    name: str = "question_type"
    objective: str = "macro_f1"
    trainable: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.trainable is None:
            self.trainable = nnx.Param if self.rank is None else TRAINABLE

    @cached_property
    def _base_folder(self) -> Path:
        return weights.locate(self.base)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._base_folder)

    @cached_property
    def _parts(self) -> dict[str, tuple[list[Question], list[Question]]]:
        """Of each data set the questions to learn from, and those that are held back."""
        parts = {
            name: hold_out(load_typed(self.folder, name, limit=self.limit), self.held_out)
            for name in self.datasets
        }
        if empty := [name for name, (learnt, held) in parts.items() if not learnt or not held]:
            raise ValueError(
                f"{empty} under {self.folder} are too small to hold {self.held_out:.0%} of their "
                "questions back; leave them out, or change task.held_out"
            )
        return parts

    @cached_property
    def _train(self) -> list[Question]:
        return [one for learnt, _ in self._parts.values() for one in learnt]

    @cached_property
    def _ids(self) -> list[list[int]]:
        texts = [one.text for one in self._train]
        return question_tokens(self._tokenizer, texts, self.max_length)

    @cached_property
    def _batches(self) -> BucketedBatches:
        widths = [one for one in self.buckets if one < self.max_length]
        lengths = [len(one) for one in self._ids]
        return BucketedBatches(lengths, self.batch_tokens, [*widths, self.max_length])

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every question stands once."""
        return self._batches.steps_per_epoch

    def build(self, seed: int) -> nnx.Module:
        """The base encoder with fresh adapters, if any, and a fresh head."""
        encoder, _ = load_encoder(self._base_folder, self.dtype)
        kinds = len(QUESTION_TYPES)
        return build_classifier(encoder, self.pooling, self.rank, self.rate, seed, kinds)

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """ids, mask [rows, width]; targets, weights [rows]: 0 for a row that is no question."""
        numbers, width = self._batches(step, seed)
        drawn = [number for number in numbers.tolist() if number >= 0]
        batch = Batch(tuple(drawn), len(numbers), width)
        ids, mask = pad_batch(batch, self._ids, self._tokenizer.pad_id)
        targets = np.zeros(len(numbers), np.int32)
        targets[: len(drawn)] = [QUESTION_TYPES.index(self._train[one].kind) for one in drawn]
        is_real = (np.arange(len(numbers)) < len(drawn)).astype(np.float32)
        return {"ids": ids, "mask": mask, "targets": targets, "weights": is_real}

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """The cross-entropy of the types."""
        assert isinstance(model, QuestionClassifier)
        logits = model(batch["ids"], batch["mask"], key)
        each = optax.losses.softmax_cross_entropy_with_integer_labels(logits, batch["targets"])
        right = logits.argmax(axis=-1) == batch["targets"]
        is_real = batch["weights"]
        return Loss((is_real * each).sum(), is_real.sum(), {"accuracy": (is_real * right).sum()})

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Macro F1 of each data set on what is held back, their mean, and the accuracy of all."""
        graph, state = nnx.split(model)
        scorer = QuestionScorer(graph, self._tokenizer, self.max_length, len(QUESTION_TYPES))
        asked = [one for _, held in self._parts.values() for one in held]
        places = scorer(state, [one.text for one in asked]).argmax(axis=1).tolist()
        told = iter([QUESTION_TYPES[place] for place in places])
        scores = {
            name: score_types([next(told) for _ in held], [one.kind for one in held])
            for name, (_, held) in self._parts.items()
        }
        right = sum(one.accuracy * one.num_questions for one in scores.values())
        return {
            "macro_f1": sum(one.macro_f1 for one in scores.values()) / len(scores),
            **{f"macro_f1_{name}": one.macro_f1 for name, one in scores.items()},
            "accuracy": right / len(asked),
        }

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Trained weights, and the order of the types."""
        config = head_config(
            PART,
            self.base,
            self.rank,
            pooling=self.pooling,
            max_length=self.max_length,
            kinds=list(QUESTION_TYPES),
        )
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """Counts of questions and of their types, and the hashes of the files."""
        files = {name: Path(self.folder) / name / "train.jsonl.gz" for name in self.datasets}
        held = sum(len(held) for _, held in self._parts.values())
        return {
            "datasets": {
                name: {"examples": len(learnt)} for name, (learnt, _) in self._parts.items()
            },
            "held_out": held,
            "inputs": {
                f"questions-{name}": hashlib.sha256(path.expanduser().read_bytes()).hexdigest()
                for name, path in files.items()
            },
            "figure_counts": {"accuracy": held},
            "types": ", ".join(
                f"{kind} {count:,}"
                for kind, count in sorted(Counter(one.kind for one in self._train).items())
            ),
            "scored_on": "questions of the train parts that were held back",
        }
