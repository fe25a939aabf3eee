"""A decoder with adapters that writes: triplets, values and answers, told apart by the prompt.

The loss is that of the tokens that are to be written; the prompt is read only. Its frozen weights
stay as they are, so the adapters (LoRA, Hu et al. 2022) can be shipped alone.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key

from triax.models.adapters import DECODER_LAYERS, add_lora, merge_lora, save_adapter
from triax.models.decoder import Decoder
from triax.models.decoder_params import ADAPTER_PART, load_decoder
from triax.models.decoding import Graph
from triax.models.generate import Generator, Prompt
from triax.models.mesh import current_mesh
from triax.models.tokenizer import Tokenizer, load_tokenizer
from triax.models.weights import locate
from triax.records.completions import Grammar, Message
from triax.records.lesson_prompts import ASSIGNMENTS, Assignment, lesson_messages
from triax.training.batches import BucketedBatches
from triax.training.lessons.texts import Lesson, mixed, read_lessons
from triax.training.lessons.traces import read_passages, read_traces
from triax.training.lessons.writing_scores import score_written
from triax.training.task import Loss

_LOG = logging.getLogger(__name__)
# The most tokens of an output, as in the configurations `written`.
MAX_NEW_TOKENS: dict[Assignment, int] = {
    "decompose": 96,
    "resolve": 24,
    "answer": 24,
    "extract": 192,
}
_GENERATED_ROWS = 16


@dataclass(frozen=True, slots=True)
class _Example:
    """Tokens of a lesson; the end of the text is the last of `target`."""

    lesson: Lesson
    prompt: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens that are read: all but the last, which nothing follows."""
        return len(self.prompt) + len(self.target) - 1


