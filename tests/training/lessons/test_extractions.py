from triax.models.tagged_triplets import Phrases
from triax.training.lessons.extractions import (
    alignment,
    collect_phrases,
    keep_known,
    open_lesson,
    popqa_lesson,
    relation_lesson,
)

TEXT = "Marie Curie (born 7 November 1867) was a physicist. She was known for work on radium."


def lesson(*triplets, title="Marie Curie", text=TEXT):
    return open_lesson(
        {
            "id": "x",
            "dataset": "silver_openie",
            "title": title,
            "text": text,
            "triples": [dict(zip("spo", one)) for one in triplets],
        }
    )


def said(one, triplet):
    """The triplet in words, the predicate in its three parts."""
    cut = [one.passage[slice(*span)] for span in (triplet.subject, triplet.object)]
    predicate = triplet.predicate
    copied = predicate.span and one.passage[slice(*predicate.span)]
    return cut[0], (predicate.prefix, copied, predicate.suffix), cut[1]


def test_fields_become_characters():
    one = lesson(("Marie Curie", "was", "a physicist"))
    [triplet] = one.triplets
    assert triplet.subject == (0, 11)  # the title, though the text has the name too
    assert one.passage[slice(*triplet.object)] == "a physicist"


def test_a_predicate_is_prefix_copy_and_suffix():
    one = lesson(
        ("Marie Curie", "is known for", "work on radium"),
        ("Marie Curie", "was born on", "7 November 1867"),
    )
    assert [said(one, triplet) for triplet in one.triplets] == [
        ("Marie Curie", ("is", "known for", ""), "work on radium"),
        ("Marie Curie", ("was", "born", "on"), "7 November 1867"),
    ]


def test_without_a_word_of_weight_the_phrase_is_said_whole():
    one = lesson(("Marie Curie", "is", "physicist"))
    assert said(one, one.triplets[0]) == ("Marie Curie", ("is", None, ""), "physicist")


def test_loose_matches_and_what_is_not_there():
    one = lesson(
        ("marie curie", "known for", "the work on radium."),  # case, article, full stop
        ("Curie, Marie", "was", "physicist"),  # half of the title's words
        ("Marie Curie", "won", "Nobel Prize"),  # the text does not say it
    )
    found = [said(one, triplet) for triplet in one.triplets]
    assert [(s, o) for s, _, o in found] == [
        ("Marie Curie", "work on radium"),
        ("Marie Curie", "physicist"),
    ]
    assert one.num_given == 3


def test_the_subject_before_the_object_counts_without_a_title():
    text = "Ann met Bob. Later Ann left Carl."
    one = lesson(("Ann", "left", "Carl"), title="", text=text)
    assert one.triplets[0].subject[0] == 1 + text.index("Ann left")
    assert one.aliases == ((1, 4),)  # the other Ann is neither right nor wrong


def test_letters_that_grow_in_lower_case_shift_nothing():
    one = lesson(("İzmir", "is in", "Turkey"), title="İzmir", text="İzmir is in Turkey.")
    assert said(one, one.triplets[0])[::2] == ("İzmir", "Turkey")


REDOCRED = {
    "id": "r",
    "dataset": "redocred",
    "title": "Willi Schneider (racer)",
    "text": 'Wilfried "Willi" Schneider is German. Schneider won in Turin.',
    "triples": [{"s": 'Wilfried "Willi" Schneider', "p": "country of citizenship", "o": "German"}],
    "entities": [
        {"mentions": ['Wilfried "Willi" Schneider', "Schneider"]},
        {"mentions": ["German"]},
        {"mentions": ["Turin"]},
    ],
}


def test_an_entity_is_tied_to_the_title_or_its_longest_mention():
    one = relation_lesson(REDOCRED)
    [relation] = one.relations
    words = [one.passage[slice(*span)] for span in (relation.subject, relation.object)]
    assert words == ['Wilfried "Willi" Schneider', "German"]
    assert one.is_exhaustive and not one.is_open and len(one.mentions) == 3
    assert [one.passage[slice(*span)] for span in one.aliases] == ["Schneider"] * 3
    named = relation_lesson(REDOCRED | {"title": "Schneider (racer)"})
    assert named.relations[0].subject == (0, len("Schneider"))


def test_popqa_says_its_relation_of_the_title():
    row = {
        "id": "p",
        "answer": "politician",
        "answer_aliases": ["pol"],
        "evidences": [["Henry Feilden", "occupation", "politician"]],
        "paragraphs": [
            {"title": "Henry Feilden (MP)", "text": "Henry Feilden was an English politician."}
        ],
    }
    one = popqa_lesson(row)
    [relation] = one.relations
    assert one.passage[slice(*relation.subject)] == "Henry Feilden"
    assert one.passage[slice(*relation.object)] == "politician"
    assert not one.is_exhaustive
    other = row | {"paragraphs": [{"title": "Politician", "text": "A politician is a person."}]}
    assert popqa_lesson(other) is None
    assert popqa_lesson(row | {"answer": "poet", "answer_aliases": []}) is None


def test_lists_hold_the_most_frequent_phrases():
    lessons = [
        lesson(("Marie Curie", "is", "physicist"), ("Marie Curie", "is known for", "radium")),
        lesson(("Marie Curie", "hailed as", "physicist")),
        relation_lesson(REDOCRED),
    ]
    phrases = collect_phrases(lessons, num_prefixes=2, num_suffixes=1)
    assert phrases == Phrases(("", "is"), ("",), ("country of citizenship",))
    known = [keep_known(one, phrases) for one in lessons]
    assert [t.predicate is None for one in known for t in one.triplets] == [False, False, True]
    shares = alignment(known)
    assert shares["silver_openie"] == {
        "passages": 2,
        "triplets": 3,
        "aligned": 1.0,
        "with_predicate": 2 / 3,
    }
