"""Tokens of texts, as the model that will read them counts: `triax.records.verbs.TokenCounter`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

from triax.models import weights
from triax.models.tokenizer import Tokenizer, load_tokenizer

_WINDOW = 16384  # texts whose tokens are held at once
_WORD = re.compile(r"\S+")


class ModelTokenCounter:
    """Counts with a model's own tokenizer, without special tokens; counts are kept.

    Nothing is read or fetched before the first use.
    """

    def __init__(self, model: str = "sentence-transformers/all-MiniLM-L6-v2") -> None:
        """Takes a model folder or a hub name, as `conf/encoder` and `conf/llm` name theirs."""
        self.model = model
        # By digest: the chunks of a corpus would be held a second time as keys.
        self._kept: dict[bytes, int] = {}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(weights.locate(self.model))

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text; one that was counted before costs a look-up."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts) if key not in self._kept}
        new = list(missing)
        for start in range(0, len(new), _WINDOW):
            window = new[start : start + _WINDOW]
            found = self._tokenizer.encode_batch([missing[key] for key in window])
            self._kept |= {key: len(ids) for key, ids in zip(window, found, strict=True)}
        return [self._kept[key] for key in keys]

    def cut(self, text: str, max_tokens: int) -> str:
        """The longest beginning of whole tokens that has at most `max_tokens`."""
        ((ids, offsets),) = self._tokenizer.encode_offsets([text])
        if len(ids) <= max_tokens:
            return text
        # A beginning may fall into other tokens than the whole did, and into more of them.
        for _, end in reversed(offsets[: max(0, max_tokens)]):
            if len(self._tokenizer.encode(text[:end])) <= max_tokens:
                return text[:end]
        return ""


@lru_cache(maxsize=4)
def shared_token_counter(
    model: str = "sentence-transformers/all-MiniLM-L6-v2",
) -> ModelTokenCounter:
    """One counter for all parts that ask for the same model, so that each text is counted once."""
    return ModelTokenCounter(model)


@dataclass(frozen=True, slots=True)
class WordCounter:
    """Counts words by blanks and takes each for so many tokens; needs no model.

    1.3 is the estimate of the released code of the graph walk (Zarinkia et al., 2026).
    """

    tokens_per_word: float = 1.3

    def __post_init__(self) -> None:
        if not self.tokens_per_word > 0:
            raise ValueError(f"tokens_per_word is {self.tokens_per_word}, expected more than 0")

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, rounded up."""
        return [self._tokens(len(text.split())) for text in texts]

    def cut(self, text: str, max_tokens: int) -> str:
        """The longest beginning of whole words that has at most `max_tokens`."""
        ends = [match.end() for match in _WORD.finditer(text)]
        if self._tokens(len(ends)) <= max_tokens:
            return text
        fitting = [end for number, end in enumerate(ends, 1) if self._tokens(number) <= max_tokens]
        return text[: fitting[-1]] if fitting else ""

    def _tokens(self, num_words: int) -> int:
        return math.ceil(round(num_words * self.tokens_per_word, 6))
