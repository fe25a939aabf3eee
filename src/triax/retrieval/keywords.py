"""The keywords of a question, on two levels: what it is about, and what it names.

Source: LightRAG (Guo et al., 2024, section 3.2), in our own words; fast-graphrag's generic and
named entities are the same two levels. A language model writes them, or a rule reads them off.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from triax.llm.ask import Unreadable, ask, conversation
from triax.llm.blocking import run_now
from triax.records.completions import Completion, CompletionRequest, Grammar
from triax.records.json_text import read_json
from triax.records.text import clean
from triax.records.usage import Usage
from triax.records.verbs import Completer
from triax.retrieval.graph_entities import capitalised_names
from triax.retrieval.terms import english_stop_words, words

_log = logging.getLogger(__name__)

SYSTEM = (
    "You prepare the search for a question with two lists of keywords. High-level keywords say "
    "what the question is about: its themes, the kinds of things that it speaks of, the relation "
    "that it asks for. Low-level keywords are the single things that it names: people, places, "
    "works, dates, terms. Copy names whole, as the question writes them, and name nothing that it "
    'does not. Answer with JSON: {"high_level_keywords": ["..."], "low_level_keywords": ["..."]}'
)
# Nothing in the examples exists, so that what a model copies from them leads nowhere.
SHOTS = (
    (
        "In which town was the author of Quellmoor born?",
        '{"high_level_keywords": ["author of a book", "place of birth"], '
        '"low_level_keywords": ["Quellmoor"]}',
    ),
    (
        "Is Lake Osel deeper than the Hartmere?",
        '{"high_level_keywords": ["depth of lakes", "comparison"], '
        '"low_level_keywords": ["Lake Osel", "Hartmere"]}',
    ),
    (
        "How do rivers shape the trade of a region?",
        '{"high_level_keywords": ["trade", "rivers as ways of transport"], '
        '"low_level_keywords": ["river", "region"]}',
    ),
)
_LEVELS = ("high_level_keywords", "low_level_keywords")
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in _LEVELS},
    "required": list(_LEVELS),
    "additionalProperties": False,
}
GRAMMAR = Grammar("json_schema", json.dumps(SCHEMA, sort_keys=True))
# Words that ask, forms of "be", "do" and "have", of which Lucene's list has only some, and the "s"
# of a genitive.
_ASKING = frozenset(
    "what which who whom whose when where why how did do does has have had were been can could "
    "many much name both from its his her their he she than s".split()
)


@dataclass(frozen=True, slots=True)
class Keywords:
    """Themes and names, each once and in order, and what it cost to find them."""

    high: tuple[str, ...]
    low: tuple[str, ...]
    usage: Usage = Usage()


@runtime_checkable
class KeywordReader(Protocol):
    """Gives the keywords of many queries, in order."""

    def read(self, queries: Sequence[str]) -> list[Keywords]: ...


@dataclass(frozen=True, slots=True)
class RuleKeywords:
    """Needs no language model: capitalised names, and the other words that say something.

    A query without a capital is itself its name, one without any other word its theme.

    Args:
        theme: "words" are the words outside of names; "question" is the whole query, names and
            all, since words alone say too little about a question on one thing.
    """

    theme: str = "words"

    def __post_init__(self) -> None:
        if self.theme not in ("words", "question"):
            raise ValueError(f"theme is {self.theme!r}, expected 'words' or 'question'")

    def read(self, queries: Sequence[str]) -> list[Keywords]:
        """The keywords of each query; a blank one has none."""
        return [self._read(query) for query in queries]

    def _read(self, query: str) -> Keywords:
        names = capitalised_names(query)
        # Without a capital the whole text is the name, and all of its words are left.
        named = set() if names == (query,) else {word for name in names for word in words(name)}
        said = () if self.theme == "question" else words(query, english_stop_words() | _ASKING)
        high = tuple(dict.fromkeys(word for word in said if word not in named))
        return Keywords(high or ((query,) if query.strip() else ()), names)


class PromptedKeywords:
    """Asks a language model, one call a query.

    Where the call fails, or the answer cannot be read twice, the rule stands in. `num_failed` and
    `num_unreadable` count these queries.
    """

    def __init__(self, completer: Completer, max_tokens: int = 256) -> None:
        """Takes the model, and the tokens of its longest answer."""
        self.num_failed = 0
        self.num_unreadable = 0
        self._completer = completer
        self._max_tokens = max_tokens

    def read(self, queries: Sequence[str]) -> list[Keywords]:
        """The keywords of each query; blocks until all answers are there. Blank ones have none."""
        asked = [number for number, query in enumerate(queries) if query.strip()]
        requests = [self._request(queries[number]) for number in asked]
        replies = run_now(ask(self._completer, requests, lambda _, one: read_keywords(one)))
        found = [Keywords((), ()) for _ in queries]
        faults = []
        for number, reply in zip(asked, replies, strict=True):
            said = reply.value
            if said is None:
                self.num_failed += reply.is_failed
                self.num_unreadable += not reply.is_failed
                faults.append(reply.error)
                (said,) = RuleKeywords().read([queries[number]])
            found[number] = Keywords(said.high, said.low, reply.usage)
        if faults:
            _log.warning(
                "%s: %d of %d queries have keywords by rule, for example because of %s",
                self._completer.model,
                len(faults),
                len(asked),
                faults[0],
            )
        return found

    def _request(self, query: str) -> CompletionRequest:
        return CompletionRequest(
            conversation(SYSTEM, SHOTS, query),
            self._max_tokens,
            grammar=GRAMMAR,
            stage="keywords",
        )


def read_keywords(completion: Completion) -> Keywords:
    """The keywords of the last object in an answer that has some.

    A level may be missing, or one text with commas instead of a list. An answer that was cut is
    read as far as it is whole.

    Raises:
        Unreadable: no JSON object with a keyword.
    """
    found = [value for _, value in read_json(completion.text or "") if isinstance(value, dict)]
    for value in reversed(found):
        high, low = (_texts(value.get(name)) for name in _LEVELS)
        if high or low:
            return Keywords(high, low)
    raise Unreadable(
        f"{len(found)} JSON objects, none with a keyword; expected "
        '{"high_level_keywords": ["..."], "low_level_keywords": ["..."]}'
    )


def _texts(value: Any) -> tuple[str, ...]:
    said = value.split(",") if isinstance(value, str) else value
    if not isinstance(said, list):
        return ()
    texts = (" ".join(clean(one).split()) for one in said if isinstance(one, str))
    return tuple(dict.fromkeys(filter(None, texts)))
