import pytest

from triax.reasoning.answer_text import first_line, is_abstention, without_thinking


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Palermo", "Palermo"),
        ("\n  \nPalermo\nbecause", "Palermo"),
        ("**Palermo**", "Palermo"),
        ("** Palermo", "Palermo"),
        ("`Palermo`", "Palermo"),
        ('"Palermo"', "Palermo"),
        ("'Palermo'", "Palermo"),
        ("\u201cPalermo\u201d", "Palermo"),
        ('**"Palermo"**', "Palermo"),
        ('""', ""),
        ("***\nPalermo", "Palermo"),
        ("```\nPalermo\n```", "Palermo"),
        ('The "Boss"', 'The "Boss"'),
        ("The \u201cBoss\u201d", "The \u201cBoss\u201d"),
        ('"Heroes" and "Low"', '"Heroes" and "Low"'),
        ("Ol' Man River'", "Ol' Man River'"),
        ("What's Up, Doc?", "What's Up, Doc?"),
        ("C++", "C++"),
        ("U.S.", "U.S."),
        ("", ""),
        (" \n ", ""),
        ("'", "'"),
    ],
)
def test_the_first_line_loses_only_what_is_around_all_of_it(text, line):
    assert first_line(text) == line


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>\nhm\n</think>\n\nPalermo", "\n\nPalermo"),
        ("  <think></think>x", "x"),
        ("<think>never ends", ""),
        ("Palermo <think>x</think>", "Palermo <think>x</think>"),
        ("", ""),
    ],
)
def test_thinking_before_an_answer_goes(text, rest):
    assert without_thinking(text) == rest


@pytest.mark.parametrize(
    "line", ["unknown", "Unknown.", "I don't know", "I don\u2019t know!", "NOT FOUND", "not stated"]
)
def test_abstentions(line):
    assert is_abstention(line)


@pytest.mark.parametrize("line", ["", "no", "None", "The Unknown", "Unknown Pleasures", "Palermo"])
def test_names_are_no_abstentions(line):
    assert not is_abstention(line)
