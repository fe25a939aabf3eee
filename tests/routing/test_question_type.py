import asyncio

import pytest

from triax.records.question_types import TypeClassifier
from triax.records.questions import Question
from triax.routing.question_type import RegexTypes, type_by_rules


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Where was the director of film Vertigo born?", "bridge"),
        ("What is the population of the city where Ada was born?", "bridge"),
        ("Which film came out first, Vertigo or Stalker?", "comparison"),
        ("Are the Danube and the Vistula in the same country?", "comparison"),
        ("Were Ada and Byron both poets?", "comparison"),
        ("Who was born earlier, Ada Lovelace or Charles Babbage?", "comparison"),
        ("Which film has the director who died later, Vertigo or Stalker?", "bridge_comparison"),
        ("Do both directors of films A and B share the same nationality?", "bridge_comparison"),
        ("Who is the paternal grandfather of Mary of Modena?", "inference"),
        ("Who is Anna's mother-in-law?", "inference"),
        ("Who is the father of Philip I, Duke Of Brabant?", "inference"),
        ("Who is Blácaire Mac Gofraid's father?", "inference"),
        ("Who is the mother of the director of film Cleopatra?", "bridge"),
        ("Who was born first out of Adnen Helali and Maria Poulsen?", "comparison"),
        ("Between Gareth Evans and Pierre Chenal, who is older?", "comparison"),
        ("Is the Danube longer than the Vistula?", "comparison"),
        ("Are director of film Freaked and director of film Duel both Danes?", "bridge_comparison"),
        ("Which film whose producer is younger, Reach or Butterfly?", "bridge_comparison"),
        # Titles tell nothing.
        ("Which film came out first, My Wife'S Lodger or The Director?", "comparison"),
        ("Where was the director of film Charley'S Aunt born?", "bridge"),
        ("", "bridge"),
    ],
)
def test_rules(text, kind):
    assert type_by_rules(text) == kind


def test_it_is_a_classifier():
    assert isinstance(RegexTypes(), TypeClassifier)
    [found] = asyncio.run(RegexTypes().classify([Question("q", "Who is X's uncle?")]))
    assert (found.kind, found.probability, found.usage.calls) == ("inference", None, 0)
