import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.records.text import normalise
from triax.retrieval.named_phrases import NamedPhrases, content_words

PHRASES = sorted(
    [
        "uk",
        "prince henry the navigator",
        "university of london",
        "london bridge",
        "the who",
        "what",
        "henry viii",
        "b",
        "київ",
        "2004 olympics",
        "same part",
    ]
)


def named(*texts, min_letters=5):
    found = NamedPhrases(PHRASES, min_letters).find([texts])[:, 0]
    return {phrase for phrase, is_named in zip(PHRASES, found) if is_named}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # In so many words: two letters suffice, a part of a word does not.
        ("Who ruled the UK?", {"uk"}),
        ("Who is Ukrainian or from Luk?", set()),
        ("Was plan B tried?", {"b"}),
        # Stop words alone name nothing, and neither do words of questions.
        ("What did the Who do in the same part of it?", set()),
        # One word of five letters, in a longer name.
        ("Which navigator came first?", {"prince henry the navigator"}),
        ("Where is London?", {"university of london", "london bridge"}),
        # Two content words in any order; "viii" is too short to do it alone.
        ("Was VIII the number of king Henry?", {"henry viii", "prince henry the navigator"}),
        ("In 2004, where were the Olympics?", {"2004 olympics"}),
        ("Де стоїть Київ?", {"київ"}),
        ("", set()),
    ],
)
def test_what_a_question_names(question, expected):
    assert named(question) == expected


def test_a_longer_least_word_leaves_the_other_rules():
    assert named("Which navigator came first?", min_letters=10) == set()
    assert named("Was Henry VIII in London?", min_letters=10) == {"henry viii"}


def test_a_group_is_read_together_and_groups_apart():
    assert named("What is of 2004?", "Olympics") == {"2004 olympics"}
    found = NamedPhrases(PHRASES).find([["UK"], [], ["Who?", "Київ"]])
    assert found.sum(axis=0).tolist() == [1, 0, 1]


def by_definition(phrase, question, min_letters):
    """The three rules in so many words, one phrase and one question at a time."""
    own, asked = content_words(phrase), content_words(question)
    padded = " ".join(normalise(question).split())
    runs = f" {padded} ".find(f" {phrase} ") >= 0 and bool(phrase)
    return (
        (runs and any(len(word) > 2 for word in own))
        or (len(own) >= 2 and own <= asked)
        or any(len(word) >= min_letters for word in own & asked)
    )


texts = st.lists(
    st.sampled_from(["henry", "london", "the", "of", "ada", "bob", "navigator", "who"]), max_size=5
).map(" ".join)


@given(st.lists(texts, max_size=6, unique=True), st.lists(texts, max_size=3))
def test_all_at_once_is_one_by_one(phrases, questions):
    found = NamedPhrases(phrases).find([[question] for question in questions])
    assert found.shape == (len(phrases), len(questions))
    for row, phrase in enumerate(phrases):
        for column, question in enumerate(questions):
            assert found[row, column] == by_definition(phrase, question, 5), (phrase, question)
