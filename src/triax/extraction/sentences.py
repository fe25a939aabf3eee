"""Triplets without a language model: every sentence of a chunk, said of the chunk's title.

This is the floor that a model has to beat, and an index for corpora that no model has read. It
makes no claim to understand: what counts is that the proposition holds the title and the whole
sentence and reads as one.
"""

import re
from collections.abc import Iterator, Sequence

from triax.records.documents import Chunk
from triax.records.text import clean
from triax.records.triplets import Extraction, Triplet

_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[^\Wa-z_])|[。！？]+[」』”）]*|\s*\n\s*")
_LAST_WORD = re.compile(r"\S*\Z")
_INITIALS = re.compile(r"[(\"'“]*(?:[^\W\d_]\.)+")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st mt ft gen col lt sgt capt cmdr maj adm rev hon pres gov sen rep messrs "
    "no nos vol op pp fig ed eds cf vs v e.g i.e approx c ca est b d fl jan feb mar apr jun jul "
    "aug sep sept oct nov dec".split()
)
# These may end a sentence as well as stand in it.
_OFTEN_LAST = frozenset("jr sr inc ltd co corp bros etc al a.m p.m b.c a.d ph.d".split())
_STARTERS = frozenset(
    "the a an in on at he she it they his her its their this these that there when while after "
    "before since during as for from by with however although both each some many most".split()
)
_PRONOUNS = frozenset("he she it they".split())
_POSSESSIVES = frozenset("his her its their".split())
# "The film was ..." in a text about a film speaks of the title.
_KINDS = frozenset(
    "film movie band group album song single series show episode book novel story play magazine "
    "journal newspaper company team club city town village county district region state country "
    "island river lake mountain school college university church building station airport museum "
    "game party organization organisation species genus family".split()
)
_VERBS = frozenset(
    "is are was were be has have had will would can could may might must shall should do does did "
    "became become becomes began begins began made makes won wins led leads ran runs wrote writes "
    "sang sings took takes held holds came comes went goes left leaves lies lay stands stood sits "
    "saw sees got gets gave gives grew grows found finds built builds sold sells met meets fell "
    "contains includes features stars consists refers means forms covers serves plays flows "
    "belongs uses produces provides offers remains appears lives works".split()
)
_PARTICIPLES = frozenset(
    "born made known written won held built set found sold sung led run given taken shown been "
    "also not still first now part located".split()
)
_PREPOSITIONS = frozenset("by in of at on as from for to with into near between".split())


