"""Extraction data sets as passages with triplets that are tied to their characters.

The fields of an open triplet are looked up in `title + "\\n" + text`. Its predicate becomes
`prefix + span of the text + suffix`: GPT-3.5 writes "is known for" where the text has "known for",
so a short list of phrases before and behind a copied span says most predicates (nine in ten in
silver_openie), and a phrase alone says those without a copy, such as "is" or "born on".
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triax.models.tagged_triplets import Phrases

Span = tuple[int, int]
_WORD = re.compile(r"\w+|[^\w\s]")
_SMALL = frozenset(
    "a an the of in on at by for from to with and or as is are was were be been being has have had "
    "not it its that this which who his her their also".split()
)
_ARTICLE = re.compile(r"(?:the|a|an)\s+", re.IGNORECASE)
_BASE_TITLE = re.compile(r"\s*\([^()]*\)\Z")
_REACH = 240  # characters on both sides of an object in which its predicate is looked for


@dataclass(frozen=True, slots=True)
class Predicate:
    """`prefix`, the text at `span` if any, and `suffix`; not all three are empty."""

    prefix: str
    span: Span | None
    suffix: str


@dataclass(frozen=True, slots=True)
class OpenTriplet:
    """A triplet with a free predicate; None where it could not be tied to the text."""

    subject: Span
    object: Span
    predicate: Predicate | None


@dataclass(frozen=True, slots=True)
class Relation:
    """Two mentions and the name of the relation from the first to the second."""

    subject: Span
    object: Span
    name: str


@dataclass(frozen=True, slots=True)
class ExtractionLesson:
    """A passage and what is to be found in it; spans are characters of `title + "\\n" + text`.

    `aliases` are further occurrences of fields, which are neither right nor wrong. `mentions` are
    all entity mentions, if `is_exhaustive`: then a pair without a relation has none. `is_open`
    tells that open triplets are given, `num_given` how many there were before the alignment.
    """

    id: str
    source: str
    title: str
    text: str
    triplets: tuple[OpenTriplet, ...] = ()
    relations: tuple[Relation, ...] = ()
    mentions: tuple[Span, ...] = ()
    aliases: tuple[Span, ...] = ()
    is_open: bool = False
    is_exhaustive: bool = False
    num_given: int = 0

    @property
    def passage(self) -> str:
        """Title, line feed, text."""
        return f"{self.title}\n{self.text}"


@dataclass(slots=True)
class _Passage:
    """The text of a row in the forms in which fields are looked up."""

    title: str
    text: str
    whole: str = field(init=False)
    folded: str = field(init=False)
    words: list[tuple[str, int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.whole = f"{self.title}\n{self.text}"
        self.folded = _lower(self.whole)
        self.words = [(_stem(m[0]), m.start(), m.end()) for m in _WORD.finditer(self.folded)]


def open_lesson(row: Mapping[str, Any]) -> ExtractionLesson:
    """A row of silver_openie, carb or oie2016_wiki.

    Triplets whose subject or object is not in the passage are left out. The subject is tied to the
    title where the title has it, otherwise to its nearest occurrence before the object.
    """
    passage = _Passage(" ".join((row["title"] or "").split()), row["text"])
    triplets: dict[tuple[Span, Span], OpenTriplet] = {}
    aliases: set[Span] = set()
    for given in row["triples"]:
        subjects = _occurrences(passage, given["s"]) or _title_of(passage, given["s"])
        objects = _occurrences(passage, given["o"])
        if not subjects or not objects:
            continue
        found = _tie(passage, subjects, objects, given["p"])
        if found.subject == found.object:
            continue
        aliases |= {*subjects, *objects}
        triplets.setdefault((found.subject, found.object), found)
    used = {span for pair in triplets for span in pair}
    return ExtractionLesson(
        row["id"],
        row["dataset"],
        passage.title,
        passage.text,
        triplets=tuple(triplets.values()),
        aliases=tuple(sorted(aliases - used)),
        is_open=True,
        num_given=len(row["triples"]),
    )


def relation_lesson(row: Mapping[str, Any]) -> ExtractionLesson:
    """A row of redocred (all entities, nearly all relations) or fewrel (one relation).

    An entity is tied to the title if that is one of its names, otherwise to its longest mention;
    its other mentions are aliases.
    """
    passage = _Passage(" ".join((row["title"] or "").split()), row["text"])
    base = _BASE_TITLE.sub("", passage.title)
    names = [entity["mentions"] for entity in row.get("entities") or ()]
    given = [(one["s"], one["p"], one["o"]) for one in row["triples"]]
    names += [[end] for s, _, o in given for end in (s, o) if not any(end in n for n in names)]
    place: dict[str, Span] = {}
    mentions: set[Span] = set()
    aliases: set[Span] = set()
    for mentioned in names:
        # Only as written: "Canadian" is not "canadian", and "is" no name of Iceland.
        spans = [span for one in mentioned for span in _exact(passage.whole, one)]
        if not spans:
            continue
        best = max(spans, key=lambda span: (span[1] - span[0], -span[0]))
        best = (0, len(base)) if (0, len(base)) in spans else best
        place |= dict.fromkeys(mentioned, best)
        mentions.add(best)
        aliases |= set(spans)
    relations = {
        Relation(place[s], place[o], name): None
        for s, name, o in given
        if s in place and o in place and place[s] != place[o]
    }
    return ExtractionLesson(
        row["id"],
        row["dataset"],
        passage.title,
        passage.text,
        relations=tuple(relations),
        mentions=tuple(sorted(mentions)),
        aliases=tuple(sorted(aliases - mentions)),
        is_exhaustive=row["dataset"] == "redocred",
        num_given=len(given),
    )


def popqa_lesson(row: Mapping[str, Any]) -> ExtractionLesson | None:
    """A row of popqa: the relation of its question, said of the title of its first passage.

    None where the answer is not in that passage or the passage is about something else.
    """
    if not row["evidences"] or not row["paragraphs"]:
        return None
    subject, name, _ = row["evidences"][0]
    first = row["paragraphs"][0]
    passage = _Passage(" ".join(first["title"].split()), first["text"])
    base = _BASE_TITLE.sub("", passage.title)
    if not base or base.casefold() != _BASE_TITLE.sub("", subject).casefold():
        return None
    for answer in (row["answer"], *row["answer_aliases"]):
        spans = [s for s in _occurrences(passage, answer) if s[0] > len(passage.title)]
        if spans and len(answer) > 2:
            relation = Relation((0, len(base)), spans[0], name)
            return ExtractionLesson(
                row["id"],
                "popqa",
                passage.title,
                passage.text,
                relations=(relation,),
                mentions=((0, len(base)), spans[0]),
                num_given=1,
            )
    return None


def collect_phrases(
    lessons: Sequence[ExtractionLesson], num_prefixes: int = 192, num_suffixes: int = 96
) -> Phrases:
    """The most frequent prefixes and suffixes, and all names of relations, sorted."""
    predicates = [
        triplet.predicate for one in lessons for triplet in one.triplets if triplet.predicate
    ]
    prefixes = Counter(one.prefix for one in predicates if one.prefix)
    suffixes = Counter(one.suffix for one in predicates if one.suffix)
    names = {relation.name for one in lessons for relation in one.relations}
    return Phrases(
        ("", *_most_common(prefixes, num_prefixes - 1)),
        ("", *_most_common(suffixes, num_suffixes - 1)),
        tuple(sorted(names)),
    )


def keep_known(lesson: ExtractionLesson, phrases: Phrases) -> ExtractionLesson:
    """The lesson with predicates None where the lists cannot say them."""
    prefixes, suffixes = set(phrases.prefixes), set(phrases.suffixes)

    def known(triplet: OpenTriplet) -> OpenTriplet:
        predicate = triplet.predicate
        if predicate is None or (predicate.prefix in prefixes and predicate.suffix in suffixes):
            return triplet
        return replace(triplet, predicate=None)

    return replace(lesson, triplets=tuple(map(known, lesson.triplets)))


def alignment(lessons: Iterable[ExtractionLesson]) -> dict[str, dict[str, float]]:
    """For each source: passages, given triplets, and the shares tied to the text.

    `aligned` is the share of given triplets with both ends found, `with_predicate` the share whose
    predicate is known too (relations always are).
    """
    found: dict[str, Counter[str]] = {}
    for one in lessons:
        counts = found.setdefault(one.source, Counter())
        counts["passages"] += 1
        counts["given"] += one.num_given
        counts["aligned"] += len(one.triplets) + len(one.relations)
        counts["with_predicate"] += len(one.relations)
        counts["with_predicate"] += sum(t.predicate is not None for t in one.triplets)
    return {
        source: {
            "passages": float(counts["passages"]),
            "triplets": float(counts["given"]),
            "aligned": counts["aligned"] / max(1, counts["given"]),
            "with_predicate": counts["with_predicate"] / max(1, counts["given"]),
        }
        for source, counts in found.items()
    }


def _most_common(counts: Counter[str], number: int) -> list[str]:
    """Most frequent first, equal ones by the alphabet, so that the list is always the same."""
    return [text for text, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][
        :number
    ]


def _lower(text: str) -> str:
    """Lower case, but for the few letters that would grow and shift all that follow."""
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _stem(word: str) -> str:
    """The first five letters, which joins inflections well enough for a lookup."""
    return word[:5]


def _exact(whole: str, needle: str) -> list[Span]:
    """Where a text stands as whole words."""
    if not needle.strip():
        return []
    found = re.finditer(rf"(?<!\w){re.escape(needle.strip())}(?!\w)", whole)
    return [match.span() for match in found]


def _occurrences(passage: _Passage, needle: str | None) -> list[Span]:
    """Where a field stands in the passage.

    As it is; without its article, quotes and full stop; or else the longest run of its words, if
    that has most of them.
    """
    bare = " ".join(_lower(needle or "").split())
    trimmed = _ARTICLE.sub("", bare.strip(" .,;:\"'“”`"), count=1)
    for form in dict.fromkeys((bare, trimmed)):
        if found := _exact(passage.folded, form):
            return found
    words = [_stem(match[0]) for match in _WORD.finditer(trimmed)]
    run = _longest_run(words, passage.words)
    if run is None or run[1] < max(2, 0.6 * len(words)):
        return []
    return [run[2]]


def _title_of(passage: _Passage, subject: str) -> list[Span]:
    """The title, for a subject that names it otherwise: half of the words in common."""
    base = _BASE_TITLE.sub("", passage.title)
    own = {match[0] for match in _WORD.finditer(subject.lower())} - _SMALL
    titled = {match[0] for match in _WORD.finditer(base.lower())} - _SMALL
    if not own or not titled or 2 * len(own & titled) < max(len(own), len(titled)):
        return []
    return [(0, len(base))]


def _tie(
    passage: _Passage, subjects: Sequence[Span], objects: Sequence[Span], predicate: str
) -> OpenTriplet:
    """Chooses among occurrences: an object beside its predicate, the subject before it."""
    title_end = len(passage.title)
    in_text = [span for span in objects if span[0] > title_end] or list(objects)
    ends = {span[0] for span in subjects}
    in_text = [span for span in in_text if span[0] not in ends] or in_text
    tied = [(_predicate(passage, predicate, one), one) for one in in_text]
    found, chosen = max(tied, key=lambda pair: (_copied(pair[0]), -pair[1][0]))
    titled = [span for span in subjects if span[1] <= title_end and span != chosen]
    others = [span for span in subjects if span != chosen]
    before = [span for span in others if span[1] <= chosen[0]]
    subject = (titled or before[-1:] or others or list(subjects))[0]
    return OpenTriplet(subject, chosen, found)


def _copied(predicate: Predicate | None) -> int:
    """Characters that were copied."""
    return 0 if predicate is None or predicate.span is None else _length(predicate.span)


def _length(span: Span) -> int:
    return span[1] - span[0]


def _predicate(passage: _Passage, predicate: str, near: Span) -> Predicate | None:
    """The predicate as prefix, copied span and suffix; the copy is the longest run near `near`."""
    matches = list(_WORD.finditer(predicate.lower()))
    if not matches:
        return None
    region = [
        word
        for word in passage.words
        if word[1] > len(passage.title)
        and near[0] - _REACH < word[1] < near[1] + _REACH
        and not (word[1] < near[1] and word[2] > near[0])
    ]
    run = _longest_run([_stem(match[0]) for match in matches], region, near)
    words = [match[0] for match in matches]
    if run is None or all(word in _SMALL for word in words[run[0] : run[0] + run[1]]):
        # Nothing of weight is copied: the phrase is said as a whole.
        return Predicate(" ".join(words), None, "")
    first, count, span = run
    return Predicate(" ".join(words[:first]), span, " ".join(words[first + count :]))


def _longest_run(
    needle: Sequence[str],
    words: Sequence[tuple[str, int, int]],
    near: Span | None = None,
) -> tuple[int, int, Span] | None:
    """(first word of the needle, number of words, characters) of the longest common run.

    Words of weight count before small ones; of equal runs the nearest to `near` wins, or the first.
    """
    best: tuple[tuple[int, int, float], tuple[int, int, Span]] | None = None
    places: dict[str, list[int]] = {}
    for place, (stem, _, _) in enumerate(words):
        places.setdefault(stem, []).append(place)
    for first, stem in enumerate(needle):
        for place in places.get(stem, ()):
            count = 1
            while (
                first + count < len(needle)
                and place + count < len(words)
                and words[place + count][0] == needle[first + count]
            ):
                count += 1
            span = (words[place][1], words[place + count - 1][2])
            gap = 0.0
            if near is not None:
                # A predicate stands before its object more often than behind it.
                gap = near[0] - span[1] if span[1] <= near[0] else 2.0 * (span[0] - near[1]) + 20
            weight = sum(word not in _SMALL for word in needle[first : first + count])
            key = (weight, count, -gap)
            if best is None or key > best[0]:
                best = (key, (first, count, span))
    return None if best is None else best[1]
