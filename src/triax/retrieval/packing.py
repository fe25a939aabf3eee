"""Texts, best first, into a budget of tokens: what RAPTOR, LightRAG and GraphRAG end with."""

from collections.abc import Sequence

import numpy as np


def pack(
    tokens: Sequence[int],
    max_tokens: int,
    *,
    skips: bool = False,
    always: Sequence[bool] | None = None,
) -> list[int]:
    """The places of the texts that are kept, ascending; together they have at most `max_tokens`.

    Args:
        tokens: of each text, best first.
        max_tokens: the budget; nothing but empty texts fits into one of 0 or less.
        skips: leave out what does not fit and go on; False stops at the first that does not fit.
        always: texts that are kept even if they do not fit, and take from the budget of those
            after them. With one of them, the budget is no promise.

    Raises:
        ValueError: a text has less than no tokens.
    """
    sizes = np.asarray(tokens, np.int64)
    if (sizes < 0).any():
        raise ValueError(f"a text has {sizes.min()} tokens, expected 0 or more")
    kept: list[int] = []
    left, is_open = max(0, max_tokens), True
    for place, size in enumerate(sizes.tolist()):
        fits = is_open and (size <= left or not size)
        if fits or (always is not None and always[place]):
            kept.append(place)
            left -= size
        else:
            is_open = skips
    return kept