class SentenceExtractor:
    """Makes each sentence of a chunk a triplet about the chunk's title.

    A sentence that begins with the title, with a pronoun, or with a phrase such as "the film" and
    a verb, is split behind its first verb: ("Inception", "was directed by", "Christopher Nolan").
    "His father was X" becomes ("<title>'s father", "was", "X"). Any other sentence is
    (title, ":", sentence). Without a title the words before the first verb are the subject, and
    sentences of fewer than three words are left out.

    Pronouns are taken to mean the title, which is wrong now and then; verbs are words of a short
    English list or end in "ed". Texts of other languages get the ":" form.
    """

    name = "sentences"

    def __init__(self, *, max_words: int = 80) -> None:
        """A sentence of more than `max_words` words is cut into pieces, at commas if it can."""
        if max_words < 8:
            raise ValueError(f"max_words is {max_words}, expected at least 8")
        self.max_words = max_words

    async def extract(self, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk; `empty` where a text holds no word."""
        return [self.read(chunk) for chunk in chunks]

    def read(self, chunk: Chunk) -> Extraction:
        """The triplets of one chunk, in the order of its sentences, without repeats."""
        title = " ".join(clean(chunk.title).split())
        found: dict[Triplet, None] = {}
        for sentence in split_sentences(chunk.text, max_words=self.max_words):
            # A heading that repeats the title says nothing; "#" marks it in Markdown.
            if sentence.lstrip("# ").casefold() == title.casefold():
                continue
            triplet = _about(title, sentence) if title else _alone(sentence)
            if triplet:
                found[triplet] = None
        entities = (title,) if title and found else ()
        if not found:
            return Extraction(chunk.id, (), status="empty", reason="the text holds no sentence")
        return Extraction(chunk.id, tuple(found), entities)


def split_sentences(text: str, *, max_words: int = 80) -> Iterator[str]:
    """Yields the sentences of a text, each on one line, without a full stop at its end.

    A sentence ends at `.`, `!` or `?` before white space and a word that does not begin with a
    small letter, at `。`, `！`, `？`, and at the end of a line. A full stop after an initial
    ("J."), after letters ("U.S.") or after an abbreviation ("Dr.", "No.") ends none, unless it may
    ("U.S.", "Inc.") and a word follows that often begins one ("The", "He").
    """
    text = clean(text)
    start = 0
    for match in _END.finditer(text):
        if match[0][0] == "." and not _ends(text, match):
            continue
        yield from _pieces(text[start : match.end()], max_words)
        start = match.end()
    yield from _pieces(text[start:], max_words)


def _ends(text: str, match: re.Match[str]) -> bool:
    before = _LAST_WORD.search(text, max(0, match.start() - 20), match.start())
    word = (before[0] if before else "").lstrip("(\"'“‘[")
    follower = re.match(r"\W*(\w+)", text[match.end() : match.end() + 30])
    is_starter = bool(follower) and follower[1].casefold() in _STARTERS
    if _INITIALS.fullmatch(f"{word}."):
        return is_starter and len(follower[1]) > 1
    if word.casefold() in _OFTEN_LAST:
        return is_starter
    return word.casefold() not in _ABBREVIATIONS


def _pieces(sentence: str, max_words: int) -> Iterator[str]:
    """The sentence on one line; a long one in pieces that end at a comma in their second half."""
    words = sentence.split()
    while words:
        size = len(words)
        if size > max_words:
            ends = (i for i in range(max_words, max_words // 2, -1) if words[i - 1][-1] in ",;:)")
            size = next(ends, max_words)
        piece, words = " ".join(words[:size]), words[size:]
        if piece.endswith(".") and not piece.endswith(".."):
            piece = piece[:-1].rstrip()
        if any(character.isalnum() for character in piece):
            yield piece


def _about(title: str, sentence: str) -> Triplet:
    rest = _after_title(title, sentence)
    if rest is not None:
        is_possessive = rest[:2] in ("'s", "’s") or rest[:1] in ("'", "’")
        words = rest.split()[is_possessive:]
        prefix = [f"{title}{rest.split()[0]}" if is_possessive else title]
    else:
        words = sentence.split()
        first = words[0].casefold()
        is_possessive = first in _POSSESSIVES
        is_kind = first == "the" and words[1:2] and words[1].casefold() in _KINDS
        if not (
            is_possessive or first in _PRONOUNS or (is_kind and _is_verb(" ".join(words[2:3])))
        ):
            return Triplet(title, ":", sentence)
        words = words[2 if is_kind else 1 :]
        prefix = [f"{title}'s" if is_possessive else title]
    verb = _first_verb(words)
    if verb is None or (is_possessive and verb == 0):
        verb = 0 if not is_possessive and len(words) > 1 else None
    if verb is None:
        return Triplet(title, ":", sentence)
    start = verb if is_possessive else 0
    end = _predicate_end(words, verb)
    if end <= start or end >= len(words):
        return Triplet(title, ":", sentence)
    subject = " ".join(prefix + words[:start])
    return Triplet(subject, " ".join(words[start:end]), " ".join(words[end:]))


def _after_title(title: str, sentence: str) -> str | None:
    """What follows the title where a sentence begins with it; "Inception" is "Inception (film)"."""
    base = re.sub(r"\s*\([^()]*\)\Z", "", title)
    if sentence[:4].casefold() == "the " and title[:4].casefold() != "the ":
        sentence = sentence[4:]
    for name in dict.fromkeys((title, base)):
        rest = sentence[len(name) :]
        if name and sentence[: len(name)].casefold() == name.casefold() and not rest[:1].isalnum():
            return rest.strip() if rest.strip(" .!?") else None
    return None


def _alone(sentence: str) -> Triplet | None:
    words = sentence.split()
    if len(words) < 3:
        return None
    verb = _first_verb(words[1:])
    start = verb + 1 if verb is not None and verb + 2 < len(words) else 1
    end = min(_predicate_end(words, start), len(words) - 1)
    return Triplet(" ".join(words[:start]), " ".join(words[start:end]), " ".join(words[end:]))


def _is_verb(word: str) -> bool:
    return word in _VERBS or (len(word) > 4 and word.endswith("ed") and word.islower())


def _first_verb(words: Sequence[str]) -> int | None:
    """The first verb outside parentheses, among the first 30 words."""
    depth = 0
    for position, word in enumerate(words[:30]):
        depth += word.count("(") - word.count(")")
        if depth <= 0 and _is_verb(word):
            return position
    return None


def _predicate_end(words: Sequence[str], verb: int) -> int:
    """Behind the verb, its participles and one preposition, with a word left for the object."""
    end = verb + 1
    while end < len(words) - 1 and (words[end] in _PARTICIPLES or _is_verb(words[end])):
        end += 1
    return end + (end < len(words) - 1 and words[end] in _PREPOSITIONS)
