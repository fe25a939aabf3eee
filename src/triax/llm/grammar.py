"""Ready grammars for the project's outputs, and their compilation for one tokenizer.

Fields are bounded in words: a bound in characters would multiply the states of the automaton.
"""

import hashlib
import json
import logging
import os
import re
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triax.records.completions import Grammar
from triax.records.files import atomic_write
from triax.records.text import clean

if TYPE_CHECKING:
    from triax.models.constraint import Matcher, TokenTable

_LOG = logging.getLogger(__name__)
# Longest fields, in words: none of the 17,893 silver triplets of MuSiQue exceeds them.
SUBJECT_WORDS, PREDICATE_WORDS, OBJECT_WORDS = 10, 8, 16
# Where the host matches, nothing else keeps a line from growing until `max_tokens`.
PREDICATE_CHARACTERS = 48
# What the reader of triplets would drop (white space, control characters) is not written.
_OUT = r"\s|\x00-\x1f\x7f-\x9f"
_WORD = rf"[^{_OUT}]+"
_PLAIN_WORD = rf"[^{_OUT}?][^{_OUT}]*"
_PLACEHOLDER = r"\?[a-z][a-z0-9_]{0,15}"
_KEPT_TABLES = 64
_SLOW_S = 1.0
_FORMAT = 1


def triplet_lines(
    max_triplets: int, allow_placeholders: bool = False, allow_none: bool = False
) -> Grammar:
    """One to `max_triplets` lines `subject | predicate | object`.

    Args:
        max_triplets: the most lines.
        allow_placeholders: words may be `?name`, and whole fields `?`; otherwise no word of a
            field begins with a question mark.
        allow_none: the whole output may be `NONE`.
    """
    limits = (SUBJECT_WORDS, PREDICATE_WORDS, OBJECT_WORDS)
    _check_limit(max_triplets)
    line = r" \| ".join(_field(words, allow_placeholders) for words in limits)
    lines = rf"{line}(?:\n{line}){{0,{max_triplets - 1}}}"
    return Grammar("regex", f"NONE|{lines}" if allow_none else lines)


def query_triplet_lines(max_triplets: int) -> Grammar:
    """One to `max_triplets` lines whose fields may be, or hold, `?name` (see `triplet_lines`)."""
    return triplet_lines(max_triplets, allow_placeholders=True)


def span_triplets(text: str, max_triplets: int) -> Grammar:
    """Lines `subject | predicate | object` whose subjects and objects are word spans of a text.

    Runs of white space in the text count as one space. Spans with `|` are left out. The output is
    whole if `max_tokens` allows one line, whose predicate has at most 48 characters.

    Raises:
        ValueError: the text has no word.
    """
    text = " ".join(clean(text).split())
    if not re.search(r"[^\s|]", text):
        raise ValueError("the text has no word that could be a subject; leave such a chunk out")
    spans = json.dumps({"substring_words": text}, ensure_ascii=False)
    _check_limit(max_triplets)
    more = f' ("\\n" LINE){{0,{max_triplets - 1}}}' if max_triplets > 1 else ""
    # The line is one lexeme: llguidance's lexer does not go back from a span that could go on
    # after its space to the separator that begins with one.
    source = f"""start: LINE{more}
LINE: SUBJECT " | " PREDICATE " | " OBJECT
SUBJECT: SPAN & /{_span(SUBJECT_WORDS)}/
OBJECT: SPAN & /{_span(OBJECT_WORDS)}/
PREDICATE: /{_field(PREDICATE_WORDS, False)}/ & /.{{1,{PREDICATE_CHARACTERS}}}/
SPAN: %regex {spans}
"""
    return Grammar("lark", source)


def short_answer(max_words: int = 12) -> Grammar:
    """One line of one to `max_words` words."""
    word = r"[^\s\x00-\x1f\x7f-\x9f]+"
    return Grammar("regex", rf"{word}(?: {word}){{0,{max_words - 1}}}")


def one_of(options: Sequence[str]) -> Grammar:
    """Exactly one of the options.

    Raises:
        ValueError: there is no option, or an empty one.
    """
    if not options or not all(options):
        raise ValueError(f"options are {list(options)}; give at least one, and none empty")
    return Grammar("regex", "|".join(re.escape(option) for option in dict.fromkeys(options)))


