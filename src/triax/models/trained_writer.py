"""A trained query writer from its adapter: questions to operators and query triplets."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from triax.models import weights
from triax.models.adapters import adapter_folder, add_lora, load_adapter, merge_lora, read_config
from triax.models.compile_cache import use_compile_cache
from triax.models.encoder_params import load_encoder
from triax.models.query_decoding import QueryDecoder
from triax.models.query_vocabulary import QueryVocabulary, QuestionReader, Written
from triax.models.query_writer import TRAINABLE, QueryWriter, WriterConfig

PART = "decompose"
_KEPT = 4096  # questions whose triplets are kept; some hundred bytes each


class TrainedWriter:
    """Writes query triplets.

    Nothing is read or fetched before the first use. The last questions are kept with what was
    written, so a later stage may ask for the operator again at no cost. Safe to call from several
    threads; one call computes at a time.
    """

    def __init__(self, adapter: str = "decomposer", max_outputs: int = 96):
        """Takes the settings.

        Args:
            adapter: a shipped adapter, a folder, or a hub name (`adapters.adapter_folder`).
            max_outputs: most words, pieces and separators of a question's triplets; a model with
                fewer positions lowers it.
        """
        self.name = adapter
        self.adapter = adapter
        self._max_outputs = max_outputs
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, Written] = OrderedDict()

    @cached_property
    def folder(self) -> Path:
        """Where the adapter is."""
        return adapter_folder(self.adapter)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json of the adapter."""
        return read_config(self.folder, PART)

    @cached_property
    def _reader(self) -> QuestionReader:
        return QuestionReader.load(weights.locate(self.config["base"]), self.config["max_length"])

    @cached_property
    def _decoder(self) -> QueryDecoder:
        use_compile_cache()
        vocabulary = QueryVocabulary(tuple(self.config["operators"]), tuple(self.config["pieces"]))
        model = load_writer(self.folder, self.config, weights.locate(self.config["base"]))
        most = min(self._max_outputs, model.config.max_outputs)
        return QueryDecoder(model, vocabulary, most)

    def write(self, questions: Sequence[str]) -> list[Written]:
        """Operator and query triplets of each question, in order."""
        with self._lock:
            new = [one for one in dict.fromkeys(questions) if one not in self._kept]
            written = self._decoder.write(self._reader.read(new)) if new else []
            known = self._kept | dict(zip(new, written, strict=True))
            found = [known[question] for question in questions]
            for question, one in zip(questions, found):
                self._kept[question] = one
                self._kept.move_to_end(question)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def forget(self) -> None:
        """Drops what was kept, so that the next call computes again (for measurements)."""
        with self._lock:
            self._kept.clear()


def load_writer(folder: Path, config: dict[str, Any], base: Path) -> QueryWriter:
    """Base weights and adapter, merged.

    Raises:
        AdapterError: the adapter does not fit the base.
    """
    encoder, _ = load_encoder(base)
    rngs = nnx.Rngs(jax.random.key(0))
    add_lora(encoder, config["rank"], rngs)
    model = QueryWriter(WriterConfig(**config["decoder"]), encoder, rngs=rngs)
    load_adapter(folder, model, TRAINABLE)
    merge_lora(model)
    return model


@lru_cache(maxsize=4)
def shared_writer(adapter: str = "decomposer", max_outputs: int = 96) -> TrainedWriter:
    """One writer for all parts that ask for the same one, so that its weights are held once."""
    return TrainedWriter(adapter, max_outputs)
