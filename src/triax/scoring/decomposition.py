"""How near written query triplets come to the gold ones: equal, equal arguments, same structure.

All three are up to the order of the triplets and the names of the placeholders. *Equal* asks for
the same subjects and objects (letter by letter, but for case and blanks at the ends) and for
predicates with the same words, whatever their order, their case and their small words (of, by,
in, the, ...). *Equal arguments* leaves the predicates out. *Same structure* leaves all text out:
as many triplets, linked by the same placeholders.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

from triax.records.query_triplets import Placeholder, QueryTriplet, Term

_SMALL = frozenset(
    "a an the of in on at to for from by with is was are were be did does do".split()
)
_REFERENCE = re.compile(r"#(\d)")
_LIMIT = 7  # placeholders; 7! orders are tried

Links = frozenset[int]


def is_equal(written: Sequence[QueryTriplet], gold: Sequence[QueryTriplet]) -> bool:
    """The same triplets up to order, placeholders' names and the wording of predicates.

    >>> one = [QueryTriplet.parse("Vertigo", "director", "?1")]
    >>> is_equal([QueryTriplet.parse("vertigo", "the director of", "?x")], one)
    True
    """
    return _is_same(
        [_keyed(one, with_predicate=True) for one in written],
        [_keyed(one, with_predicate=True) for one in gold],
    )


def has_equal_arguments(written: Sequence[QueryTriplet], gold: Sequence[QueryTriplet]) -> bool:
    """The same subjects and objects up to order and placeholders' names."""
    return _is_same(
        [_keyed(one, with_predicate=False) for one in written],
        [_keyed(one, with_predicate=False) for one in gold],
    )


def has_same_structure(written: Sequence[QueryTriplet], links: Sequence[Links]) -> bool:
    """As many triplets as `links` has sets, and a renaming of placeholders that makes those of
    the triplets these sets.

    >>> chain = [QueryTriplet.parse("A", "b", "?x"), QueryTriplet.parse("?x", "c", "?y")]
    >>> has_same_structure(chain, [frozenset({1}), frozenset({1, 2})])
    True
    """
    ours = [("", tuple(sorted({found.name for found in one.placeholders}))) for one in written]
    theirs = [("", tuple(sorted(str(n) for n in one))) for one in links]
    return _is_same(ours, theirs, ordered=False)


def step_links(steps: Sequence[str]) -> list[Links]:
    """The placeholders of each sub-question: its own answer's and those it refers to by #n.

    >>> [sorted(found) for found in step_links(["Vertigo >> director", "where was #1 born"])]
    [[1], [1, 2]]
    """
    return [
        frozenset([number, *(int(found) for found in _REFERENCE.findall(step))])
        for number, step in enumerate(steps, 1)
    ]


def decomposition_scores(
    written: Sequence[Sequence[QueryTriplet]], gold: Sequence[Sequence[QueryTriplet]]
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Means and figures of each question, against gold query triplets.

    Raises:
        ValueError: there are not as many of both, or none.
    """
    _check(written, gold)
    each = [
        {
            "equal": float(is_equal(ours, theirs)),
            "equal_arguments": float(has_equal_arguments(ours, theirs)),
            "parsed": float(bool(ours)),
        }
        for ours, theirs in zip(written, gold)
    ]
    return _means(each), each


def structure_scores(
    written: Sequence[Sequence[QueryTriplet]], links: Sequence[Sequence[Links]]
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Means and figures of each question, against the links of gold sub-questions.

    Raises:
        ValueError: there are not as many of both, or none.
    """
    _check(written, links)
    each = [
        {
            "structure": float(has_same_structure(ours, theirs)),
            "num_triplets": float(len(ours) == len(theirs)),
            "parsed": float(bool(ours)),
        }
        for ours, theirs in zip(written, links)
    ]
    return _means(each), each


def _check(written: Sequence[Any], gold: Sequence[Any]) -> None:
    if len(written) != len(gold) or not gold:
        raise ValueError(
            f"{len(written)} decompositions for {len(gold)} gold ones; give one for each, and "
            "at least one"
        )


def _means(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}


Keyed = tuple[Hashable, tuple[str, ...]]


def _keyed(triplet: QueryTriplet, with_predicate: bool) -> Keyed:
    """What must be equal as it is, and the placeholders, which must be equal up to renaming."""
    subject, predicate, object_ = triplet.terms
    words = frozenset(re.findall(r"\w+", predicate.known.casefold())) - _SMALL
    names = [found.name for term in (subject, object_) for found in term.placeholders]
    if with_predicate:
        names += [found.name for found in predicate.placeholders]
    return (_pattern(subject), _pattern(object_), words if with_predicate else ""), tuple(names)


def _pattern(term: Term) -> tuple[str, ...]:
    return tuple(
        "?" if isinstance(part, Placeholder) else " ".join(part.casefold().split())
        for part in term.parts
    )


def _is_same(ours: Sequence[Keyed], theirs: Sequence[Keyed], ordered: bool = True) -> bool:
    """Whether some renaming of our placeholders makes both the same bag of triplets."""
    if Counter(key for key, _ in ours) != Counter(key for key, _ in theirs):
        return False
    names, others = _names(ours), _names(theirs)
    if len(names) != len(others) or len(names) > _LIMIT:
        return False
    goal = Counter(_fixed(theirs, dict(zip(others, others)), ordered))
    return any(
        Counter(_fixed(ours, dict(zip(names, renamed)), ordered)) == goal
        for renamed in permutations(others)
    )


def _names(triplets: Iterable[Keyed]) -> list[str]:
    return sorted({name for _, names in triplets for name in names})


def _fixed(
    triplets: Iterable[Keyed], renaming: Mapping[str, str], ordered: bool
) -> list[tuple[Hashable, Hashable]]:
    found: list[tuple[Hashable, Hashable]] = []
    for key, names in triplets:
        renamed = [renaming[name] for name in names]
        found.append((key, tuple(renamed) if ordered else frozenset(renamed)))
    return found