def _field(words: int, allow_placeholders: bool) -> str:
    word = f"(?:{_PLACEHOLDER}|{_PLAIN_WORD})" if allow_placeholders else _PLAIN_WORD
    field = f"{word}(?: {word}){{0,{words - 1}}}"
    return rf"(?:\?|{field})" if allow_placeholders else field


def _span(words: int) -> str:
    """A span neither begins nor ends with white space, nor begins with closing punctuation."""
    return rf"[^\s|.,;:!?)\]][^\s|]*( {_WORD}){{0,{words - 1}}}"


def _check_limit(max_triplets: int) -> None:
    if max_triplets < 1:
        raise ValueError(f"max_triplets is {max_triplets}, expected at least 1")


class GrammarCompiler:
    """Compiles grammars for one tokenizer and keeps the tables, slow ones on disk too."""

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        encode: Callable[[str], Sequence[int]],
        eos_ids: Sequence[int],
        width: int,
        folder: Path | None = None,
    ):
        """Takes what a tokenizer knows.

        Args:
            token_bytes: what each token writes; empty for special tokens.
            encode: text to ids, without special tokens.
            eos_ids: tokens that end a text.
            width: number of logits of the model.
            folder: of the tables on disk; default $TRIAX_CACHE/grammars, or
                ~/.cache/triax/grammars.
        """
        self._token_bytes, self._encode = list(token_bytes), encode
        self._eos_ids, self._width = tuple(eos_ids), width
        root = os.environ.get("TRIAX_CACHE") or Path.home() / ".cache" / "triax"
        self._folder = folder or Path(root).expanduser() / "grammars"
        self._tables: OrderedDict[Grammar, TokenTable] = OrderedDict()
        self._vocabulary: Any = None
        digest = hashlib.sha256(f"{_FORMAT} {width} {eos_ids}".encode())
        for text in self._token_bytes:
            digest.update(len(text).to_bytes(4, "little") + text)
        self._fingerprint = digest.hexdigest()

    def table(self, grammar: Grammar) -> "TokenTable":
        """The table of a `regex` or `json_schema` grammar.

        Raises:
            ValueError: the grammar is of another kind or cannot be compiled.
        """
        if grammar in self._tables:
            self._tables.move_to_end(grammar)
            return self._tables[grammar]
        from triax.models.constraint import json_schema_pattern

        if grammar.kind == "lark":
            raise ValueError("a lark grammar has no table; use matcher()")
        is_schema = grammar.kind == "json_schema"
        table = self._build(json_schema_pattern(grammar.source) if is_schema else grammar.source)
        self._tables[grammar] = table
        if len(self._tables) > _KEPT_TABLES:
            self._tables.popitem(last=False)
        return table

    def matcher(self, grammar: Grammar) -> "Matcher":
        """A new matcher at the start of a `lark` grammar.

        Raises:
            ValueError: the grammar is of another kind or cannot be read.
        """
        from triax.models.constraint import Matcher, matcher_vocabulary

        if grammar.kind != "lark":
            raise ValueError(f"a {grammar.kind} grammar has no matcher; use table()")
        if self._vocabulary is None:
            self._vocabulary = matcher_vocabulary(
                self._token_bytes, self._encode, self._eos_ids, self._width
            )
        return Matcher(self._vocabulary, grammar.source)

    def _build(self, pattern: str) -> "TokenTable":
        from triax.models.constraint import compile_regex

        name = hashlib.sha256(f"{self._fingerprint} {pattern}".encode()).hexdigest()
        path = self._folder / f"{name}.npz"
        if path.exists() and (kept := _load(path)):
            return kept
        began = time.perf_counter()
        table = compile_regex(pattern, self._token_bytes, self._width)
        seconds = time.perf_counter() - began
        states, classes = table.next.shape
        _LOG.info("grammar of %d states, %d token classes in %.1f s", states, classes, seconds)
        if seconds > _SLOW_S:
            _save(path, table)
        return table


def _load(path: Path) -> "TokenTable | None":
    import numpy as np

    from triax.models.constraint import TokenTable

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return TokenTable(arrays["next"], arrays["classes"], arrays["distance"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _LOG.warning("%s cannot be read (%s); the grammar is compiled again", path, error)
        return None


def _save(path: Path, table: "TokenTable") -> None:
    import numpy as np

    try:
        with atomic_write(path, "wb") as stream:
            np.savez_compressed(
                stream, next=table.next, classes=table.classes, distance=table.distance
            )
    except OSError as error:
        _LOG.warning("%s cannot be written (%s); the grammar is not kept", path, error)
