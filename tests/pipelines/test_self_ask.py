import asyncio

from pipelines.searches import ByTitle, Dialogue
from triax.pipelines.self_ask import SelfAsk
from triax.reasoning.follow_up import PromptedAsker
from triax.reasoning.synthesize import PromptedReader
from triax.records.questions import Question
from triax.records.usage import Usage
from triax.records.verbs import Pipeline

CHAIN = Question("chain", "Where was the director of Vertigo born?")
CHAIN_SAYS = [
    "Follow up: Who directed Vertigo?",
    "Follow up: Where was Hitchcock born?",
    "So the final answer is: Leytonstone",
]
SINGLE = Question("single", "Who made Stalker?")


def method(completer, retriever=None, **options):
    reader = PromptedReader(completer)
    pipeline = SelfAsk(retriever or ByTitle(), PromptedAsker(completer), reader, **options)
    assert isinstance(pipeline, Pipeline)
    return pipeline


def answer(pipeline, *questions):
    return asyncio.run(pipeline.answer(list(questions)))


def test_follow_ups_are_searched_and_answered_one_by_one():
    completer = Dialogue(follow_up_chain=CHAIN_SAYS, read_chain=["Hitchcock", "unknown"])
    retriever = ByTitle(Usage(calls=1))
    [trace] = answer(method(completer, retriever), CHAIN)
    assert retriever.searches == [[["Who directed Vertigo?"]], [["Where was Hitchcock born?"]]]
    assert [one.note for one in trace.rounds] == [
        "Follow up: Who directed Vertigo?\nIntermediate answer: Hitchcock",
        "Follow up: Where was Hitchcock born?\nIntermediate answer: not found",
        "Final answer: Leytonstone",
    ]
    assert (trace.answer, trace.stop_reason, trace.error) == ("Leytonstone", "finished", None)
    assert (trace.pipeline, trace.usage.calls) == ("self_ask", 7)  # 3 asked, 2 searched, 2 read
    assert set(trace.chunk_ids) == {"vertigo", "hitchcock"}
    # An intermediate answer is read over the passages of its own question.
    reading = completer.requests[3].messages[-1].content
    assert reading == (
        "Passages:\n[1] Hitchcock\nHe was born in Leytonstone.\n\n"
        "Question: Where was Hitchcock born?"
    )
    assert [turn.content for turn in completer.requests[-1].messages[-5:]] == [
        f"Question: {CHAIN.text}",
        CHAIN_SAYS[0],
        "Intermediate answer: Hitchcock",
        CHAIN_SAYS[1],
        "Intermediate answer: not found",
    ]


def test_questions_advance_together_and_leave_when_they_end():
    completer = Dialogue(
        follow_up_chain=CHAIN_SAYS,
        follow_up_single=["Follow up: Who made Stalker?", "So the final answer is: Tarkovsky"],
        follow_up_sure=["So the final answer is: unknown"],
        read_chain=["Hitchcock", "Leytonstone"],
        read_single=["Tarkovsky"],
    )
    retriever = ByTitle()
    traces = answer(method(completer, retriever), CHAIN, SINGLE, Question("sure", "Why?"))
    assert completer.batches == [
        ("follow_up", ["chain", "single", "sure"]),
        ("read", ["chain", "single"]),
        ("follow_up", ["chain", "single"]),
        ("read", ["chain"]),
        ("follow_up", ["chain"]),
    ]
    assert [len(groups) for groups in retriever.searches] == [2, 1]
    assert [trace.answer for trace in traces] == ["Leytonstone", "Tarkovsky", None]
    assert {trace.stop_reason for trace in traces} == {"finished"}


def test_r03_r26_failed_and_unreadable_questions_stop_no_other():
    completer = Dialogue(
        follow_up_chain=["__RAISE__: down"],
        follow_up_single=["Follow up: Who made Stalker?"],
        follow_up_odd=["No idea.", "None."],
        follow_up_mute=["Follow up: Who directed Vertigo?"],
        read_single=["__RAISE__: slow"],
        read_odd=["read"],
        read_mute=["", "", "read too"],
    )
    names = ("odd", "mute")
    questions = [CHAIN, SINGLE, *(Question(name, "?") for name in names)]
    traces = answer(method(completer), *questions)
    assert [(trace.error, trace.stop_reason, trace.answer) for trace in traces] == [
        ("follow-up: down", "error", None),
        ("intermediate answer: slow", "error", None),
        (None, "unreadable follow-up", "read"),
        (None, "unreadable intermediate answer", "read too"),
    ]
    assert traces[1].chunk_ids == ("stalker",)
    assert traces[1].rounds[0].note.endswith("not found; slow")


def test_r17_without_an_end_it_is_read_or_there_is_no_answer():
    for options, reason, num_rounds in (
        ({"max_rounds": 2}, "max rounds", 2),
        ({"max_calls": 3}, "max calls", 2),
        ({"max_tokens": 1}, "max tokens", 1),
    ):
        for reads, expected in ((True, "read"), (False, None)):
            completer = Dialogue(
                follow_up_chain=["Follow up: Who directed Vertigo?"] * 9,
                read_chain=["Hitchcock"] * num_rounds + ["read"],
            )
            pipeline = method(completer, reads_unfinished=reads, **options)
            [trace] = answer(pipeline, CHAIN)
            assert (trace.stop_reason, len(trace.rounds)) == (reason, num_rounds)
            assert (trace.answer, trace.error) == (expected, None)


def test_no_questions():
    assert answer(method(Dialogue())) == []
