import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reasoning.golden import check_golden
from sklearn.feature_extraction.text import TfidfVectorizer

from triax.indexing.summaries import (
    ExtractiveSummarizer,
    Member,
    PromptedSummarizer,
    Summarizer,
)
from triax.llm.scripted import ScriptedCompleter
from triax.models.token_counter import WordCounter

COUNTER = WordCounter(1.0)
FILMS = [
    Member("Inception was directed by Christopher Nolan. It was made in 2010.", "Inception"),
    Member("Christopher Nolan directed the film Dunkirk. The sea is deep.", "Dunkirk (film)"),
]


def extractive(max_tokens, relevance=0.7):
    return ExtractiveSummarizer(COUNTER, max_tokens, relevance)


def one(summarizer, *members):
    (reply,) = summarizer.summarise([members])
    return reply.value


def test_the_first_sentence_is_the_one_nearest_to_the_centroid():
    """Against scikit-learn's own TF-IDF, over words without stop words among them."""
    texts = [
        "Vienna lies near Danube.",
        "Danube crosses Vienna, Budapest.",
        "Budapest lies near Danube.",
        "Mice eat cheese.",
    ]
    weights = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, stop_words="english")
    rows = weights.fit_transform(texts).toarray()
    best = int((rows @ rows.mean(axis=0)).argmax())
    assert one(extractive(4), *map(Member, texts)) == texts[best]


def test_what_is_said_is_not_said_again():
    """With relevance alone the second twin is next; with redundancy the other sentence is."""
    twins = ["Danube crosses Vienna quickly.", "Danube crosses Vienna slowly."]
    members = [*map(Member, twins), Member("Mice eat old cheese.")]
    assert one(extractive(8, 1.0), *members) == " ".join(twins)
    assert "Mice eat old cheese." in one(extractive(8, 0.2), *members)


def test_the_choice_is_that_of_marginal_relevance():
    """The rule again by its formula, over scikit-learn's vectors; four texts of seven words."""
    random = np.random.default_rng(0)
    names = [f"word{number}" for number in range(12)]
    texts = [" ".join(random.choice(names, 7)).capitalize() + "." for _ in range(15)]
    rows = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit_transform(texts).toarray()
    centre = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
    wanted: list[int] = []
    for _ in range(4):
        gains = {
            n: 0.7 * rows[n] @ centre - 0.3 * max((rows[n] @ rows[m] for m in wanted), default=0)
            for n in range(15)
            if n not in wanted
        }
        wanted.append(max(gains, key=gains.get))
    assert wanted[:4] != sorted(range(15), key=lambda n: -rows[n] @ centre)[:4]
    assert one(extractive(29), *map(Member, texts)) == " ".join(texts[n] for n in sorted(wanted))


def test_sentences_keep_their_order_once_each_and_are_named_by_their_title():
    assert one(extractive(99), *FILMS, FILMS[0]) == (
        "Inception was directed by Christopher Nolan. Inception: It was made in 2010. "
        "Christopher Nolan directed the film Dunkirk. Dunkirk (film): The sea is deep."
    )


def test_r09_little_and_nothing_is_defined():
    assert extractive(10).summarise([]) == []
    assert one(extractive(10)) == ""
    assert one(extractive(10), Member("")) == ""
    assert one(extractive(10), Member("", "Title")) == "Title"
    assert one(extractive(10), Member("?!", "")) == "?!"
    assert one(extractive(0), *FILMS) == ""
    # A sentence that is too long by itself is cut.
    assert one(extractive(3), Member("One two three four five six.")) == "One two three"
    assert one(extractive(9), Member("The of and.")) == "The of and."
    assert "北京是中国的首都。" in one(extractive(9), Member("北京是中国的首都。"))


texts = st.lists(st.text(st.sampled_from("ab. A?é\n"), max_size=30), max_size=6)


@given(texts, st.integers(0, 12))
def test_r08_a_summary_has_no_more_tokens_than_asked_and_is_the_same_again(given_texts, limit):
    members = [Member(text, "T" * (n % 2)) for n, text in enumerate(given_texts)]
    found = one(extractive(limit), *members)
    assert COUNTER.count([found])[0] <= limit
    assert found == one(extractive(limit), *members)


def test_a_prompted_summary_is_one_call_with_its_cost():
    completer = ScriptedCompleter(["<think>well</think>\n Nolan directed\nboth. ", "Alone."])
    summarizer = PromptedSummarizer(completer, max_tokens=40)
    assert isinstance(summarizer, Summarizer) and isinstance(extractive(1), Summarizer)
    both, alone = summarizer.summarise([FILMS, FILMS[:1]])
    assert (both.value, alone.value) == ("Nolan directed both.", "Alone.")
    assert both.usage.calls == alone.usage.calls == 1
    request = completer.requests[0]
    assert (request.stage, request.max_tokens) == ("summarise", 40)
    check_golden("summarise", request.messages)
    assert summarizer.summarise([]) == [] and len(completer.requests) == 2


def test_an_empty_answer_is_asked_for_once_more_and_a_failed_call_is_told():
    """R2: a model that has thought until its end has said nothing."""
    summarizer = PromptedSummarizer(ScriptedCompleter(["<think>on and on", "Text.", " ", ""]))
    (reply,) = summarizer.summarise([FILMS])
    assert (reply.value, reply.usage.calls) == ("Text.", 2)
    (reply,) = summarizer.summarise([FILMS])
    assert reply.value is None and "is empty" in reply.error and not reply.is_failed
    (reply,) = summarizer.summarise([FILMS])
    assert reply.value is None and reply.is_failed


def test_settings_and_prompt_decide_what_is_derived():
    configs = [
        summarizer.config
        for summarizer in (
            PromptedSummarizer(ScriptedCompleter([], "one")),
            PromptedSummarizer(ScriptedCompleter([], "two")),
            PromptedSummarizer(ScriptedCompleter([], "one"), 5),
            extractive(100),
            extractive(99),
            extractive(100, 0.5),
            ExtractiveSummarizer(WordCounter(2.0)),
        )
    ]
    assert len({json.dumps(config, sort_keys=True) for config in configs}) == len(configs)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(ImportError, match=r"scikit-learn.*triax\[systems\]"):
        one(extractive(10), *FILMS)
