import pytest

from triax.training.lessons.phrases import plain_predicate, shared_span


@pytest.mark.parametrize(
    ("step", "question", "expected"),
    [
        ("where does the last name sylvester come from", "the name Sylvester has?", "Sylvester"),
        ("who is Don Newman's employer", "What left the employer of Don Newman due", "Don Newman"),
        (
            "When was Vertigo (1958 Film) shot?",
            "Is Vertigo (1958 Film) old?",
            "Vertigo (1958 Film)",
        ),
        ("Where was Bobby Arora born?", "Bobby Arora was born where?", "Bobby Arora"),
        ("who broke the salt law", "Who broke the salt law in 1930?", "broke the salt law"),
        ("who was it", "What is that?", ""),
    ],
)
def test_the_shared_name_is_written_as_in_the_question(step, question, expected):
    assert shared_span(step, question) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Who is the director of ", "", "director of"),
        ("who ruled ", " during the protests", "who ruled during the protests"),
        ("Where was ", " born in", "where born in"),
        ("What was ", " 's wettest year", "wettest year"),
        ("The director of ", " is who", "director of"),
        ("how many people live in ", "", "how many people live in"),
        ("In which county is ", " located", "county is located"),
    ],
)
def test_predicates_keep_what_tells(before, after, expected):
    assert plain_predicate(before, after) == expected
