import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from triax.models.query_vocabulary import QueryVocabulary, QuestionReader
from triax.training.lessons.decompositions import Lesson
from triax.training.lessons.query_outputs import build_vocabulary, encode_lesson

WORDS = (
    "[UNK] [CLS] [SEP] who is the of place birth director date vert ##igo stal ##ker ##s ? ' s "
    "moon is"
).split()
VOCABULARY = QueryVocabulary(("none",), ("birth", "date", "of", "place"))
QUESTION = "Who is the place of birth of Vertigo's director?"


@pytest.fixture(scope="module")
def reader():
    vocab = {word: n for n, word in enumerate(dict.fromkeys(WORDS))}
    backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return QuestionReader(backend)


def encode(reader, triplets, question=QUESTION):
    [source] = reader.read([question])
    return encode_lesson(Lesson(question, "none", triplets, "x"), source, VOCABULARY, reader)


def shown(example):
    """Each output as its token, or as @ and the copied piece."""
    size = len(VOCABULARY)
    return " ".join(
        VOCABULARY.tokens[n] if n < size else f"@{example.source.pieces[n - size]}"
        for n in example.outputs
    )


def test_names_are_copied_runs_too_and_the_rest_is_written(reader):
    example = encode(reader, (("Vertigo", "director", "?1"), ("?1", "date of birth", "?2")))
    # "director" is not in the vocabulary, so it is copied; "of birth" is a run of the question.
    assert shown(example) == (
        "<none> @vert @##igo | @director | ?1 ; ?1 | date @of @birth | ?2 <end>"
    )


def test_one_way_is_right_for_each_word(reader):
    example = encode(reader, (("Vertigo", "date of birth", "?1"),))
    by_output = dict(zip(shown(example).split(), zip(example.tokens, example.places)))
    assert by_output["@vert"] == (-1, (example.source.pieces.index("vert"),))
    # "birth" is in the vocabulary too, but here it is part of a run.
    assert by_output["@birth"] == (-1, (6,))
    assert by_output["date"] == (VOCABULARY.number["date"], ())
    assert by_output["|"] == (VOCABULARY.number["|"], ())


def test_every_place_of_a_name_is_right(reader):
    question = "Who is Stalker of Stalker?"
    example = encode(reader, (("Stalker", "date", "?1"),), question)
    assert example.source.pieces == (
        "[CLS]", "who", "is", "stal", "##ker", "of", "stal", "##ker", "?", "[SEP]",
    )  # fmt: skip
    assert example.places[1:3] == ((3, 6), (4, 7))


def test_only_whole_words_are_copied(reader):
    """stal##ker##s is not stal##ker."""
    example = encode(reader, (("Vertigo", "stalker date", "?1"),), "Who is Vertigo of stalkers?")
    assert shown(example) == "<none> @vert @##igo | date | ?1 <end>"


def test_a_field_without_a_word_that_can_be_had_makes_no_example(reader):
    assert encode(reader, (("Moon", "date", "?1"),)) is None


def test_examples_read_back_as_their_lessons(reader):
    triplets = (("Vertigo", "director", "?1"), ("?1", "place of birth", "?2"))
    example = encode(reader, triplets)
    written = VOCABULARY.read(example.outputs, example.source)
    assert [tuple(map(str, one.terms)) for one in written.triplets] == list(triplets)


def test_the_vocabulary_has_the_frequent_pieces_of_predicates(reader):
    lessons = [
        Lesson("q", "none", (("Vertigo", "date of birth", "?1"),), "x"),
        Lesson("q", "min", (("Moon", "place of ?1 birth", "?2"),), "x"),
    ]
    found = build_vocabulary(lessons, reader, min_count=2, max_pieces=10)
    assert found.operators == ("min", "none")
    assert found.pieces == ("birth", "of")
    assert build_vocabulary(lessons, reader, 1, 1).pieces in (("of",), ("birth",))
