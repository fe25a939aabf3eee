"""JSON as models write it: in prose, in fences, cut off, with slips; read without `eval` (R1)."""

import math
import re
from collections.abc import Iterator
from typing import Any

# A parenthesis opens a Python tuple only where a whole quoted text and a comma follow it, since
# prose is full of parentheses; a quoted text before a pipe or semicolon is a field of a line.
_START = re.compile(r"""[\[{](?!\s*"[^"\n]*"\s*[|;\t])|\((?=\s*(?:"[^"\n]*"|'[^'\n]*')\s*,)""")
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d"}
# A quote ends a text only before a comma, colon, bracket or the end. In sound JSON every bare quote
# does; in `"the song "Hello" is"` the inner two do not.
_ENDS = {
    quote: re.compile(rf"\\.|{end}(?=\s*(?:[,:\]}})]|\Z))", re.DOTALL)
    for quote, end in _QUOTES.items()
}
_SKIP = re.compile(r"[\s,]+")
_BARE = re.compile(r'[^\s,:\[\](){}"\u201c]+')
_NUMBER = re.compile(r"-?\d{1,17}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?")
_LITERALS = {"null": None, "none": None, "nan": None, "true": True, "false": False}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_MAX_DEPTH = 64


class UnclosedList(list[Any]):
    """A list that the text ends in. A text that was cut in half is not among its items."""


class UnclosedObject(dict[str, Any]):
    """An object that the text ends in, without the value that was cut in half."""


class _Open:
    """A list or object that is being read."""

    def __init__(self, closer: str) -> None:
        self.closer = closer
        self.items: list[Any] = []
        self.pairs: dict[str, Any] = {}
        self.key: str | None = None
        self.has_colon = False

    def add(self, value: Any) -> None:
        if self.closer != "}":
            self.items.append(value)
        elif self.has_colon:
            self.pairs[self.key or ""] = value
            self.key, self.has_colon = None, False
        elif not isinstance(value, list | dict):
            self.key = str(value)

    def closed(self) -> Any:
        return self.pairs if self.closer == "}" else self.items

    def unclosed(self) -> Any:
        return UnclosedObject(self.pairs) if self.closer == "}" else UnclosedList(self.items)


def read_json(text: str) -> Iterator[tuple[int, Any]]:
    """Yields every outermost list or object in a text, with the position of its first character.

    Never raises and reads each character once or twice. Accepted beyond JSON: Python's spelling
    (single quotes, tuples, None), trailing or missing commas, unescaped quotes and line feeds in
    texts, wrong or missing closing brackets. Missing ones at the end of the text give
    `UnclosedList` and `UnclosedObject`. A word without quotes is read as null; a bracket with such
    a word before any quoted text is prose and is passed over.
    """
    position = 0
    while match := _START.search(text, position):
        start = match.start()
        value, position = _read_container(text, start)
        if value is not None:
            yield start, value


def _read_container(text: str, start: int) -> tuple[Any, int]:
    """The container that opens at `start` (None if it is prose) and where reading goes on."""
    stack = [_Open(_CLOSERS[text[start]])]
    position, has_text = start + 1, False
    while position < len(text):
        character = text[position]
        if skipped := _SKIP.match(text, position):
            position = skipped.end()
        elif character in _CLOSERS:
            position += 1
            if len(stack) < _MAX_DEPTH:
                stack.append(_Open(_CLOSERS[character]))
        elif character in "]})":
            position += 1
            if any(container.closer == character for container in stack):
                value = _close(stack, character)
                if not stack:
                    return value, position
        elif character == ":":
            position += 1
            stack[-1].has_colon = stack[-1].key is not None
        elif character in _QUOTES:
            value, position = _read_text(text, position)
            has_text = True
            if value is not None:
                stack[-1].add(value)
        else:
            bare = _BARE.match(text, position)
            assert bare is not None  # all that _BARE excludes was handled above
            position = bare.end()
            is_known, value = _read_bare(bare[0])
            if not is_known and not has_text:
                return None, position
            stack[-1].add(value)
    value = stack.pop().unclosed()
    while stack:
        stack[-1].add(value)
        value = stack.pop().unclosed()
    return value, position


def _close(stack: list[_Open], closer: str) -> Any:
    """Closes containers up to the first that ends with `closer`, and hands each to its parent."""
    while True:
        container = stack.pop()
        value = container.closed()
        if stack:
            stack[-1].add(value)
        if container.closer == closer:
            return value


def _read_text(text: str, start: int) -> tuple[str | None, int]:
    """The quoted text that opens at `start`, None where it never ends."""
    for match in _ENDS[text[start]].finditer(text, start + 1):
        if not match[0].startswith("\\"):
            return _unescape(text[start + 1 : match.start()]), match.end()
    return None, len(text)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)


def _read_bare(word: str) -> tuple[bool, Any]:
    """A literal or a number; (False, None) for any other word. Long numbers stay texts."""
    if word.casefold() in _LITERALS:
        return True, _LITERALS[word.casefold()]
    if not _NUMBER.fullmatch(word):
        return (True, word) if word.lstrip("-").isdecimal() else (False, None)
    number = float(word) if any(mark in word for mark in ".eE") else int(word)
    return True, (number if math.isfinite(number) else word)
