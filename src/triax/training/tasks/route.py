"""Routing: an encoder learns which of two retrievers suffices for a question.

Source: R2Adapter, section 3.2 and its released code: two independent sigmoids under a focal loss
(Lin et al. 2017, equation 5), examples of rare labels drawn more often, a threshold on the
difference of the two probabilities that is searched on validation.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Key

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
from triax.models.trained_router import PART
from triax.records.files import read_jsonl
from triax.records.routes import RouterExample
from triax.scoring.routing import area
from triax.scoring.thresholds import Selection, best_threshold, sweep_thresholds
from triax.training.task import Loss


@dataclass
class RouteTask:
    """Trains a `QuestionClassifier` on the labels of `train/label_router.py`.

    Args:
        labels: a folder with train.jsonl and validation.jsonl of router examples.
        base: the encoder.
        pooling: how its rows become one vector ("cls" as in DeBERTa's classifiers).
        rank: of the adapters; None trains every weight, as the paper does.
        max_length: longest question, in tokens.
        batch_size: questions of a step.
        gamma: of the focal loss: how much easy examples count less.
        alpha: of the focal loss: the weight of positive targets; negatives have 1 - alpha.
        balanced: draw examples of rare labels more often; else all alike. With replacement.
        rate: dropout above the encoder; in it the rates are those of its configuration.
        select: what the threshold is chosen for.
        limit: at most so many examples (for trials).
    """

    labels: str
    base: str = "sentence-transformers/all-MiniLM-L6-v2"
    pooling: Pooling = "mean"
    rank: int | None = 16
    max_length: int = 64
    batch_size: int = 64
    gamma: float = 2.0
    alpha: float = 0.25
    balanced: bool = True
    rate: float = 0.1
    select: Selection = Selection()
    dtype: str = "float32"
    limit: int | None = None
    buckets: Sequence[int] = (24, 32, 48, 64, 128, 256)
    name: str = "route"
    objective: str = "area"
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

    def _examples(self, part: str) -> list[RouterExample]:
        path = Path(self.labels).expanduser() / f"{part}.jsonl"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there, expected router labels; make them with "
                "train/label_router.py and name its folder as task.labels"
            )
        return [RouterExample.from_json(row) for row in read_jsonl(path)][: self.limit]

    @cached_property
    def _train(self) -> list[RouterExample]:
        found = self._examples("train")
        sides = {(one.vanilla, one.graph) for one in found}
        if len(sides) < 2:
            raise ValueError(
                f"{self.labels}: all {len(found)} examples of train have the labels {sides}; a "
                "router has nothing to learn from them"
            )
        return found

    @cached_property
    def _validation(self) -> list[RouterExample]:
        return self._examples("validation")

    @cached_property
    def _ids(self) -> list[list[int]]:
        texts = [one.question for one in self._train]
        return question_tokens(self._tokenizer, texts, self.max_length)

    @cached_property
    def _chances(self) -> np.ndarray:
        """The probability with which each example is drawn.

        As in R2Adapter's code: the greater of one over the count of each of its two labels.
        """
        each = np.ones(len(self._train))
        if self.balanced:
            vanilla, graph = (
                Counter(getattr(one, side) for one in self._train) for side in ("vanilla", "graph")
            )
            each = np.array(
                [max(1 / vanilla[one.vanilla], 1 / graph[one.graph]) for one in self._train]
            )
        return each / each.sum()

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which as many examples are drawn as there are."""
        return -(-len(self._train) // self.batch_size)

    def build(self, seed: int) -> nnx.Module:
        """The base encoder with fresh adapters, if any, and fresh heads."""
        encoder, _ = load_encoder(self._base_folder, self.dtype)
        return build_classifier(encoder, self.pooling, self.rank, self.rate, seed)

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """ids, mask [rows, width]; targets [rows, 2]."""
        generator = np.random.default_rng((seed, step))
        drawn = generator.choice(len(self._train), self.batch_size, p=self._chances).tolist()
        longest = max(len(self._ids[number]) for number in drawn)
        width = next((one for one in self.buckets if one >= longest), self.max_length)
        batch = Batch(tuple(drawn), len(drawn), width)
        ids, mask = pad_batch(batch, self._ids, self._tokenizer.pad_id)
        chosen = [self._train[number] for number in drawn]
        targets = np.array([[one.vanilla, one.graph] for one in chosen], np.float32)
        return {"ids": ids, "mask": mask, "targets": targets}

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """The mean of both sides' focal losses."""
        assert isinstance(model, QuestionClassifier)
        logits = model(batch["ids"], batch["mask"], key)
        each = optax.losses.sigmoid_focal_loss(
            logits, batch["targets"], alpha=self.alpha, gamma=self.gamma
        )
        right = (logits > 0) == (batch["targets"] > 0.5)
        count = each.shape[0]
        return Loss(
            each.mean(axis=1).sum(),
            jnp.float32(count),
            {"accuracy": right.mean(axis=1).sum()},
        )

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Scores of "needs the graph" at the best threshold on validation.

        Figures: threshold, f1, precision, recall, graph_ratio, balanced (half F1, half recall);
        and area, under the ROC curve, which no threshold decides: steps are compared by it.
        """
        graph, state = nnx.split(model)
        scorer = QuestionScorer(graph, self._tokenizer, self.max_length)
        logits = scorer(state, [one.question for one in self._validation])
        p = 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -60.0, 60.0)))
        needs = [one.needs_graph for one in self._validation]
        rows = sweep_thresholds(p[:, 0], p[:, 1], needs)
        found = area(p[:, 1] - p[:, 0], needs)
        best = best_threshold(rows, self.select)
        return {
            "area": 0.5 if found is None else found,
            "threshold": best.threshold,
            "f1": best.scores.f1,
            "precision": best.scores.precision,
            "recall": best.scores.recall,
            "graph_ratio": best.scores.graph_ratio,
            "balanced": best.scores.objective,
        }

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Trained weights, and the threshold that validation chooses for them."""
        figures = self.validate(model)
        config = head_config(
            PART,
            self.base,
            self.rank,
            pooling=self.pooling,
            max_length=self.max_length,
            threshold=figures["threshold"],
        )
        save_adapter(folder, model, self.trainable, config)

    def _labels_digest(self) -> dict[str, str]:
        digest = hashlib.sha256()
        for part in ("train", "validation"):
            digest.update((Path(self.labels).expanduser() / f"{part}.jsonl").read_bytes())
        return {f"labels-{Path(self.labels).name}": digest.hexdigest()}

    def describe(self) -> dict[str, Any]:
        """Counts of examples, the shares of their labels, and the hash of the labels."""
        counts = {
            name: sum((one.vanilla, one.graph) == sides for one in self._train)
            for name, sides in {
                "graph_only": (False, True),
                "vanilla_only": (True, False),
                "both": (True, True),
            }.items()
        }
        made = Path(self.labels).expanduser() / "config.json"
        config = json.loads(made.read_text("utf-8")) if made.is_file() else {}
        return {
            "datasets": {Path(self.labels).name: {"examples": len(self._train), **counts}},
            "held_out": len(self._validation),
            "inputs": self._labels_digest(),
            "labels_of": ", ".join(Path(one).name for one in config.get("ranks", ())),
            "labels_cut": config.get("cut"),
        }
