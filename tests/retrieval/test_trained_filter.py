import pytest

from triax.records.readings import Reading
from triax.records.triplets import Proposition, Triplet
from triax.retrieval.trained_filter import ReaderTripletFilter
from triax.retrieval.triplet_filter import TripletFilter


class Reads:
    """Finds what it was told to in each passage: the text and the probability."""

    name = "reads"

    def __init__(self, found):
        self.found, self.requests, self.num_calls = found, [], 0

    def read(self, requests, *, allows_verdicts=False):
        self.requests += requests
        self.num_calls += 1
        readings = []
        for one in requests:
            text, p_here = self.found.get((one.query, one.passages[0]), (None, 0.0))
            start = one.passages[0].index(text) if text else 0
            end = start + len(text or "")
            readings.append(Reading(text, 0, start, end, 0.0, 0.0, p_here) if text else None)
        return readings


def props(*facts):
    return [Proposition("|".join(f), Triplet(*f), " ".join(f), ("c",)) for f in facts]


QUESTION = "Where was the director of Stalker born?"
FILM = props(
    ("Stalker", "by", "Tarkovsky"), ("Tarkovsky", "born in", "Yurevets"), ("Stalker", "is", "film")
)
TEXTS = [one.text for one in FILM]
ALL = "Stalker by Tarkovsky. Tarkovsky born in Yurevets. Stalker is film"


def keep(found, groups=([QUESTION],), candidates=(FILM,), **settings):
    reader = Reads(found)
    places = ReaderTripletFilter(reader, **settings).keep(groups, candidates)
    return [list(one.places) for one in places], reader


def test_a_triplet_with_a_probable_answer_is_kept():
    found = {
        (QUESTION, TEXTS[0]): ("Tarkovsky", 0.6),
        (QUESTION, TEXTS[1]): ("Yurevets", 0.2),
        (QUESTION, TEXTS[2]): ("film", 0.19),
    }
    assert isinstance(ReaderTripletFilter(Reads({})), TripletFilter)
    assert keep(found, min_here=0.2)[0] == [[0, 1]]
    assert keep(found, min_here=0.5)[0] == [[0]]
    assert keep(found, min_here=0.7)[0] == [[]]
    assert keep(found, keep_at_most=1)[0] == [[0]]


@pytest.mark.parametrize(
    ("text", "place"), [("Stalker", 0), ("Yurevets", 1), ("film", 2), (". Stalker", 1)]
)
def test_read_together_the_one_that_holds_the_answer_is_kept(text, place):
    """A span that begins with what joins two texts is put down to the first."""
    found = {(QUESTION, ALL): (text, 0.8)}
    assert keep(found)[0] == [[place]]
    (places,), reader = keep(found, reads_together=False)
    assert places == [] and [one.passages for one in reader.requests] == [(t,) for t in TEXTS]


def test_all_groups_are_read_at_once_and_a_query_once():
    found = {("b", TEXTS[2]): ("film", 0.9), ("c", TEXTS[0]): ("Stalker", 0.9)}
    groups, candidates = [["a"], ["b", "a", "b"], ["c"]], [FILM, FILM[2:], FILM[:1]]
    places, reader = keep(found, groups, candidates)
    assert places == [[], [0], [0]] and reader.num_calls == 1
    # One candidate alone is not read together with itself.
    assert len(reader.requests) == 4 + 2 + 1


def test_r09_without_a_candidate_or_a_query_nothing_is_read():
    assert keep({}, [["q"], []], [[], []])[0] == [[], []]
    assert keep({}, [], [])[0] == []
    assert keep({}, [["q"]], [[]])[1].num_calls == 0


def test_r07_letters_of_every_script_count_as_one():
    texts = props(("Київ", "на", "Дніпрі"), ("東京", "首都", "日本"))
    joined = "Київ на Дніпрі. 東京 首都 日本"
    assert keep({("де?", joined): ("日本", 0.9)}, [["де?"]], [texts])[0] == [[1]]
    assert keep({("де?", joined): ("Дніпрі", 0.9)}, [["де?"]], [texts])[0] == [[0]]


@pytest.mark.weights
def test_the_shipped_reader_knows_which_film_is_asked_for():
    from triax.models.trained_reader import shared_reader

    films = props(
        ("Vertigo", "filmed in", "San Francisco"),
        ("Vertigo", "directed by", "Alfred Hitchcock"),
        ("Ikiru", "directed by", "Akira Kurosawa"),
    )
    filtered = ReaderTripletFilter(shared_reader("solver"), reads_together=False)
    (kept,) = filtered.keep([["Who directed Vertigo?"]], [films])
    assert list(kept.places) == [1]
