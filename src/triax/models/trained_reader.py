"""A trained reader from its adapter: `triax.records.verbs.PassageReader`."""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from triax.models import weights
from triax.models.adapters import adapter_folder, load_adapter, merge_lora, read_config
from triax.models.compile_cache import use_compile_cache
from triax.models.encoder_params import load_encoder
from triax.models.mesh import replicated
from triax.models.reading_answers import Calibration, best_answer, calibrated
from triax.models.reading_scores import WindowScorer
from triax.models.reading_windows import Windower
from triax.models.span_reader import TRAINABLE, SpanReader, build_reader
from triax.models.tokenizer import load_tokenizer
from triax.records.readings import Reading, ReadRequest


class TrainedReader:
    """Answers queries by spans of their passages.

    Nothing is read or fetched before the first use. Equal (query, passage) rows are read once a
    call. Safe to call from several threads; one call computes at a time.
    """

    def __init__(
        self,
        adapter: str = "solver",
        batch_tokens: int | None = None,
        dtype: str = "float32",
    ):
        """Takes the settings.

        Args:
            adapter: a shipped adapter, a folder, or a hub name (`adapters.adapter_folder`).
            batch_tokens: rows x length of a batch on each device; None fits the device.
            dtype: of the computation, "float32" or "bfloat16".
        """
        self.name = adapter
        self.adapter = adapter
        self._batch_tokens = batch_tokens
        self._dtype = dtype
        self._lock = threading.RLock()

    @cached_property
    def folder(self) -> Path:
        """Where the adapter is."""
        return adapter_folder(self.adapter)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json of the adapter."""
        return read_config(self.folder, "span_reader")

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration.from_json(self.config.get("calibration"))

    @cached_property
    def _base_folder(self) -> Path:
        return weights.locate(self.config["base"])

    @cached_property
    def _windower(self) -> Windower:
        return Windower(load_tokenizer(self._base_folder), self.config["max_length"])

    @cached_property
    def _loaded(self) -> tuple[WindowScorer, Any]:
        use_compile_cache()
        model = load_reader(self.folder, self.config, self._base_folder, self._dtype)
        graph, state = nnx.split(model)
        scorer = WindowScorer(graph, self.config["max_length"], batch_tokens=self._batch_tokens)
        return scorer, jax.device_put(state, replicated(scorer.mesh))

    def read(
        self,
        requests: Sequence[ReadRequest],
        *,
        allows_verdicts: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[Reading | None]:
        """The best answer to each request over all its passages, with calibrated probabilities.

        Args:
            requests: one without passages gives None.
            allows_verdicts: whether yes and no may be answers to those that do not say "span".
            progress: is called with the number of rows done.
        """
        with self._lock:
            scorer, state = self._loaded
            pairs = list(
                dict.fromkeys((one.query, text) for one in requests for text in one.passages)
            )
            cut = self._windower([query for query, _ in pairs], [text for _, text in pairs])
            rows = [window for windows in cut for window in windows]
            scores = iter(scorer(state, rows, progress))
            read = {
                pair: [(window, next(scores)) for window in windows]
                for pair, windows in zip(pairs, cut, strict=True)
            }
        found: list[Reading | None] = []
        for one in requests:
            members = [
                (number, *member)
                for number, text in enumerate(one.passages)
                for member in read[one.query, text]
            ]
            best = best_answer(
                one.passages,
                [(number, window) for number, window, _ in members],
                [score for *_, score in members],
                allows_verdicts and one.kinds != "span",
                one.kinds != "verdict",
            )
            found.append(None if best is None else calibrated(best, self._calibration))
        return found


def load_reader(folder: Path, config: dict[str, Any], base: Path, dtype: str) -> SpanReader:
    """Base weights and adapter, merged.

    Raises:
        AdapterError: the adapter does not fit the base.
    """
    encoder, _ = load_encoder(base, dtype)
    model = build_reader(encoder, config["rank"])
    load_adapter(folder, model, TRAINABLE)
    merge_lora(model)
    return model


@lru_cache(maxsize=4)
def shared_reader(
    adapter: str = "solver",
    batch_tokens: int | None = None,
    dtype: str = "float32",
) -> TrainedReader:
    """One reader for all parts that ask for the same one, so that its weights are held once."""
    return TrainedReader(adapter, batch_tokens, dtype)
