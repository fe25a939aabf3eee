import numpy as np
import pytest
from tiny_questions import VOCABULARY, tiny_reader

from triax.models.query_vocabulary import (
    END,
    FIELD,
    MAX_TRIPLETS,
    TRIPLET,
    QueryVocabulary,
    WritingRules,
    join_words,
)

RULES = WritingRules(VOCABULARY.kinds, VOCABULARY.placeholder_numbers, np)
QUESTION = "Who is the mother of the director of Vertigo?"


def numbers(text, source):
    """Outputs from a readable line; `@3` copies place 3 of the question."""
    of = VOCABULARY.number
    return [
        len(VOCABULARY) + int(word[1:]) if word[0] == "@" else of[word] for word in text.split()
    ]


def walk(source, outputs, limit=96):
    """Whether the rules allow each of the outputs in turn."""
    state = RULES.start(1, len(source.pieces))
    word = np.array([[not piece.startswith("##") for piece in source.pieces]])
    copyable = np.array([source.copyable])
    found = []
    for n, output in enumerate(outputs):
        found.append(bool(RULES.allowed(state, word, copyable, limit - n)[0, output]))
        state = RULES.step(state, np.array([output]))
    return found


def test_pieces_know_their_characters():
    [source] = tiny_reader().read([QUESTION])
    assert source.pieces[-4:] == ("vert", "##igo", "?", "[SEP]")
    start, end = source.spans[-4].start, source.spans[-3].end
    assert QUESTION[start:end] == "Vertigo"
    assert source.copyable[0] is False and source.copyable[-1] is False


def test_a_long_question_is_cut_before_its_end():
    [source] = tiny_reader(5).read([QUESTION])
    assert source.pieces == ("[CLS]", "who", "is", "the", "[SEP]")


def test_words_are_grouped_pieces():
    assert tiny_reader().words("Vertigo of Stalker") == [
        ("vert", "##igo"),
        ("of",),
        ("stal", "##ker"),
    ]


def test_reading_outputs_back():
    [source] = tiny_reader().read([QUESTION])
    outputs = numbers("<none> @9 @10 | director | ?1 ; ?1 | date of birth | ?2 <end>", source)
    written = VOCABULARY.read(outputs, source)
    assert written.operator == "none"
    assert [str(one) for one in written.triplets] == [
        "Vertigo | director | ?1",
        "?1 | date of birth | ?2",
    ]


def test_copies_keep_case_and_punctuation():
    """The example of the architecture: a title with a mark, a comma and brackets."""
    [source] = tiny_reader().read(["When was Who's Afraid?, Film (1950) born?"])
    first = source.pieces.index("who")
    span = range(first, source.pieces.index(")") + 1)
    copies = " ".join(f"@{place}" for place in span)
    written = VOCABULARY.read(numbers(f"<none> {copies} | born in | ?1 <end>", source), source)
    [triplet] = written.triplets
    assert triplet.subject.parts == ("Who's Afraid?, Film (1950)",)


def test_a_placeholder_may_stand_within_a_predicate():
    [source] = tiny_reader().read([QUESTION])
    outputs = numbers("<max> @9 @10 | born | ?1 ; ?1 | born in ?1 | ?2 <end>", source)
    written = VOCABULARY.read(outputs, source)
    assert written.operator == "max"
    assert [found.name for found in written.triplets[1].placeholders] == ["1", "1", "2"]


def test_words_are_joined_by_blanks_but_for_punctuation():
    chunks = [("co", False), ("-", False), ("writer", False), ("s", True), (",", False)]
    assert join_words([*chunks, ("of", False), ("(", False), ("a", False), (")", False)]) == (
        "co-writers, of (a)"
    )


