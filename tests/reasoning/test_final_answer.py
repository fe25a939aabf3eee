import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.llm.ask import Unreadable
from triax.llm.scripted import ScriptedCompleter
from triax.reasoning.context import Budget
from triax.reasoning.final_answer import ThinkingReader, read_final, shown
from triax.reasoning.synthesize import Short
from triax.records.completions import Completion
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.questions import Question

EVIDENCE = Evidence((ScoredChunk(Chunk("a", "a", "It is by Hitchcock.", "Vertigo"), 1.0),))
QUESTION = Question("q", "Who made Vertigo?")
# The list of the paper, each as a model may write it.
ABSTENTIONS = ["I don't know", "I do not know.", "unknown", "Not sure", "cannot determine"]
ABSTENTIONS += ["can't tell", "can\u2019t tell"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("FINAL ANSWER: Hitchcock", "Hitchcock"),
        ("Step 1 ...\n**Final Answer:** Hitchcock\nbecause", "Hitchcock"),
        ("FINAL ANSWER: A\nno, wait.\nfinal answer : **B**", "B"),
        ("FINAL ANSWER: B\nFINAL ANSWER: <the answer>", "B"),
        ("<think>FINAL ANSWER: A</think>FINAL ANSWER: B", "B"),
        ('FINAL ANSWER: "Vertigo"', "Vertigo"),
        # Many small models go on in the next line.
        ("**FINAL ANSWER:**\n\n**Vertigo**\nbecause", "Vertigo"),
        ("FINAL ANSWER: B\nFINAL ANSWER:\n<answer>", "B"),
        *((f"FINAL ANSWER: {one}", None) for one in ABSTENTIONS),
    ],
)
def test_the_last_marked_line_is_the_answer(text, answer):
    assert read_final(Completion(text)) == Short(answer)


@pytest.mark.parametrize("text", ["", "Hitchcock", "FINAL ANSWER:", "FINAL ANSWER: <answer>", "**"])
def test_r26_without_it_there_is_no_answer(text):
    with pytest.raises(Unreadable, match="no line FINAL ANSWER:"):
        read_final(Completion(text))


def test_a_cut_answer_says_so():
    with pytest.raises(Unreadable, match="cut at the limit"):
        read_final(Completion("Step 1: I", "length"))


@given(st.text(max_size=200))
def test_nothing_else_is_raised(text):
    for prefix in ("", "FINAL ANSWER: ", "final answer:"):
        try:
            found = read_final(Completion(prefix + text))
        except Unreadable:
            continue
        assert found.text is None or found.text.strip()


def test_the_reader_asks_once_more_and_keeps_what_was_written():
    model = ScriptedCompleter(["I think it is him", "Step 3: FINAL ANSWER: Hitchcock"])
    reader = ThinkingReader(model, "System.", (("q", "a"),), "steps", Budget(), 99, 0.3)
    [reply] = asyncio.run(reader.read([(QUESTION, EVIDENCE)]))
    assert (reply.value, reply.text) == (Short("Hitchcock"), "Step 3: FINAL ANSWER: Hitchcock")
    assert reply.usage.calls == 2
    first, again = model.requests
    assert [one.content for one in first.messages] == [
        "System.",
        "q",
        "a",
        "Context:\nPassages:\n[1] Vertigo\nIt is by Hitchcock.\n\nQuestion: Who made Vertigo?",
    ]
    assert (first.stage, first.max_tokens, first.temperature) == ("steps", 99, 0.3)
    assert "no line FINAL ANSWER:" in again.messages[-1].content


def test_without_evidence_there_is_no_context():
    assert shown("Who?", Evidence(), Budget()) == "Question: Who?"
