"""Which chunks a resolved triplet rests on: those whose text holds its subject and object."""

from triax.records.evidence import Evidence
from triax.records.text import normalise
from triax.records.triplets import Triplet


def find_sources(triplet: Triplet, evidence: Evidence) -> tuple[str, ...]:
    """Chunk ids, best first: of propositions that name both ends, else of such passages.

    Empty where no text names both; then the model knew it from elsewhere, or put it in other words.
    """
    ends = (normalise(triplet.subject), normalise(triplet.object))

    def names_both(text: str) -> bool:
        folded = normalise(text)
        return all(end in folded for end in ends)

    stated = dict.fromkeys(
        chunk_id
        for hit in evidence.hits
        if names_both(hit.proposition.text)
        for chunk_id in hit.chunk_ids
    )
    told = (found.chunk.id for found in evidence.chunks if names_both(found.chunk.passage))
    return tuple(stated) or tuple(told)