@pytest.mark.parametrize(
    "line",
    [
        "<none> @9 @10 | director | ?1 <end>",
        "<max> @9 | born in | ?1 ; ?1 | date of birth | ?2 <end>",
        "<none> ?1 | director | @9 @10 <end>",
        "<none> @9 | born | ?1 ; ?1 | in @3 ?1 | ?2 <end>".replace("?1 | ?2", "| ?2"),
        "<none> @9 | born | ?1 ; @4 | born | ?2 ; ?2 | in ?1 of | ?3 <end>",
    ],
)
def test_good_lines_are_allowed(line):
    [source] = tiny_reader().read([QUESTION])
    assert all(walk(source, numbers(line, source)))


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ("@9 | born | ?1 <end>", 0),  # no operator
        ("<none> | born | ?1 <end>", 1),  # no subject
        ("<none> @9 | | ?1 <end>", 3),  # no predicate
        ("<none> @9 | ?1 | ?2 <end>", 3),  # a predicate that is only a placeholder
        ("<none> @9 | born | <end>", 5),  # no object
        ("<none> @9 | born <end>", 4),  # two fields
        ("<none> @9 | born | ?1 | born <end>", 6),  # four fields
        ("<none> @9 | born | ?2 <end>", 5),  # ?1 comes first
        ("<none> @9 | born | of <end>", 5),  # nothing is unknown
        ("<none> ?1 | born | ?2 <end>", 5),  # two new unknowns
        ("<none> ?1 | born | ?1 <end>", 5),  # of itself
        ("<none> @9 ?1 | born | ?1 <end>", 2),  # a name and a placeholder
        ("<none> ?1 of | born | @9 <end>", 2),  # a placeholder and a name
        ("<none> @10 | born | ?1 <end>", 1),  # begins within a word
        ("<none> @4 @10 | born | ?1 <end>", 2),  # goes on within another word
        ("<none> ##s | born | ?1 <end>", 1),
        ("<none> @0 | born | ?1 <end>", 1),  # [CLS]
        ("<none> <max> @9 | born | ?1 <end>", 1),
        ("<none> @9 | born | ?1 <end> of", 7),  # after the end
        ("<none> @9 | born born | ?1 <end>", 4),  # a word twice
        ("<none> @9 | born of born | ?1 <end>", 5),  # a word twice, not in a row
        ("<none> @9 @10 @9 | born | ?1 <end>", 3),  # the same copy twice
    ],
)
def test_bad_lines_are_not(line, bad):
    [source] = tiny_reader().read([QUESTION])
    found = walk(source, numbers(line, source)[: bad + 1])
    assert found == [True] * bad + [False]


@pytest.mark.parametrize("limit", [8, 9, 13, 30, 96])
def test_whatever_is_chosen_parses_and_ends_in_time(limit):
    """500 random walks: the rules alone make an output whole."""
    sources = tiny_reader().read([QUESTION, "Vertigo or Stalker?"] * 50)
    rng = np.random.default_rng(limit)
    width = max(len(source.pieces) for source in sources)
    word, copyable = np.zeros((2, len(sources), width), bool)
    for row, source in enumerate(sources):
        word[row, : len(source.pieces)] = [not one.startswith("##") for one in source.pieces]
        copyable[row, : len(source.pieces)] = source.copyable
    state, rows = RULES.start(len(sources), width), []
    for n in range(limit):
        allowed = RULES.allowed(state, word, copyable, limit - n)
        assert allowed.any(axis=1).all()
        chosen = np.argmax(allowed * rng.random(allowed.shape), axis=1)
        rows.append(chosen)
        state = RULES.step(state, chosen)
    for outputs, source in zip(np.array(rows).T.tolist(), sources):
        assert VOCABULARY.tokens[outputs[-1]] == END
        written = VOCABULARY.read(outputs, source)
        assert 1 <= len(written.triplets) <= MAX_TRIPLETS
        for triplet in written.triplets:
            assert triplet.placeholders
            assert all(term.parts for term in triplet.terms)


def test_outputs_without_an_end_are_refused():
    [source] = tiny_reader().read([QUESTION])
    with pytest.raises(ValueError, match="from an operator to <end>"):
        VOCABULARY.read(numbers("<none> @9 | born | ?1", source), source)
    with pytest.raises(ValueError, match="expected 3"):
        VOCABULARY.read(numbers("<none> @9 | born <end>", source), source)


def test_the_vocabulary_says_what_is_wrong():
    with pytest.raises(ValueError, match="'none' must be among them"):
        QueryVocabulary(("max",), ())
    with pytest.raises(ValueError, match="stands twice"):
        QueryVocabulary(("none",), (FIELD,))
    assert VOCABULARY.number[TRIPLET] == 2
