"""Regular expressions in llama.cpp's grammar notation, GBNF."""

import re

# One element of a regular expression. What is not matched here has no counterpart in GBNF.
_TOKEN = re.compile(
    r"(?P<group>\((?:\?:)?(?!\?))"
    r"|(?P<bar>[|)])"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<count>[*+?]|\{(?:\d+|\d*,\d*)\})(?P<mode>[?+]?)"
    r"|(?P<escape>\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^\dbBAZz])"
    r"|(?P<dot>\.)"
    r"|(?P<anchor>[\^$]|\\[AZ])"
    r"|(?P<char>[^\\()\[\]{}|*+?.^$]|[\]{}])",
    re.DOTALL,
)
_MEMBER = re.compile(r"\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\x20\x09-\x0D"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


def gbnf_of_regex(pattern: str) -> str:
    r"""A grammar whose root is the language that `re.fullmatch(pattern, text)` accepts.

    Classes such as `\w` are ASCII. `.` is any character but the line feed. Lazy and greedy counts
    are the same language.

    >>> gbnf_of_regex("ab|[0-9]+")
    'root ::= "a" "b" | [0-9]+\n'

    Raises:
        ValueError: the pattern is no regular expression, or has look-around, back references,
            named groups, flags, possessive counts or anchors inside, which GBNF lacks.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    out: list[str] = []
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise ValueError(f"{pattern!r} has {pattern[position:][:10]!r}, which GBNF cannot say")
        if match["mode"] == "+":
            raise ValueError(f"{pattern!r} has the possessive {match[0]!r}, which GBNF cannot say")
        at_edge = position == 0 or match.end() == len(pattern)
        if match["anchor"] and not at_edge:
            raise ValueError(f"{pattern!r} has an anchor inside, which GBNF cannot say")
        if not match["anchor"]:
            _append(out, match)
        position = match.end()
    return f"root ::= {_close_branch(out)}\n"


def _append(out: list[str], match: re.Match[str]) -> None:
    if match["group"]:
        out.append("(")
    elif match["bar"]:
        _close_branch(out)
        out.append(match["bar"])
    elif match["count"]:
        out[-1] += match["count"].replace("{,", "{0,")
    elif match["set"]:
        out.append(_set(match["set"]))
    elif match["escape"]:
        out.append(_escape(match["escape"]))
    else:
        out.append(r"[^\n]" if match["dot"] else f'"{_literal(match[0])}"')


def _close_branch(out: list[str]) -> str:
    if not out or out[-1] in ("(", "|"):
        out.append('""')  # an empty branch needs a word of its own
    return " ".join(out)


def _escape(text: str) -> str:
    kind = text[1]
    if kind.lower() in _CLASSES:
        return f"[{'^' if kind.isupper() else ''}{_CLASSES[kind.lower()]}]"
    return f'"{_literal(_char(text))}"'


def _set(text: str) -> str:
    is_negated = text.startswith("[^")
    members = _MEMBER.findall(text[2 if is_negated else 1 : -1])
    out = []
    for place, member in enumerate(members):
        if member.startswith("\\") and member[1].lower() in _CLASSES:
            if member[1].isupper():
                raise ValueError(f"{text} has {member} inside a set, which GBNF cannot say")
            out.append(_CLASSES[member[1]])
        elif member == "-" and 0 < place < len(members) - 1:
            out.append("-")
        else:
            out.append(_literal(_char(member)))
    return f"[{'^' if is_negated else ''}{''.join(out)}]"


def _char(text: str) -> str:
    if len(text) > 2:
        return chr(int(text[2:], 16))
    return _CONTROLS.get(text[1], text[1]) if text.startswith("\\") else text


def _literal(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    width, prefix = (2, "x") if code < 0x100 else (4, "u") if code < 0x10000 else (8, "U")
    return f"\\{prefix}{code:0{width}X}"
