"""Whether what is needed stood in what was read: M1 asks for the answer, M3 for all on the way.

Source: "The Reasoning Bottleneck in Graph-RAG" (Zarinkia, Srinivasan, Thomo, 2026, section 5); M3
is of the authors' revision. They look for a text inside of words too; here it must begin and end
with a word, so that "US" is not in "used".
"""

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triax.records.documents import Document
from triax.records.questions import Question
from triax.records.text import normalise
from triax.scoring.answers import normalize_answer

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_DISAMBIGUATION = re.compile(r"\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Normalised:
    """Texts in two forms, without punctuation and with blanks for it.

    So "U.S." is found where "US" stands, and "Hitchcock" where "Hitchcock's" does.
    """

    glued: str
    spaced: str

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Normalised":
        """Each text for itself: nothing is found across the end of one."""
        folded = [normalise(text) for text in texts]
        return cls(_join(folded), _join(text.translate(_BLANKS) for text in folded))

    def holds(self, text: str) -> bool:
        """Whether a text stands in one of these, as whole words; one without a word does not.

        >>> read = Normalised.of(["The U.S. film is Hitchcock's.", "Vertigo"])
        >>> [read.holds(text) for text in ("us film", "Hitchcock", "Hitch", "Hitchcock Vertigo")]
        [True, True, False, False]
        """
        wanted = Normalised.of([text])
        return bool(wanted.glued.strip()) and (
            wanted.glued in self.glued or wanted.spaced in self.spaced
        )


def is_polar(text: str) -> bool:
    """Whether an answer is yes or no, or has no word at all."""
    return normalize_answer(text) in ("", "yes", "no")


def sought_answers(question: Question) -> tuple[str, ...]:
    """The answers of which it says something that they stand in a text.

    None where the answer is yes or no, and none of a comparison: the question itself names what is
    compared, and so do the texts, whether or not they tell which it is.
    """
    asked = Normalised.of([question.text])
    answers = [one for one in question.answers if not is_polar(one)]
    is_comparison = "comparison" in question.kind or any(map(asked.holds, answers))
    return () if is_comparison else tuple(answers)


def names_of(question: Question, name: str) -> tuple[str, ...]:
    """A name, and where it is the answer all forms of that."""
    form = normalize_answer(name)
    is_answer = any(normalize_answer(one) == form for one in question.answers)
    return tuple(dict.fromkeys((name, *question.answers))) if is_answer else (name,)


def bridging_entities(
    question: Question, documents: Mapping[str, Document]
) -> tuple[tuple[str, ...], str]:
    """The entities on the way to the answer, each once, and what they were told from.

    `steps`: the answers of the gold steps (as the authors do for MuSiQue). `triplets`: subjects and
    objects of the gold triplets (2WikiMultiHopQA). `titles`: the titles of all gold documents,
    without what is in brackets at their ends, and the answer (HotpotQA). Yes and no are none.
    Nothing and "" where the data does not say.

    Args:
        question: with its gold.
        documents: those of the corpus, by id.
    """
    if question.steps:
        named, by = [step.answer for step in question.steps], "steps"
    elif question.gold_triplets:
        named = [end for one in question.gold_triplets for end in (one.subject, one.object)]
        by = "triplets"
    else:
        gold = [documents.get(one) for one in question.gold_document_ids]
        titles = [_DISAMBIGUATION.sub("", one.title if one else "").strip() for one in gold]
        if not titles or not all(titles) or question.unmatched_gold:
            return (), ""
        named, by = [*titles, *question.answers[:1]], "titles"
    kept: dict[str, str] = {}
    for name in named:
        if not is_polar(name):
            kept.setdefault(normalize_answer(name), name)
    return tuple(kept.values()), by if kept else ""


def coverage(
    question: Question,
    texts: Sequence[str],
    document_ids: Collection[str],
    documents: Mapping[str, Document],
) -> dict[str, Any]:
    """Whether the context covers the answer (`m1`) and all that leads to it (`m3`).

    `m1`: one of the answers stands in the texts (`m1_by` is `answer`). Where it says nothing that
    it does, see `sought_answers`, all gold documents must have been found (`documents`). `m3`: all
    bridging entities stand in the texts (`m3_by` is `steps`, `triplets` or `titles`), or, where
    none is known, all gold documents were found (`documents`). `answer_in_context` is what the
    paper calls coverage: whether an answer stands in the texts, whatever the answer.

    Args:
        question: with its gold.
        texts: all that was read.
        document_ids: of the chunks that were found.
        documents: those of the corpus, by id.

    Returns:
        The five values; None, and "" for what told it, where the data does not say.
    """
    read = Normalised.of(texts)
    gold = {*question.gold_document_ids, *question.unmatched_gold}
    by_documents = (gold <= set(document_ids), "documents") if gold else (None, "")
    m1, m1_by = by_documents
    if answers := sought_answers(question):
        m1, m1_by = any(map(read.holds, answers)), "answer"
    m3, m3_by = by_documents
    entities, by = bridging_entities(question, documents)
    if entities:
        m3_by = by
        m3 = all(any(map(read.holds, names_of(question, one))) for one in entities)
    in_context = any(map(read.holds, question.answers)) if question.answers else None
    found = {"m1": m1, "m1_by": m1_by, "m3": m3, "m3_by": m3_by}
    return found | {"answer_in_context": in_context}


def _join(texts: Iterable[str]) -> str:
    """A line end between two texts, which is in no normalised one."""
    return "\n".join(f" {normalize_answer(text)} " for text in texts)
