"""How evidence is shown to a model, within a budget of words (R8)."""

from dataclasses import dataclass

from triax.records.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on what a prompt shows. Words are counted by blanks; None means no limit."""

    max_chunks: int | None = None
    max_words_per_chunk: int | None = None
    max_propositions: int | None = None
    max_notes: int | None = None

    def cut(self, text: str) -> str:
        """The first words of a text, with an ellipsis where something was left out."""
        words = text.split()
        if self.max_words_per_chunk is None or len(words) <= self.max_words_per_chunk:
            return text
        return " ".join(words[: self.max_words_per_chunk]) + " …"


def render_evidence(evidence: Evidence, budget: Budget, *, keeps_chunks: bool = True) -> str:
    """Notes, passages (unless left out) and propositions as headed lists; "" where all are empty.

    Notes stand first: they are the wider view, in which passages and propositions have their place.
    """
    blocks = []
    if notes := [found.note for found in evidence.notes[: budget.max_notes]]:
        shown = (f"{one.title}\n{one.text}".strip() for one in notes)
        blocks.append("Summaries:\n" + "\n".join(f"- {budget.cut(text)}" for text in shown))
    chunks = evidence.chunks[: budget.max_chunks] if keeps_chunks else ()
    if chunks:
        blocks.append(
            "Passages:\n"
            + "\n".join(
                f"[{i}] {budget.cut(found.chunk.passage)}" for i, found in enumerate(chunks, 1)
            )
        )
    hits = evidence.hits[: budget.max_propositions]
    if hits:
        blocks.append("Facts:\n" + "\n".join(f"- {hit.proposition.text}" for hit in hits))
    return "\n\n".join(blocks)
