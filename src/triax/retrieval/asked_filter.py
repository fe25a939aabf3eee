"""Recognition memory by a language model: it is shown the linked triplets and says which help.

Source: "From RAG to Memory" (Gutierrez et al., 2025, section 3.3), in our own words. The released
code maps whatever the model says to its nearest candidate; here a triplet that was made up is
dropped, and an answer that cannot be read drops nothing.
"""

import difflib
import json
import logging
import re
from collections.abc import Sequence

from triax.extraction.prompted import TRIPLETS_SCHEMA
from triax.llm.blocking import complete_now
from triax.llm.ledger import usage_of
from triax.records.completions import Completion, CompletionRequest, Grammar, Message
from triax.records.text import normalise
from triax.records.triplet_lines import bare_lines
from triax.records.triplet_text import parse_triplets
from triax.records.triplets import Proposition
from triax.records.verbs import Completer
from triax.retrieval.row_scores import Groups
from triax.retrieval.triplet_filter import Kept

_log = logging.getLogger(__name__)
# An empty answer, and brackets that happen to hold nothing, say nothing.
_SAYS_NONE = re.compile(r"\[\s*\]|[^\W_]")

SYSTEM = (
    "A search has found triplets for a question. Pick those that help to answer it: they state the "
    "answer, or name something on the way to it. Pick at most {most}, copy them unchanged, and add "
    'none. If none helps, give an empty list. Answer with JSON: {{"triplets": [["...", "...", '
    '"..."]]}}'
)
# Nothing in the examples exists, so that what a model copies from them matches no candidate.
SHOTS = (
    (
        "In which town was the author of Quellmoor born?",
        (
            ("Quellmoor", "written by", "Ottoline Varnhagen-Pryce"),
            ("Quellmoor", "published in", "1807"),
            ("Ottoline Varnhagen-Pryce", "born in", "Dunmarrow"),
            ("Quellmoor Mill", "located in", "Tarnovia"),
        ),
        (0, 2),
    ),
    (
        "Which lake is deeper, Osel or Hartmere?",
        (
            ("Oselgate", "is", "village"),
            ("Lake Osel", "has maximum depth", "212 m"),
            ("Lake Osel", "drains into", "the Varn"),
            ("Hartmere", "is at most", "96 m deep"),
        ),
        (1, 3),
    ),
    (
        "Who composed the anthem of Tarnovia?",
        (
            ("Tarnovia", "borders", "Norvenia"),
            ("anthem of Norvenia", "adopted in", "1911"),
        ),
        (),
    ),
)
GRAMMAR = Grammar("json_schema", json.dumps(TRIPLETS_SCHEMA, sort_keys=True))


class LlmTripletFilter:
    """Asks a language model which of a question's triplets help; all questions in one call.

    A failed call, and an answer in which no candidate is found though it does not say that there
    is none, keep all candidates. `num_failed` and `num_unreadable` count them.
    """

    def __init__(
        self,
        completer: Completer,
        keep_at_most: int = 4,
        max_tokens: int = 512,
        min_likeness: float = 0.8,
    ) -> None:
        """Takes the model and the settings.

        Args:
            completer: the language model.
            keep_at_most: triplets of a question; the first that the model names.
            max_tokens: the longest answer.
            min_likeness: of a triplet that is not copied exactly to a candidate, in [0, 1]
                (`difflib`'s ratio of their texts); below, it is taken for made up.

        Raises:
            ValueError: keep_at_most is below 1.
        """
        if keep_at_most < 1:
            raise ValueError(f"keep_at_most is {keep_at_most}, expected at least 1")
        self.num_failed = 0
        self.num_unreadable = 0
        self._completer = completer
        self._most = keep_at_most
        self._max_tokens = max_tokens
        self._min_likeness = min_likeness

    def keep(self, groups: Groups, candidates: Sequence[Sequence[Proposition]]) -> list[Kept]:
        """The places of the kept candidates of each group, ascending.

        May be called inside and outside of an event loop; it blocks until all answers are there.
        A group without a query or without a candidate is not asked about.
        """
        asked = [n for n, group in enumerate(groups) if group and candidates[n]]
        kept = [Kept(range(len(found))) for found in candidates]
        if not asked:
            return kept
        requests = [self._request(groups[n], candidates[n]) for n in asked]
        faults = []
        for number, answer in zip(asked, complete_now(self._completer, requests), strict=True):
            places: Sequence[int] | None = None
            if answer.text is None:
                self.num_failed += 1
                faults.append(f"a failed call: {answer.error}")
            else:
                places = read_places(answer, candidates[number], self._min_likeness)
                if places is None:
                    self.num_unreadable += 1
                    faults.append(f"no candidate in {answer.text[:80]!r}")
            chosen = kept[number].places if places is None else sorted(places[: self._most])
            kept[number] = Kept(chosen, usage_of([answer]))
        if faults:
            _log.warning(
                "%s: %d of %d questions keep all their triplets, for example because of %s",
                self._completer.model,
                len(faults),
                len(asked),
                faults[0],
            )
        return kept

    def _request(
        self, group: Sequence[str], candidates: Sequence[Proposition]
    ) -> CompletionRequest:
        turns = [Message("system", SYSTEM.format(most=self._most))]
        for question, shown, places in SHOTS:
            turns.append(Message("user", _shown((question,), shown)))
            turns.append(Message("assistant", _json([shown[place] for place in places])))
        fields = [one.triplet.fields for one in candidates]
        return CompletionRequest(
            (*turns, Message("user", _shown(group, fields))),
            self._max_tokens,
            grammar=GRAMMAR,
            stage="filter",
        )


def read_places(
    answer: Completion, candidates: Sequence[Proposition], min_likeness: float = 0.8
) -> list[int] | None:
    """Which candidates an answer names, in its order; None where it names none that is there.

    Triplets in any form that `parse_triplets` reads, or sentences, one a line. An answer that
    says that no triplet helps gives an empty list.
    """
    text = answer.text or ""
    is_cut = answer.finish_reason == "length"
    parsed = parse_triplets(text, is_cut=is_cut)
    if parsed.status == "empty" and _SAYS_NONE.search(text):
        return []
    said = [" ".join(one.fields) for one in parsed.triplets]
    if not said and "<think>" not in text.rpartition("</think>")[2]:
        said = bare_lines(text.rpartition("</think>")[2], is_cut=is_cut)
    texts = [normalise(" ".join(one.triplet.fields)) for one in candidates]
    places: dict[int, None] = {}
    for one in map(normalise, said):
        exact = [place for place, text in enumerate(texts) if text == one]
        places.update(dict.fromkeys(exact or _nearest(one, texts, min_likeness)))
    return list(places) or None


def _nearest(said: str, texts: Sequence[str], min_likeness: float) -> list[int]:
    """The place of the text that is most like what was said, if it is like enough."""
    likeness = [difflib.SequenceMatcher(None, text, said, False).ratio() for text in texts]
    best = max(likeness, default=0.0)
    return [likeness.index(best)] if best >= min_likeness else []


def _shown(queries: Sequence[str], triplets: Sequence[tuple[str, str, str]]) -> str:
    return "\n".join([*(f"Question: {query}" for query in queries), _json(triplets)])


def _json(triplets: Sequence[tuple[str, str, str]]) -> str:
    return json.dumps({"triplets": triplets}, ensure_ascii=False)
