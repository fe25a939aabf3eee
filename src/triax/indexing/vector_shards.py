"""The vectors of one index, made shard by shard on many machines (R4, R30).

`build_index` embeds texts in shards of a fixed size; here the tasks of an array make disjoint ones
of them, and `build_index(..., is_embedded=True)` finds them all. The bytes are those of one machine
that makes the shards itself, up to how the machines round.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from triax.indexing.embedding import embed_shards, missing_shards, num_shards
from triax.indexing.tables import TripletTables
from triax.indexing.updates import clear_shards, texts_to_embed
from triax.records.documents import Chunk
from triax.records.triplets import Proposition
from triax.records.verbs import Encoder, TextRole


@dataclass(frozen=True, slots=True)
class VectorShards:
    """The shards of an index, numbered through: those of propositions, then those of chunks.

    `parts` are what `texts_to_embed` gives for the index at `folder`; `role` is the one in which
    the encoder reads propositions.
    """

    folder: Path
    parts: tuple[tuple[list[str], Path], ...]
    role: TextRole = "passage"

    @classmethod
    def of(
        cls,
        chunks: Iterable[Chunk],
        propositions: Iterable[Proposition],
        folder: Path | str,
        embeds_chunks: bool = True,
        role: TextRole = "passage",
    ) -> "VectorShards":
        """The shards that `build_index` of the same arguments needs."""
        tables = TripletTables.of(chunks, propositions)
        folder = Path(folder)
        return cls(folder, tuple(texts_to_embed(tables, folder, embeds_chunks)), role)

    def __len__(self) -> int:
        return sum(num_shards(texts) for texts, _ in self.parts)

    def missing(self) -> list[int]:
        """The shards that are not made; none if the index is there."""
        if self.is_built:
            return []
        found: list[int] = []
        offset = 0
        for texts, work in self.parts:
            found += [offset + number for number in missing_shards(texts, work)]
            offset += num_shards(texts)
        return found

    def make(
        self,
        encoder: Encoder,
        numbers: Collection[int],
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Makes those of these shards that are missing; returns how many these were.

        Does nothing where the index is there, and ends early where it comes to be meanwhile, made
        by others. `progress` is called with the number of these shards done so far.

        Raises:
            ValueError: the shards there are those of other texts or another encoder, or the
                encoder gives rows of another shape than it says.
        """
        num_made = offset = done = 0
        for texts, work in self.parts:
            count = num_shards(texts)
            own = [number - offset for number in numbers if 0 <= number - offset < count]
            role = self.role if offset == 0 else "passage"
            offset += count
            if not own or self.is_built:
                continue
            try:
                num_made += embed_shards(texts, encoder, work, own, role, _from(done, progress))
            except FileNotFoundError:  # cleared by who built the index
                if not self.is_built:
                    raise
            done += len(own)
        if self.is_built:
            clear_shards(self.folder)  # made here after the index was there
        return num_made

    @property
    def is_built(self) -> bool:
        """Whether the index is there."""
        return (self.folder / "manifest.json").exists()


def _from(done: int, progress: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda count: progress(done + count)
