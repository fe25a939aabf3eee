"""The plainest compression: evidence as it was found, cut where the budget ends.

One of the controls of the graph walk, from the revision of "The reasoning bottleneck" (Zarinkia et
al., 2026): notes, then chunks, then propositions, each best first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from triax.records.evidence import Evidence
from triax.retrieval.packing import pack
from triax.retrieval.shown import ShownTokens, keep


@dataclass(frozen=True, slots=True)
class Truncation:
    """Keeps texts until the first that does not fit, and the beginning of that one."""

    shown: ShownTokens
    max_tokens: int = 4000

    def compress(
        self, groups: Sequence[Sequence[str]], evidences: Sequence[Evidence]
    ) -> list[Evidence]:
        """The first `max_tokens` of each evidence, whatever was asked."""
        found = []
        for evidence, sizes in zip(evidences, self.shown.sizes(evidences), strict=True):
            order = list(sizes)
            room = self.max_tokens - self.shown.headings(evidence)
            kept = order[: len(pack(list(sizes.values()), room))]
            if len(kept) < len(order):
                cut = order[len(kept)]
                left = room - sum(sizes[piece] for piece in kept)
                if (shorter := self.shown.cut(evidence, cut, left)) is not None:
                    evidence, kept = shorter, [*kept, cut]
            found.append(keep(evidence, kept))
        return found
