"""The task of decomposition: a question becomes an operator and query triplets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Key

from triax.models import weights
from triax.models.adapters import add_lora, save_adapter
from triax.models.encoder_params import load_encoder
from triax.models.query_decoding import QueryDecoder, pad_sources
from triax.models.query_vocabulary import QueryVocabulary, QuestionReader
from triax.models.query_writer import (
    TRAINABLE,
    QueryWriter,
    WriterConfig,
    choice_log_likelihood,
)
from triax.records.files import read_jsonl
from triax.records.query_triplets import QueryTriplet
from triax.scoring.decomposition import decomposition_scores, step_links, structure_scores
from triax.training.batches import BucketedBatches
from triax.training.lessons.decompositions import Lesson, lessons_of
from triax.training.lessons.query_outputs import Example, build_vocabulary, encode_lesson
from triax.training.task import Loss

PART = "decompose"


@dataclass(frozen=True, slots=True)
class Mix:
    """A data set in the lessons. `weight` is how often an epoch has each of its lessons: 3 means
    three times, 0.25 a quarter of them. Sources in `without` are left out.
    """

    name: str
    weight: float = 1.0
    without: tuple[str, ...] = ()


class DecomposeTask:
    """Trains a `QueryWriter` on lessons of several data sets.

    The objective is the mean of two figures on dev: the share of 2WikiMultihopQA questions whose
    triplets equal the gold ones, and of MuSiQue questions with the gold structure.
    """

    name = "decompose"
    objective = "score"
    trainable = TRAINABLE

    def __init__(
        self,
        folder: str | Path,
        mix: Sequence[Mapping[str, Any] | Mix],
        base: str = "sentence-transformers/all-MiniLM-L6-v2",
        rank: int = 32,
        width: int = 256,
        num_layers: int = 2,
        num_heads: int = 4,
        inner_width: int = 768,
        batch_tokens: int = 2048,
        buckets: Sequence[int] = (16, 24, 32, 48),
        min_count: int = 3,
        max_pieces: int = 2000,
        p_no_mark: float = 0.1,
        num_dev: int = 400,
    ):
        """Takes the settings; reads nothing yet.

        Args:
            folder: has a folder a data set, with train.jsonl.gz and dev.jsonl.gz.
            mix: the data sets, the most trusted first: a question that stands in several is
                taken from the first.
            base: the pretrained encoder.
            rank: of the encoder's adapters.
            width, num_layers, num_heads, inner_width: the decoder's shape.
            batch_tokens: question pieces of a batch; the outputs have twice as many places.
            buckets: widths of the questions.
            min_count, max_pieces: which pieces the vocabulary gets.
            p_no_mark: how often the question mark at the end is left out.
            num_dev: 2WikiMultihopQA questions that a validation takes.
        """
        self.folder = Path(folder)
        self.mix = tuple(
            one
            if isinstance(one, Mix)
            else Mix(one["name"], float(one.get("weight", 1)), tuple(one.get("without", ())))
            for one in mix
        )
        self.base = base
        self.rank = rank
        self.batch_tokens = batch_tokens
        self.buckets = tuple(buckets)
        self.min_count = min_count
        self.max_pieces = max_pieces
        self.p_no_mark = p_no_mark
        self.num_dev = num_dev
        self._shape = {
            "width": width,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "inner_width": inner_width,
        }

    @cached_property
    def reader(self) -> QuestionReader:
        """Cuts questions into the encoder's pieces."""
        return QuestionReader.load(weights.locate(self.base), self.buckets[-1])

    @cached_property
    def lessons(self) -> list[tuple[Lesson, float]]:
        """The lessons of the train split with their weights; each question once."""
        seen: set[str] = set()
        found = []
        for part in self.mix:
            rows = read_jsonl(self.folder / part.name / "train.jsonl.gz")
            for lesson in lessons_of(r for r in rows if r["source"] not in part.without):
                if lesson.question.casefold() not in seen:
                    seen.add(lesson.question.casefold())
                    found.append((lesson, part.weight))
        return found

    @cached_property
    def vocabulary(self) -> QueryVocabulary:
        """The output tokens, from the lessons."""
        return build_vocabulary(
            (lesson for lesson, _ in self.lessons), self.reader, self.min_count, self.max_pieces
        )

    @cached_property
    def _examples(self) -> list[tuple[Example, float]]:
        sources = self.reader.read([lesson.question for lesson, _ in self.lessons])
        found = []
        for (lesson, weight), source in zip(self.lessons, sources):
            example = encode_lesson(lesson, source, self.vocabulary, self.reader)
            if example and len(example.outputs) <= 2 * self.buckets[-1]:
                found.append((example, weight))
        return found

    @cached_property
    def _numbers(self) -> list[int]:
        """The example of each place of an epoch: repeated, or drawn, by its weight."""
        draws = np.random.default_rng(0).random(len(self._examples))
        return [
            number
            for number, (_, weight) in enumerate(self._examples)
            for _ in range(int(weight) + (draws[number] < weight % 1))
        ]

    @cached_property
    def _batches(self) -> BucketedBatches:
        lengths = [
            max(len(example.source.ids), -(-len(example.outputs) // 2))
            for example, _ in (self._examples[number] for number in self._numbers)
        ]
        return BucketedBatches(lengths, self.batch_tokens, self.buckets)

    @property
    def steps_per_epoch(self) -> int:
        """Batches that have every lesson as often as its weight says."""
        return self._batches.steps_per_epoch

    def build(self, seed: int) -> QueryWriter:
        """The pretrained encoder with adapters, and a fresh decoder."""
        encoder, _ = load_encoder(weights.locate(self.base))
        rngs = nnx.Rngs(seed)
        add_lora(encoder, self.rank, rngs)
        return QueryWriter(self._config, encoder, rngs=rngs)

    @property
    def _config(self) -> WriterConfig:
        return WriterConfig(len(self.vocabulary), max_outputs=2 * self.buckets[-1], **self._shape)

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """Questions, outputs and the right ways to write each of them."""
        places, width = self._batches(step, seed)
        examples = [self._examples[self._numbers[n]][0] for n in places if n >= 0]
        rows, length = len(places), 2 * width
        ids, mask, copyable, _ = pad_sources([one.source for one in examples], rows, (width,))
        no_mark = np.random.default_rng((seed, step)).random(rows) < self.p_no_mark
        given = np.zeros((rows, length), np.int32)
        tokens = np.full((rows, length), -1, np.int32)
        copies = np.zeros((rows, length, width), bool)
        counted = np.zeros((rows, length), np.float32)
        for row, one in enumerate(examples):
            size = len(one.outputs)
            given[row, 1:size] = one.outputs[:-1]
            tokens[row, :size] = one.tokens
            counted[row, :size] = 1.0
            for n, allowed in enumerate(one.places):
                copies[row, n, list(allowed)] = True
            last = len(one.source.ids) - 2
            if no_mark[row] and one.source.pieces[last] == "?" and not copies[row, :, last].any():
                mask[row, last] = copyable[row, last] = False
        return {
            "ids": ids,
            "mask": mask,
            "copyable": copyable,
            "given": given,
            "tokens": tokens,
            "copies": copies,
            "counted": counted,
        }

    def loss(self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""]) -> Loss:
        """Negative log-likelihood of the outputs, summed over all ways to write each."""
        memory = model.read(batch["ids"], batch["mask"], batch["copyable"])
        logits = model(memory, batch["given"])
        likelihood = choice_log_likelihood(logits, batch["tokens"], batch["copies"])
        # Rows beyond the last lesson have no right output at all.
        likelihood = jnp.where(batch["counted"] > 0, likelihood, 0.0)
        found = jnp.concatenate(
            [
                jnp.arange(len(self.vocabulary))[None, None] == batch["tokens"][:, :, None],
                batch["copies"],
            ],
            axis=-1,
        )
        hit = jnp.take_along_axis(found, jnp.argmax(logits, -1)[..., None], axis=-1)[..., 0]
        right = jnp.sum(hit * batch["counted"])
        return Loss(-likelihood.sum(), batch["counted"].sum(), {"right": right})

    @cached_property
    def _dev(self) -> tuple[list[str], list[list[QueryTriplet]], list[str], list[Any]]:
        wiki = [
            row
            for row in read_jsonl(self.folder / "2wikimultihopqa_qa" / "dev.jsonl.gz")
            if row["query_triples"]
        ]
        chosen = np.random.default_rng(0).permutation(len(wiki))[: self.num_dev]
        gold = [
            [QueryTriplet.parse(*fields) for fields in wiki[n]["query_triples"]] for n in chosen
        ]
        musique = list(read_jsonl(self.folder / "musique" / "dev.jsonl.gz"))
        links = [step_links([step["question"] for step in r["decomposition"]]) for r in musique]
        return (
            [wiki[n]["question"] for n in chosen],
            gold,
            [row["question"] for row in musique],
            links,
        )

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Shares of right decompositions on dev, and their mean as `score`."""
        questions, gold, others, links = self._dev
        decoder = QueryDecoder(model, self.vocabulary, self._config.max_outputs)
        written = decoder.write(self.reader.read([*questions, *others]))
        triplets = [one.triplets for one in written]
        wiki, _ = decomposition_scores(triplets[: len(gold)], gold)
        musique, _ = structure_scores(triplets[len(gold) :], links)
        return {
            "score": (wiki["equal"] + musique["structure"]) / 2,
            "2wiki_equal": wiki["equal"],
            "2wiki_equal_arguments": wiki["equal_arguments"],
            "musique_structure": musique["structure"],
            "musique_num_triplets": musique["num_triplets"],
            "parsed": float(np.mean([bool(one) for one in triplets])),
        }

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Adapters and decoder, with what `trained_writer` needs to build the model again."""
        config = {
            "part": PART,
            "base": self.base,
            "rank": self.rank,
            "max_length": self.buckets[-1],
            "decoder": asdict(self._config),
            "operators": list(self.vocabulary.operators),
            "pieces": list(self.vocabulary.pieces),
        }
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """How many lessons each data set gave, and how often an epoch has each."""
        counts = Counter(lesson.origin for lesson, _ in self.lessons)
        return {
            "datasets": {
                part.name: {"lessons": counts[part.name], "weight": part.weight}
                for part in self.mix
            },
            "base": self.base,
            "output_tokens": len(self.vocabulary),
            "scored_on": "the dev parts of 2wikimultihopqa_qa (a sample) and musique",
        }
