import asyncio

import pytest

pytest.importorskip("sklearn")

from triax.records.question_types import TypeClassifier
from triax.records.questions import Question
from triax.routing.fitted_type import TfidfTypes

NAMES = ["ann", "bob", "cid", "dan", "eva"]
FORMS = {
    "bridge": "where was the mother of {} born",
    "comparison": "who is older , {} or ada",
    "inference": "who is the uncle of {}",
}


def questions(names):
    return [
        Question(f"{kind} {name}", text.format(name), kind=kind)
        for name in names
        for kind, text in FORMS.items()
    ]


def test_it_learns_what_words_tell():
    types = TfidfTypes().fit(questions(NAMES[:3]), questions(NAMES[3:4]))
    assert isinstance(types, TypeClassifier)
    asked = questions(NAMES[4:])
    found = asyncio.run(types.classify(asked))
    assert [one.kind for one in found] == [one.kind for one in asked]
    assert all(1 / 3 < one.probability <= 1 for one in found)
    assert types.chosen == 1.0  # all strengths do equally well here, so the first
    assert asyncio.run(types.classify([])) == []


def test_the_strength_is_that_which_does_best_on_what_is_held_back():
    """So weak a fit that the most frequent type always wins does worse on the others."""
    train = questions(NAMES[:4]) + [
        Question(f"more {n}", FORMS["bridge"].format("ada"), kind="bridge") for n in range(8)
    ]
    types = TfidfTypes(strengths=(1e-6, 10.0)).fit(train, questions(NAMES[4:]))
    assert types.chosen == 10.0


def test_what_it_cannot_learn_from_is_said():
    with pytest.raises(RuntimeError, match="call fit first"):
        asyncio.run(TfidfTypes().classify(questions(NAMES[:1])))
    with pytest.raises(ValueError, match="two types"):
        TfidfTypes().fit(questions(NAMES)[:1], questions(NAMES))
    with pytest.raises(ValueError, match="0 to choose by"):
        TfidfTypes().fit(questions(NAMES), [])
