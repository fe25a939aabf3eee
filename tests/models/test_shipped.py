"""The adapters that ship fit their base and do what they are for, on facts anyone can check."""

import pytest

from triax.models.adapters import SHIPPED, fingerprint
from triax.models.trained_reader import TrainedReader
from triax.models.trained_router import TrainedRouteReader
from triax.models.trained_tagger import TrainedTagger
from triax.models.trained_writer import TrainedWriter
from triax.records.readings import ReadRequest

VERTIGO = (
    "Vertigo (film)",
    (
        "Vertigo is a 1958 American psychological thriller film directed by Alfred Hitchcock. "
        "The score was composed by Bernard Herrmann."
    ),
)
OSLO = "Oslo. Oslo is the capital and most populous city of Norway."


def test_they_are_within_25_megabytes_and_have_cards():
    folders = sorted(path for path in SHIPPED.iterdir() if path.is_dir())
    names = ["decomposer", "extractor", "question_type", "router", "solver"]
    assert [path.name for path in folders] == names
    assert sum(file.stat().st_size for path in folders for file in path.iterdir()) < 25e6
    assert all("## Training data" in (path / "README.md").read_text("utf-8") for path in folders)
    assert len({fingerprint(path.name) for path in folders}) == 5


@pytest.mark.weights
def test_the_decomposer_writes_a_chain_and_a_comparison():
    chain, compared = TrainedWriter().write(
        [
            "Where was the director of film Thomas Jefferson (Film) born?",
            "Which film has the director who was born earlier, Vertigo or Stalker?",
        ]
    )
    assert [str(one) for one in chain.triplets] == [
        "Thomas Jefferson (Film) | director | ?1",
        "?1 | place of birth | ?2",
    ]
    assert compared.operator == "min"
    assert [str(one) for one in compared.triplets] == [
        "Vertigo | director | ?1",
        "?1 | date of birth | ?2",
        "Stalker | director | ?3",
        "?3 | date of birth | ?4",
    ]


@pytest.mark.weights
def test_the_solver_fills_a_slot_or_says_that_it_is_not_here():
    title, text = VERTIGO
    passages = (OSLO, f"{title}. {text}")
    director, composer, absent = TrainedReader().read(
        [
            ReadRequest("Vertigo | director | ?", passages),
            ReadRequest("Vertigo | composer | ?", passages),
            ReadRequest("Vertigo | director | ?", passages[:1]),
        ]
    )
    assert (director.text, director.passage) == ("Alfred Hitchcock", 1)
    assert composer.text == "Bernard Herrmann"
    assert min(director.p_here, composer.p_here) > 0.5
    assert absent is None or absent.p_here < 0.5


@pytest.mark.weights
def test_the_extractor_names_the_director():
    (found,) = TrainedTagger().read([VERTIGO])
    said = {(one.subject, one.object) for one in found if "direct" in one.predicate}
    assert any("Vertigo" in subject and obj == "Alfred Hitchcock" for subject, obj in said)


@pytest.mark.weights
def test_the_router_sends_a_chain_to_the_graph_and_a_comparison_of_named_things_not():
    reader = TrainedRouteReader("router")
    chain, compared = reader.read(
        [
            "Where did the composer of film The Merry Monahans die?",
            "Were Scott Derrickson and Ed Wood of the same nationality?",
        ]
    ).tolist()
    assert chain[1] - chain[0] > reader.config["threshold"] > compared[1] - compared[0]