class WriteTask:
    """Teaches a decoder one or more of the four assignments."""

    name = "write"
    objective = "exact"
    trainable = nnx.LoRAParam

    def __init__(
        self,
        data: Path | str,
        model: str = "HuggingFaceTB/SmolLM2-135M-Instruct",
        assignments: Sequence[str] = ASSIGNMENTS,
        rank: int = 8,
        batch_tokens: int = 768,
        buckets: Sequence[int] = (48, 64, 96),
        rows_multiple: int = 1,
        mix: Mapping[str, float] | None = None,
        max_dev: int = 48,
        dtype: str = "auto",
        remat: bool = False,
        traces: Sequence[str] = (),
        passages: str | None = None,
        grammars: Mapping[str, Grammar] | None = None,
        compiler: Callable[..., Any] | None = None,
    ):
        """Reads and loads nothing yet.

        Args:
            data: the folder of the data sets.
            model: the frozen base: a folder with a decoder, or its name on the hub.
            assignments: what is learnt.
            rank: of the adapters.
            batch_tokens: rows x width of a batch.
            buckets: widths; a lesson that is longer than the last is left out.
            rows_multiple: devices x micro-batches.
            mix: how often an epoch has each lesson of a data set, such as 0.25 or 4; 1 unless
                said.
            max_dev: the lessons of each assignment that `validate` takes.
            dtype: of the frozen weights and of the computation; "auto" is bfloat16 on an
                accelerator and float32 elsewhere. The adapters are float32.
            remat: whether the layers are computed again for the gradient, to save memory.
            traces: folders of scored runs, whose right answers become lessons too.
            passages: the corpus of those runs (JSON lines with id, title, text), so that their
                lessons show passages and not only propositions.
            grammars: by assignment, what holds the outputs of `validate` (none: free text).
            compiler: makes the compiler of grammars (`triax.llm.grammar.GrammarCompiler`).

        Raises:
            ValueError: an assignment is not known, or there are grammars without a compiler.
        """
        if not assignments or not set(assignments) <= set(ASSIGNMENTS):
            raise ValueError(f"assignments are {list(assignments)}, choose from {ASSIGNMENTS}")
        if grammars and compiler is None:
            raise ValueError("grammars are given without a compiler; give both or neither")
        self.data, self.model, self.assignments = Path(data).expanduser(), model, assignments
        self.rank, self.remat, self.mix, self.max_dev = rank, remat, dict(mix or {}), max_dev
        self.batch_tokens, self.buckets = batch_tokens, tuple(buckets)
        self.rows_multiple, self.traces, self.passages = rows_multiple, tuple(traces), passages
        self.grammars, self._compiler = dict(grammars or {}), compiler
        if dtype == "auto":
            dtype = "float32" if jax.default_backend() == "cpu" else "bfloat16"
        self.dtype = jnp.dtype(dtype)
        self._tables: dict[str, Any] = {}

    def build(self, seed: int) -> Decoder:
        """The decoder with fresh adapters on all its linear layers."""
        mesh = current_mesh()
        decoder, _ = load_decoder(self._folder, self.dtype, mesh if mesh.size > 1 else None)
        add_lora(decoder, self.rank, nnx.Rngs(seed), DECODER_LAYERS)
        return decoder

    def batch(self, step: int, seed: int) -> dict[str, np.ndarray]:
        """Token ids, and for each token to be written its place, its id and its weight.

        Place p holds the hidden state from which the token after it is told.
        """
        chosen, width = self._batches(step, seed)
        return self._arrays([self._train[n] if n >= 0 else None for n in chosen], width)

    def loss(
        self, model: nnx.Module, batch: Mapping[str, Array], key: Key[Array, ""] | None = None
    ) -> Loss:
        """Cross-entropy of the tokens to be written, summed; logits are made at their places only,
        since the vocabulary outweighs the layers in short rows.
        """
        weights = batch["weights"]
        right, losses = token_losses(model, batch, self.remat)
        metrics = {"token_accuracy": (right * weights).sum()}
        return Loss((losses * weights).sum(), weights.sum(), metrics)

    def validate(self, model: nnx.Module) -> dict[str, float]:
        """Loss a token on dev lessons, and how many of the written outputs are right.

        `exact` is the mean over the assignments of their own figure (see `score_written`).
        """
        examples = self._dev
        figures = {"loss": self._mean_loss(model, examples)}
        written = self.write(model, [one.lesson for one in examples])
        for assignment in self.assignments:
            pairs = [
                (text, one.lesson)
                for text, one in zip(written, examples)
                if one.lesson.assignment == assignment
            ]
            scores = score_written(assignment, pairs)
            figures |= {f"{assignment}/{name}": value for name, value in scores.items()}
        exact = [figures[f"{assignment}/exact"] for assignment in self.assignments]
        return figures | {"exact": sum(exact) / len(exact)}

    def write(self, model: nnx.Module, lessons: Sequence[Lesson]) -> list[str]:
        """What the model writes for each lesson's prompt, greedily, held by the grammars."""
        # New variables over the same arrays: merging must not reach the model that is trained,
        # and `nnx.merge` would share its variables.
        merged = nnx.clone(model)
        merge_lora(merged)
        generator = Generator(merged, self._tokenizer.eos_ids, self.dtype)
        tables = self._compiled(generator.width)
        prompts = [
            Prompt(
                tuple(self._tokenizer.encode(self._prompt(lesson))),
                MAX_NEW_TOKENS[lesson.assignment],
                table=tables.get(lesson.assignment),
            )
            for lesson in lessons
        ]
        order = sorted(range(len(prompts)), key=lambda n: (prompts[n].max_tokens, prompts[n].ids))
        texts: dict[int, str] = {}
        for start in range(0, len(order), _GENERATED_ROWS):
            rows = order[start : start + _GENERATED_ROWS]
            outputs = generator.generate([prompts[n] for n in rows])
            texts |= {n: self._tokenizer.decode(out.ids) for n, out in zip(rows, outputs)}
        return [texts[n] for n in range(len(prompts))]

    def save(self, model: nnx.Module, folder: Path) -> None:
        """Writes the adapters, and what is needed to put them on the base again."""
        config = {
            "part": ADAPTER_PART,
            "base": self.model,
            "rank": self.rank,
            "layers": list(DECODER_LAYERS),
            "assignments": list(self.assignments),
        }
        save_adapter(folder, model, self.trainable, config)

    def describe(self) -> dict[str, Any]:
        """The base, and the number of lessons of each data set."""
        counts = Counter((one.lesson.assignment, one.lesson.source) for one in self._train)
        return {
            "base": self.model,
            "rank": self.rank,
            "assignments": list(self.assignments),
            "lessons": {f"{which}/{source}": n for (which, source), n in sorted(counts.items())},
        }

    @cached_property
    def _folder(self) -> Path:
        return locate(self.model)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._folder)

    @cached_property
    def _train(self) -> list[_Example]:
        lessons = [
            lesson
            for assignment in self.assignments
            for lesson in read_lessons(self.data, "train", assignment)
        ]
        for folder in self.traces:
            found = read_traces(Path(folder).expanduser(), read_passages(self.passages))
            lessons += [one for one in found if one.assignment in self.assignments]
        return self._encoded(mixed(lessons, self.mix))

    @cached_property
    def _dev(self) -> list[_Example]:
        """An even choice from each assignment's data sets."""
        chosen: list[_Example] = []
        for assignment in self.assignments:
            examples = self._encoded(read_lessons(self.data, "dev", assignment, self.max_dev))
            picked = np.linspace(0, len(examples) - 1, min(self.max_dev, len(examples)))
            chosen += [examples[int(n)] for n in picked]
        return chosen

    @cached_property
    def _batches(self) -> BucketedBatches:
        lengths = [one.length for one in self._train]
        return BucketedBatches(lengths, self.batch_tokens, self.buckets, self.rows_multiple)

    @cached_property
    def _slots(self) -> dict[int, int]:
        """The tokens to be written that a row of each width has room for: one shape a width."""
        longest = dict.fromkeys(self.buckets, 8)
        for one in [*self._train, *self._dev]:
            width = self._width(one)
            longest[width] = max(longest[width], len(one.target))
        return {width: min(-(-most // 8) * 8, width) for width, most in longest.items()}

    def _width(self, example: _Example) -> int:
        return next(width for width in self.buckets if example.length <= width)

    def _encoded(self, lessons: Sequence[Lesson]) -> list[_Example]:
        prompts = [self._prompt(lesson) for lesson in lessons]
        targets = [lesson.target for lesson in lessons]
        ids = self._tokenizer.encode_batch([*prompts, *targets])
        found = [
            _Example(lesson, tuple(prompt), (*target, self._end_id))
            for lesson, prompt, target in zip(lessons, ids, ids[len(lessons) :])
        ]
        kept = [one for one in found if one.length <= self.buckets[-1]]
        if len(kept) < len(found):
            _LOG.info(
                "%d of %d lessons are longer than %d tokens and left out",
                len(found) - len(kept),
                len(found),
                self.buckets[-1],
            )
        if not kept:
            raise ValueError(
                f"every lesson is longer than {self.buckets[-1]} tokens; add a wider bucket"
            )
        return kept

    def _prompt(self, lesson: Lesson) -> str:
        messages = lesson_messages(lesson.assignment, lesson.prompt)
        if self._tokenizer.has_chat_template:
            return self._tokenizer.apply_chat_template(messages)
        return "\n\n".join(message.content for message in messages) + "\n\n"

    @cached_property
    def _end_id(self) -> int:
        """The token with which the model's template ends a turn."""
        ends = self._tokenizer.eos_ids
        if self._tokenizer.has_chat_template:
            turn = [Message("user", "?"), Message("assistant", "!")]
            text = self._tokenizer.apply_chat_template(turn, add_generation_prompt=False)
            after = self._tokenizer.encode(text.rpartition("!")[2])
            ends = (*(id_ for id_ in after if id_ in ends), *ends)
        if not ends:
            raise ValueError(f"{self.model} names no token that ends a text (eos_token_id)")
        return ends[0]

    def _compiled(self, width: int) -> dict[str, Any]:
        """The table of each grammar, for a model of so many logits; made once."""
        if self.grammars and not self._tables:
            compiler = self._compiler(
                self._tokenizer.token_bytes()[:width],
                self._tokenizer.encode,
                self._tokenizer.eos_ids,
                width,
            )
            self._tables = {which: compiler.table(one) for which, one in self.grammars.items()}
        return self._tables

    def _arrays(self, examples: Sequence[_Example | None], width: int) -> dict[str, np.ndarray]:
        rows, slots = len(examples), self._slots[width]
        ids = np.full((rows, width), self._tokenizer.pad_id, np.int32)
        mask = np.zeros((rows, width), bool)
        mask[:, 0] = True  # a row that attends to nothing has no defined gradient
        places, targets = np.zeros((2, rows, slots), np.int32)
        weights = np.zeros((rows, slots), np.float32)
        for row, one in enumerate(examples):
            if one is None:
                continue
            count = len(one.target)
            ids[row, : one.length] = (one.prompt + one.target)[:-1]
            mask[row, : one.length] = True
            places[row, :count] = np.arange(count) + len(one.prompt) - 1
            targets[row, :count] = one.target
            weights[row, :count] = 1
        return {"ids": ids, "mask": mask, "places": places, "targets": targets, "weights": weights}

    def _mean_loss(self, model: nnx.Module, examples: Sequence[_Example]) -> float:
        graph, state = nnx.split(model)
        total = weight = 0.0
        for width in self.buckets:
            members = [one for one in examples if self._width(one) == width]
            rows = self._batches.rows[width]
            for start in range(0, len(members), rows):
                part: list[_Example | None] = list(members[start : start + rows])
                batch = self._arrays(part + [None] * (rows - len(part)), width)
                found, count = _summed(Graph(graph), state, batch)
                total, weight = total + float(found), weight + float(count)
        return total / max(weight, 1.0)


def token_losses(
    model: Decoder, batch: Mapping[str, Array], remat: bool = False
) -> tuple[Float[Array, "rows slots"], Float[Array, "rows slots"]]:
    """For each token to be written: 1 where it is the likeliest one, and its cross-entropy."""
    hidden = model.hidden(batch["ids"], batch["mask"], remat=remat)
    picked = jnp.take_along_axis(hidden, batch["places"][..., None], axis=1)
    logits = model.logits(picked)
    gold = jnp.take_along_axis(logits, batch["targets"][..., None], axis=-1)[..., 0]
    right = gold >= logits.max(-1)
    return right.astype(jnp.float32), jax.nn.logsumexp(logits, axis=-1) - gold


@partial(jax.jit, static_argnums=0)
def _summed(graph: Graph, state: Any, batch: Mapping[str, Array]) -> tuple[Array, Array]:
    _, losses = token_losses(nnx.merge(graph.definition, state), batch)
    return (losses * batch["weights"]).sum(), batch["weights"].sum()
