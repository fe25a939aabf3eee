import asyncio

import pytest

from triax.llm.ask import Reply
from triax.reasoning.decompose import GoldDecomposer
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.usage import Usage
from triax.records.verbs import QueryRewriter
from triax.routing.rewriter import ChainRewriter, chain_text


def parsed(*rows):
    return [QueryTriplet.parse(*row) for row in rows]


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            [("A", "director", "?1"), ("?1", "mother", "?2"), ("?2", "born in", "?3")],
            [
                "[A, director, <director of A>]",
                "[<director of A>, mother, <mother of director of A>]",
                "[<mother of director of A>, born in, ?]",
            ],
        ),
        (
            [("?x", "wrote", "The Republic"), ("?y", "taught", "?x")],
            ["[<wrote The Republic>, wrote, The Republic]", "[?, taught, <wrote The Republic>]"],
        ),
        (
            [("A", "born", "?1"), ("B", "born", "?2")],
            ["[A, born, ?]", "[B, born, ?]"],
        ),
        ([("A", "author", "?")], ["[A, author, ?]"]),
    ],
)
def test_the_notation_of_the_paper(rows, lines):
    text = chain_text("Why?", parsed(*rows))
    assert text.splitlines() == ["Why?", "structured triplet reasoning chain:", *lines]


class Fails:
    async def decompose(self, questions):
        return [Reply(None, Usage(calls=1), error="no") for _ in questions]


def test_a_failed_rewriting_leaves_the_question_as_it_was():
    rewriter = ChainRewriter(Fails())
    assert isinstance(rewriter, QueryRewriter)
    assert asyncio.run(rewriter.rewrite([Question("q", "Why?")])) == [("", Usage(calls=1))]


def test_any_decomposer_will_do():
    gold = tuple(parsed(("Brand", "author", "?a"), ("?a", "born in", "?b")))
    question = Question("q", "Where?", gold_query_triplets=gold)
    ((text, usage),) = asyncio.run(ChainRewriter(GoldDecomposer()).rewrite([question]))
    assert text == chain_text("Where?", gold) and usage == Usage()
