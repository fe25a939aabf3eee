import asyncio

from triax.llm.scripted import RAISE, ScriptedCompleter
from triax.pipelines.gear import GeAR, GistRetriever
from triax.reasoning.gist import GistDecider
from triax.reasoning.synthesize import PromptedReader
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Note, ScoredChunk, ScoredNote
from triax.records.questions import Question
from triax.records.usage import Usage

CHUNKS = {name: Chunk(name, name, f"text {name}") for name in "abcd"}
ONE = Question("1", "Where was the director of Vertigo born?")
TWO = Question("2", "Who directed Stalker?")


def ranked(names):
    return tuple(ScoredChunk(CHUNKS[name], 1.0) for name in names)


class Finds:
    """By query: chunks and what is noted; a gist leads to chunk d."""

    SAYS = {
        ONE.text: ("ab", "Vertigo by Hitchcock"),
        "Where was Hitchcock born?": ("bc", "Hitchcock born in London"),
        TWO.text: ("a", "Stalker by Tarkovsky"),
    }

    def __init__(self):
        self.asked = []

    def search(self, groups, num_chunks):
        self.asked.append([list(group) for group in groups])
        found = [self.SAYS[group[0]] for group in groups]
        return [
            Evidence(ranked(names), (), (ScoredNote(Note("n", said), 1.0),), Usage(1))
            for names, said in found
        ]

    def passages(self, texts):
        return ranked("d") if "Hitchcock born in London" in texts else ()


def run(decisions, questions=(ONE, TWO), **given):
    finds = Finds()
    decider = ScriptedCompleter(decisions)
    reader = ScriptedCompleter(lambda request: "answer")
    gear = GeAR(finds, GistDecider(decider), PromptedReader(reader), **given)
    return asyncio.run(gear.answer(questions)), finds, decider, reader


def test_it_searches_for_what_is_missing_until_there_is_enough():
    decisions = ["search: Where was Hitchcock born?", "enough", "enough"]
    (one, two), finds, decider, reader = run(decisions)
    assert isinstance(finds, GistRetriever)
    assert finds.asked == [[[ONE.text], [TWO.text]], [["Where was Hitchcock born?"]]]
    # The second decision about the first question knows what both rounds have said.
    gist = decider.requests[2].messages[-1].content
    assert gist.startswith("Facts:\nVertigo by Hitchcock\nHitchcock born in London\n")
    assert (one.answer, one.stop_reason, len(one.rounds)) == ("answer", "enough", 2)
    assert (two.answer, two.stop_reason, len(two.rounds)) == ("answer", "enough", 1)
    # 1/61 + ... : a 1st; b 2nd and 1st; c 2nd; the gist's d 1st.
    assert one.chunk_ids == ("b", "a", "d", "c") and two.chunk_ids == ("a",)
    # Two searches, two decisions, one reading; and one of each.
    assert (one.usage.calls, two.usage.calls) == (5, 3)
    assert one.context == ("Vertigo by Hitchcock", "Hitchcock born in London")
    assert "Hitchcock born in London" in reader.requests[0].messages[-1].content


def test_r17_rounds_end():
    """The same query again is no progress; after the last round nothing is decided."""
    (one,), *_ = run([f"search: {ONE.text}"], [ONE])
    assert (one.stop_reason, len(one.rounds), one.answer) == ("no progress", 1, "answer")
    (one,), _, decider, _ = run([], [ONE], max_rounds=1)
    assert (one.stop_reason, decider.requests) == ("max rounds", [])


def test_r26_an_unreadable_decision_is_none():
    (one,), *_ = run(["perhaps", "perhaps"], [ONE])
    assert (one.stop_reason, one.answer, one.error) == ("unreadable decision", "answer", None)


def test_r03_a_failed_call_ends_its_question_alone():
    (one, two), *_ = run([f"{RAISE} down", "enough"])
    assert (one.answer, one.error) == (None, "decision: down")
    assert (two.answer, two.error) == ("answer", None)
