"""Recognition memory without a language model: a trained reader looks for the answer in triplets.

The task is that of HippoRAG 2 ("From RAG to Memory", Gutierrez et al., 2025, section 3.3); that a
span reader does it is our own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from triax.records.readings import ReadRequest
from triax.records.triplets import Proposition
from triax.records.verbs import PassageReader
from triax.retrieval.row_scores import Groups
from triax.retrieval.triplet_filter import Kept

_JOINT = ". "


@dataclass(frozen=True, slots=True)
class ReaderTripletFilter:
    """Keeps a triplet in which the reader sees an answer to the question, or a step towards it.

    Each candidate is read as a passage of its own: its probability is that of an answer being
    there (`Reading.p_here`), which is raised too where what stands there is a name on the way. With
    `reads_together`, all candidates of a question are also read as one passage, and the one in
    which the answer lies has that probability if it is higher: the last step of a chain shows only
    beside the first.

    reader: the span reader.
    min_here: the least probability of a triplet that is kept.
    keep_at_most: triplets of a question, the most probable ones. None may be left.
    reads_together: see above.
    """

    reader: PassageReader
    min_here: float = 0.05
    keep_at_most: int = 4
    reads_together: bool = True

    def keep(self, groups: Groups, candidates: Sequence[Sequence[Proposition]]) -> list[Kept]:
        """The places of the kept candidates of each group, ascending; one reading for all."""
        asked = [
            (number, place, ReadRequest(query, (text,)))
            for number, group in enumerate(groups)
            for query in dict.fromkeys(group)
            for place, text in self._passages([one.text for one in candidates[number]])
        ]
        chances = [[0.0] * len(found) for found in candidates]
        readings = self.reader.read([request for *_, request in asked]) if asked else []
        for (number, place, _), found in zip(asked, readings, strict=True):
            if found is None:
                continue
            if place is None:
                place = _place_of(found.start, [one.text for one in candidates[number]])
            chances[number][place] = max(chances[number][place], found.p_here)
        return [Kept(self._best(row)) for row in chances]

    def _passages(self, texts: Sequence[str]) -> Iterator[tuple[int | None, str]]:
        """Each text with its place, and all of them together without one."""
        yield from enumerate(texts)
        if self.reads_together and len(texts) > 1:
            yield None, _JOINT.join(texts)

    def _best(self, chances: Sequence[float]) -> list[int]:
        order = sorted(range(len(chances)), key=lambda place: -chances[place])
        return sorted(n for n in order[: self.keep_at_most] if chances[n] >= self.min_here)


def _place_of(start: int, texts: Sequence[str]) -> int:
    """Which of the joined texts a character lies in; a joint belongs to the text before it."""
    ends = accumulate(len(text) + len(_JOINT) for text in texts)
    return next((place for place, end in enumerate(ends) if start < end), len(texts) - 1)
