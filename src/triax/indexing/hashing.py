"""An encoder without weights: a hashed bag of words, for tests and demonstrations."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from triax.records.verbs import TextRole


class HashingEncoder:
    """Counts words in hashed components, then scales each row to length 1.

    A word is a match of `\\w+` in the lower-cased text; it adds 1 to component
    `int(md5(word as UTF-8), 16) % dimension`. A text without words is the zero vector. Both roles
    are the same.
    """

    def __init__(self, dimension: int = 512) -> None:
        """Takes the number of components, at least 1."""
        if dimension < 1:
            raise ValueError(f"dimension is {dimension}, expected at least 1; 512 is usual")
        self.name = f"hashing-{dimension}"
        self.dimension = dimension

    def encode(
        self, texts: Sequence[str], role: TextRole = "passage"
    ) -> Float32[np.ndarray, "texts dimension"]:
        """Embeds texts as rows of length 1, or 0 where a text has no word."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts):
            for word in re.findall(r"\w+", text.lower()):
                row[int(hashlib.md5(word.encode("utf-8")).hexdigest(), 16) % self.dimension] += 1
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)
