"""What a reader is shown of evidence, text by text, in tokens; and evidence with less of it.

A budget is a promise about a prompt, so the line that a text stands on is counted, and the heading
above it: what `reasoning.context.render_evidence` shows has no more tokens than are counted here.
Lines are counted one by one, as tokenizers read them; only a run of blanks over the end of a line
may become other tokens in the whole prompt.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from triax.records.evidence import Evidence, Hit
from triax.records.verbs import TokenCounter

Kind = Literal["notes", "chunks", "hits"]
Piece = tuple[Kind, int]
"""One text of an evidence: its kind, and its place among those."""
KINDS: tuple[Kind, ...] = ("notes", "chunks", "hits")
_HEADINGS = {"notes": "Summaries:\n\n", "chunks": "Passages:\n\n", "hits": "Facts:\n\n"}
# A passage's number has up to three digits.
_LINES = {"notes": "- {}\n", "chunks": "[000] {}\n", "hits": "- {}\n"}


class ShownTokens:
    """Counts the texts of evidence by a reader's own tokenizer."""

    def __init__(self, counter: TokenCounter, kinds: Sequence[str] = KINDS) -> None:
        """Takes what counts, and the kinds of text that the reader is shown.

        Texts of other kinds cost nothing and are always kept.

        Raises:
            ValueError: there is no such kind.
        """
        if unknown := set(kinds) - set(KINDS):
            raise ValueError(f"kinds has {sorted(unknown)}; expected some of {list(KINDS)}")
        self.kinds = tuple(kinds)
        self._counter = counter

    def sizes(self, evidences: Sequence[Evidence]) -> list[dict[Piece, int]]:
        """The tokens of every text of each evidence: what costs nothing, then as it is shown."""
        shown = [pieces(evidence) for evidence in evidences]
        lines = [
            _LINES[kind].format(text)
            for texts in shown
            for (kind, _), text in texts.items()
            if kind in self.kinds
        ]
        counts = iter(self._counter.count(lines))
        found = []
        for texts in shown:
            sizes = {piece: next(counts) if piece[0] in self.kinds else 0 for piece in texts}
            found.append(dict(sorted(sizes.items(), key=lambda one: one[0][0] in self.kinds)))
        return found

    def headings(self, evidence: Evidence) -> int:
        """The tokens of the headings above the kinds of text that the evidence has."""
        above = [_HEADINGS[kind] for kind in self.kinds if getattr(evidence, kind)]
        return sum(self._counter.count(above))

    def totals(self, evidences: Sequence[Evidence]) -> list[int]:
        """The tokens of each evidence as a whole."""
        return [
            sum(sizes.values()) + self.headings(evidence)
            for evidence, sizes in zip(evidences, self.sizes(evidences), strict=True)
        ]

    def cut(self, evidence: Evidence, piece: Piece, max_tokens: int) -> Evidence | None:
        """The evidence with one text cut to its beginning; None where nothing of it would stay.

        Only notes and chunks are cut: a part of a proposition says something else.
        """
        kind, place = piece
        if kind == "hits":
            return None
        found = list(getattr(evidence, kind))
        record = found[place].chunk if kind == "chunks" else found[place].note
        before, after = _LINES[kind].split("{}")
        before += f"{record.title}\n" if record.title else ""
        room = max_tokens - sum(self._counter.count([after]))
        body = self._counter.cut(before + record.text, room)[len(before) :].rstrip()
        if not body:
            return None
        shorter = replace(record, text=body)
        found[place] = replace(found[place], **{kind[:-1]: shorter})
        return replace(evidence, **{kind: tuple(found)})


def keep(evidence: Evidence, kept: Sequence[Piece]) -> Evidence:
    """The evidence of some texts, each kind in the order that is given; what it cost stays.

    A hit names those of its sources that are kept.
    """
    chunks = tuple(evidence.chunks[place] for kind, place in kept if kind == "chunks")
    ids = {found.chunk.id for found in chunks}
    hits = [evidence.hits[place] for kind, place in kept if kind == "hits"]
    return replace(
        evidence,
        chunks=chunks,
        hits=tuple(
            Hit(
                hit.proposition,
                hit.score,
                tuple(one for one in hit.proposition.chunk_ids if one in ids),
            )
            for hit in hits
        ),
        notes=tuple(evidence.notes[place] for kind, place in kept if kind == "notes"),
    )


def pieces(evidence: Evidence) -> dict[Piece, str]:
    """Every text in the order in which a reader is shown them."""
    found: dict[Piece, str] = {}
    for place, scored in enumerate(evidence.notes):
        found["notes", place] = f"{scored.note.title}\n{scored.note.text}".strip()
    for place, ranked in enumerate(evidence.chunks):
        found["chunks", place] = ranked.chunk.passage
    for place, hit in enumerate(evidence.hits):
        found["hits", place] = hit.proposition.text
    return found
