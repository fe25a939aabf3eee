"""Whether a triplet speaks of its passage at all: the guard against copied examples."""

import re

from triax.records.text import normalise
from triax.records.triplets import Triplet

_STOP_WORDS = frozenset(
    "a an the of in on at by for from to with and or as is are was were be been has have had not "
    "it its he she his her they their this that these those who which".split()
)


def content_words(text: str) -> frozenset[str]:
    """The first five letters of each word that is no function word, which joins inflections.

    A word of a script without case, which may be written without blanks, gives all its pairs of
    letters as well.
    """
    found = set()
    for word in re.findall(r"\w+", normalise(text)):
        if word not in _STOP_WORDS:
            found.add(word[:5])
            if not word.isascii() and word.upper() == word.lower():
                found |= {word[i : i + 2] for i in range(len(word) - 1)}
    return frozenset(found)


def is_supported(triplet: Triplet, words: frozenset[str]) -> bool:
    """Subject and object each share a content word with a passage whose words are given.

    A field without content words, such as "!!!" or "It", cannot be judged and passes.
    """
    for field in (triplet.subject, triplet.object):
        own = content_words(field)
        if own and not own & words:
            return False
    return True
