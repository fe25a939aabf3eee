import re

import pytest

from triax.llm.gbnf import gbnf_of_regex


@pytest.mark.parametrize(
    "pattern, rule",
    [
        ("ab", '"a" "b"'),
        ("a|", '"a" | ""'),
        ("|a", '"" | "a"'),
        ("", '""'),
        ("^(?:yes|no)$", '( "y" "e" "s" | "n" "o" )'),
        (r"(a\)){2,3}", r'( "a" "\x29" ){2,3}'),
        (r"[^\n\]-]+?", r"[^\x0A\x5D\x2D]+"),
        ("[]a]", r"[\x5Da]"),
        ("[a-c_-]", r"[a-c\x5F\x2D]"),
        (r"\d*\s?", r"[0-9]* [\x20\x09-\x0D]?"),
        (r"\W", "[^0-9A-Za-z_]"),
        (r".\.", r'[^\n] "\x2E"'),
        ("é😀", r'"\xE9" "\U0001F600"'),
        (r"\x41\u4e2d", r'"A" "\u4E2D"'),
        ('"\\\\', r'"\x22" "\x5C"'),
        ("a{,2}b{3,}c{4}", '"a"{0,2} "b"{3,} "c"{4}'),
        ("a{x", '"a" "\\x7B" "x"'),
        ("}", r'"\x7D"'),
    ],
)
def test_by_hand(pattern, rule):
    assert gbnf_of_regex(pattern) == f"root ::= {rule}\n"


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?=a)b",
        r"(?!a)b",
        r"(?P<n>a)",
        r"(a)\1",
        r"a\bb",
        "(?i)a",
        "a++",
        "a^b",
        r"[\D]",
        "a$b",
    ],
)
def test_what_gbnf_cannot_say_is_refused(pattern):
    re.compile(pattern)
    with pytest.raises(ValueError, match="GBNF"):
        gbnf_of_regex(pattern)


@pytest.mark.parametrize("pattern", ["(a", "^*a", "*", "a**", "[b-a]"])
def test_what_is_no_regex_is_refused(pattern):
    with pytest.raises(ValueError, match="no regular expression"):
        gbnf_of_regex(pattern)
