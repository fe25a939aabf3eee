import asyncio

from pipelines.searches import ByTitle, Dialogue
from triax.pipelines.react import ReAct
from triax.reasoning.action import PromptedActor
from triax.reasoning.synthesize import PromptedReader
from triax.records.questions import Question
from triax.records.usage import Usage
from triax.records.verbs import Pipeline

CHAIN = Question("chain", "Where was the director of Vertigo born?")
CHAIN_SAYS = [
    "Thought: The director is missing.\nAction: search[Vertigo]",
    "Thought: Who made it?\nAction: lookup[made]",
    "Thought: Now his birth.\nAction: search[Hitchcock]",
    "Thought: Known.\nAction: finish[Leytonstone]",
]
SINGLE = Question("single", "Who made Stalker?")


def method(completer, retriever=None, reads=False, **options):
    reader = PromptedReader(completer) if reads else None
    pipeline = ReAct(retriever or ByTitle(), PromptedActor(completer), reader, **options)
    assert isinstance(pipeline, Pipeline)
    return pipeline


def answer(pipeline, *questions):
    return asyncio.run(pipeline.answer(list(questions)))


def test_search_look_up_and_finish():
    completer, retriever = Dialogue(act_chain=CHAIN_SAYS), ByTitle(Usage(calls=1))
    [trace] = answer(method(completer, retriever), CHAIN)
    assert retriever.searches == [[["Vertigo"]], [["Hitchcock"]]]
    assert [one.queries for one in trace.rounds] == [("Vertigo",), (), ("Hitchcock",), ()]
    assert [one.note for one in trace.rounds] == [
        CHAIN_SAYS[0],
        f"{CHAIN_SAYS[1]}\n(1 of 1) Hitchcock made it",
        CHAIN_SAYS[2],
        CHAIN_SAYS[3],
    ]
    assert (trace.answer, trace.stop_reason, trace.error) == ("Leytonstone", "finished", None)
    assert (trace.pipeline, trace.usage.calls) == ("react", 6)  # four actions, two searches
    assert set(trace.chunk_ids) == {"vertigo", "hitchcock"}
    turns = [turn.content for turn in completer.requests[-1].messages[-7:]]
    assert turns == [
        f"Question: {CHAIN.text}",
        CHAIN_SAYS[0],
        "Observation:\nPassages:\n[1] Vertigo\nVertigo is a film. Hitchcock made it.",
        CHAIN_SAYS[1],
        "Observation:\n(1 of 1) Hitchcock made it",
        CHAIN_SAYS[2],
        "Observation:\nPassages:\n[1] Hitchcock\nHe was born in Leytonstone.",
    ]


def test_questions_advance_together_and_leave_when_they_finish():
    completer = Dialogue(
        act_chain=CHAIN_SAYS,
        act_single=["Action: search[Stalker]", "Action: finish[Tarkovsky]"],
        act_sure=["Action: finish[unknown]"],
    )
    retriever = ByTitle()
    traces = answer(method(completer, retriever), CHAIN, SINGLE, Question("sure", "Why?"))
    assert completer.batches == [
        ("act", ["chain", "single", "sure"]),
        ("act", ["chain", "single"]),
        ("act", ["chain"]),
        ("act", ["chain"]),
    ]
    # One search for both; a look-up searches nothing.
    assert retriever.searches == [[["Vertigo"], ["Stalker"]], [["Hitchcock"]]]
    assert [trace.answer for trace in traces] == ["Leytonstone", "Tarkovsky", None]
    assert {trace.stop_reason for trace in traces} == {"finished"}
    assert [trace.error for trace in traces] == [None] * 3


def test_r03_r26_failed_and_unreadable_questions_stop_no_other():
    completer = Dialogue(
        act_chain=["Action: search[Vertigo]", "__RAISE__: down"],
        act_single=["Let me see.", "Well."],
        act_fine=["Action: search[Stalker]", "Hm.", "Action: finish[x]"],
        read_single=["read"],
    )
    questions = [CHAIN, SINGLE, Question("fine", "?")]
    failed, unreadable, fine = answer(method(completer, reads=True), *questions)
    assert (failed.error, failed.stop_reason, failed.answer) == ("action: down", "error", None)
    assert failed.chunk_ids == ("vertigo",)
    assert (unreadable.error, unreadable.stop_reason) == (None, "unreadable action")
    assert (unreadable.answer, unreadable.usage.calls) == ("read", 3)
    assert unreadable.rounds[0].note.startswith("unreadable: no search")
    assert (fine.answer, fine.usage.calls) == ("x", 3)


def test_r17_without_an_end_there_is_no_answer_or_it_is_read():
    for options, reason, num_rounds in (
        ({"max_rounds": 2}, "max rounds", 2),
        ({"max_calls": 3}, "max calls", 3),
        ({"max_tokens": 1}, "max tokens", 1),
    ):
        for reads, expected in ((False, None), (True, "read")):
            completer = Dialogue(act_chain=["search[Vertigo]"] * 9, read_chain=["read"])
            [trace] = answer(method(completer, reads=reads, **options), CHAIN)
            assert (trace.stop_reason, len(trace.rounds)) == (reason, num_rounds)
            assert (trace.answer, trace.error) == (expected, None)
    assert "[1] Vertigo" in completer.requests[-1].messages[-1].content


def test_no_questions():
    assert answer(method(Dialogue(), reads=True)) == []
