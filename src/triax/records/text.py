"""Text at the boundary: what may enter a record, and when two names are the same (R7)."""

import re
import unicodedata

# Cc without tab and line feed; carriage returns become line feeds before this is applied.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks that no reader sees and that copying adds or loses. The joiners U+200C and U+200D are not
# among them: they tell words of Persian and of Indic scripts apart.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201f\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)


def clean(text: str) -> str:
    """Text that every file, tokenizer and JSON writer takes, in Unicode's form NFC.

    Halves of a surrogate pair are joined, lone ones become U+FFFD; line ends become line feeds;
    control characters other than line feed and tab go. `clean(clean(x)) == clean(x)`.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _CONTROLS.sub("", text))


def normalise(text: str) -> str:
    """The form in which names are compared: equal forms mean the same name.

    NFKC with case folded, white space collapsed, typographic quotes and dashes made plain. Every
    letter, digit and symbol is kept, so the result is "" only for a text that has none of them,
    and "C++", "C#" and "C" stay three names.
    """
    text = _INVISIBLE.sub("", clean(text))
    while True:  # folding can undo NFKC and NFKC folding; two turns suffice for all of Unicode
        folded = unicodedata.normalize("NFKC", text.translate(_TYPOGRAPHY)).casefold()
        if folded == text:
            return " ".join(text.split())
        text = folded
