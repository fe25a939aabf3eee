"""Triplets as sentences, and one proposition for all the chunks that state a triplet."""

import hashlib
import json
from collections.abc import Iterable

from triax.records.triplets import Extraction, Proposition, Triplet


def sentence(triplet: Triplet) -> str:
    """Subject, predicate and object with spaces between (T2RAG, section 3.1)."""
    return " ".join(triplet.fields)


def proposition_id(triplet: Triplet) -> str:
    """16 hexadecimal digits that depend on the three fields alone."""
    fields = json.dumps(triplet.fields, ensure_ascii=True)
    return hashlib.sha256(fields.encode("ascii")).hexdigest()[:16]


def propositions(extractions: Iterable[Extraction]) -> list[Proposition]:
    """One proposition for each distinct triplet, in order of first appearance (R27).

    Triplets with the same three fields are one proposition, which keeps the ids of all its chunks
    in their order. The triplet is the one that was first seen with the highest confidence.
    """
    triplets: dict[tuple[str, str, str], Triplet] = {}
    chunk_ids: dict[tuple[str, str, str], dict[str, None]] = {}
    for extraction in extractions:
        for triplet in extraction.triplets:
            best = triplets.setdefault(triplet.fields, triplet)
            if (triplet.confidence or 0.0) > (best.confidence or 0.0):
                triplets[triplet.fields] = triplet
            chunk_ids.setdefault(triplet.fields, {})[extraction.chunk_id] = None
    return [
        Proposition(proposition_id(triplet), triplet, sentence(triplet), tuple(chunk_ids[fields]))
        for fields, triplet in triplets.items()
    ]
