"""IRCoT: conversations written by hand, over a retriever whose finds are plain to see."""

import asyncio
import io
from functools import partial

from rich.console import Console

from pipelines.searches import ByTitle, Dialogue
from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.assembly import Parts, assemble
from triax.pipelines.ircot import IRCoT
from triax.reasoning.read_thought import ReadingThinker
from triax.reasoning.synthesize import PromptedReader
from triax.reasoning.thought import PromptedThinker
from triax.reasoning.trained_synthesize import TrainedEvidenceReader
from triax.records.documents import Chunk
from triax.records.questions import Question
from triax.records.readings import Reading
from triax.records.trace_json import trace_to_json
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.records.verbs import Pipeline
from triax.reporting.tree import trace_tree
from triax.retrieval.graph import open_graph_retriever

CHAIN = Question("chain", "Where was the director of Vertigo born?")
FACT = "Vertigo was directed by Hitchcock"
CHAIN_SAYS = [f"{FACT}. He is known.", "So the answer is: Leytonstone."]
SINGLE = Question("single", "Who made Stalker?")


def method(completer, retriever=None, **options):
    pipeline = IRCoT(
        retriever or ByTitle(), PromptedThinker(completer), PromptedReader(completer), **options
    )
    assert isinstance(pipeline, Pipeline)
    return pipeline


def answer(pipeline, *questions):
    return asyncio.run(pipeline.answer(list(questions)))


def test_thoughts_and_searches_in_turns():
    completer = Dialogue(think_chain=CHAIN_SAYS, read_chain=["Leytonstone"])
    retriever = ByTitle(Usage(calls=1, prompt_tokens=5))
    [trace] = answer(method(completer, retriever), CHAIN)
    # The first sentence alone is searched.
    assert retriever.searches == [[[CHAIN.text]], [[FACT]]]
    one, two = trace.rounds
    assert (one.queries, one.note) == ((CHAIN.text,), FACT)
    assert (two.queries, two.note) == ((FACT,), "So the answer is: Leytonstone")
    assert [found.chunk.id for found in two.evidence.chunks] == ["hitchcock", "vertigo"]
    assert (trace.answer, trace.stop_reason, trace.error) == ("Leytonstone", "concluded", None)
    assert (trace.chunk_ids, trace.pipeline) == (("vertigo", "hitchcock"), "ircot")
    # Two searches, two thoughts, one reading.
    assert trace.usage.calls == 5
    shown = completer.requests[-1].messages[-1].content
    assert shown == (
        "Passages:\n[1] Vertigo\nVertigo is a film. Hitchcock made it.\n[2] Hitchcock\nHe was born "
        f"in Leytonstone.\n\nQuestion: {CHAIN.text}"
    )


def test_questions_advance_together_and_leave_when_they_conclude():
    completer = Dialogue(
        think_chain=CHAIN_SAYS,
        think_single=["So the answer is: Tarkovsky."],
        think_silent=["Stalker is a film.", ""],
        **{f"read_{name}": [name] for name in ("chain", "single", "silent")},
    )
    retriever = ByTitle()
    silent = Question("silent", "Vertigo or Stalker?")
    traces = answer(method(completer, retriever), CHAIN, SINGLE, silent)
    assert completer.batches == [
        ("think", ["chain", "single", "silent"]),
        ("think", ["chain", "silent"]),
        ("read", ["chain", "single", "silent"]),
    ]
    assert [len(groups) for groups in retriever.searches] == [3, 2]
    assert [trace.stop_reason for trace in traces] == ["concluded", "concluded", "no thought"]
    assert [trace.answer for trace in traces] == ["chain", "single", "silent"]
    assert [len(trace.rounds) for trace in traces] == [2, 1, 2]


def test_r03_a_failed_question_stops_no_other():
    completer = Dialogue(
        think_chain=[CHAIN_SAYS[0], "__RAISE__: down"],
        think_single=["So the answer is: T."],
        think_odd=["<think>", "<think>"],
        think_late=["So the answer is: x."],
        read_single=["Tarkovsky"],
        read_odd=["odd"],
        read_late=["__RAISE__: slow"],
    )
    questions = [CHAIN, SINGLE, Question("odd", "Stalker?"), Question("late", "Vertigo?")]
    # The odd one is asked again within its round.
    traces = answer(method(completer), *questions)
    assert [trace.error for trace in traces] == ["thought: down", None, None, "reading: slow"]
    assert [trace.stop_reason for trace in traces] == [
        "error",
        "concluded",
        "unreadable thought",
        "concluded",
    ]
    assert [trace.answer for trace in traces] == [None, "Tarkovsky", "odd", None]
    assert traces[0].rounds[1].note == "down" and len(traces[0].rounds) == 2
    assert traces[0].chunk_ids == ("vertigo", "hitchcock")
    assert traces[2].rounds[0].note.startswith("unreadable: ")
    assert completer.batches[-1] == ("read", ["single", "odd", "late"])


def test_r17_rounds_calls_and_tokens_have_limits():
    facts = [f"Fact {number} about Vertigo." for number in range(9)]
    for options, reason, num_rounds in (
        ({"max_rounds": 3}, "max rounds", 3),
        ({"max_calls": 2}, "max calls", 2),
        ({"max_tokens": 1}, "max tokens", 1),
    ):
        completer = Dialogue(think_chain=facts, read_chain=["x"])
        [trace] = answer(method(completer, **options), CHAIN)
        assert (trace.stop_reason, len(trace.rounds), trace.answer) == (reason, num_rounds, "x")
        assert trace.usage.calls == num_rounds + 1


def test_the_answer_of_the_last_thought():
    completer = Dialogue(
        think_chain=CHAIN_SAYS,
        think_single=["So the answer is: unknown."],
        think_silent=[""],
        read_silent=["read"],
    )
    questions = [CHAIN, SINGLE, Question("silent", "Vertigo?")]
    traces = answer(method(completer, reads_thoughts=True), *questions)
    assert [trace.answer for trace in traces] == ["Leytonstone", None, "read"]
    assert [trace.error for trace in traces] == [None] * 3
    assert completer.batches[-1] == ("read", ["silent"])


def test_passages_are_capped_as_they_were_found_or_by_their_scores():
    """Stalker is found last and scores best: it stands furthest back in its query."""
    says = ["Hitchcock is a name.", "Not long after that came Stalker.", "So the answer is: x."]
    for options, expected in (
        ({"max_passages": 2}, ("vertigo", "hitchcock")),
        ({"max_passages": 2, "order": "score"}, ("vertigo", "stalker")),
        ({"max_passages": None}, ("vertigo", "hitchcock", "stalker")),
    ):
        completer = Dialogue(think_chain=says, read_chain=["x"])
        [trace] = answer(method(completer, **options), CHAIN)
        assert trace.chunk_ids == expected
        for asked in completer.requests[-2:]:  # the last thought, the reading
            shown = asked.messages[-1].content
            assert ("Stalker is a film" in shown) == ("stalker" in expected)


def test_no_questions_and_nothing_found():
    assert answer(method(Dialogue())) == []
    completer = Dialogue(think_none=["So the answer is: x."], read_none=["x"])
    [trace] = answer(method(completer), Question("none", "Who?"))
    assert (trace.answer, trace.chunk_ids) == ("x", ())


def test_a_trace_is_shown_with_its_thoughts():
    completer = Dialogue(think_chain=CHAIN_SAYS, read_chain=["Leytonstone"])
    [trace] = answer(method(completer), CHAIN)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(trace_tree(trace_to_json(trace)))
    lines = [line.lstrip("│├└─ ").rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[2:] == [
        "round 1",
        "searched",
        CHAIN.text,
        "found 0 propositions in 1 chunks",
        FACT,
        "round 2",
        "searched",
        FACT,
        "found 0 propositions in 2 chunks",
        "So the answer is: Leytonstone",
        lines[-2],
        "answer: Leytonstone",
    ]


class ReadsTitles:
    """An extractive reader that knows one answer for each last passage's title."""

    name = "titles"
    answers = {"Vertigo": "Hitchcock", "Hitchcock": "Leytonstone"}

    def read(self, requests, *, allows_verdicts=False):
        titles = [request.passages[-1].partition(".")[0] for request in requests]
        return [Reading(self.answers[title], 0, 0, 1, 1.0, 0.9, 0.9) for title in titles]


def test_iterative_reading_asks_no_language_model():
    """The first answer leads to the second passage; the second comes again and is the last."""
    retriever, reader = ByTitle(), TrainedEvidenceReader(ReadsTitles())
    pipeline = IRCoT(retriever, ReadingThinker(reader), reader, reads_thoughts=True)
    [trace] = answer(pipeline, CHAIN)
    assert retriever.searches == [
        [[CHAIN.text]],
        [[f"{CHAIN.text} Hitchcock"]],
        [[f"{CHAIN.text} Leytonstone"]],
    ]
    assert [one.note for one in trace.rounds] == ["Hitchcock", "Leytonstone", "Leytonstone"]
    assert (trace.answer, trace.stop_reason) == ("Leytonstone", "concluded")
    assert trace.usage == Usage()


GRAPH_CHUNKS = [
    Chunk("film", "film", "A film of 1958 by a British director.", "Vertigo"),
    Chunk("man", "man", "Its town is known for him.", "Hitchcock"),
    Chunk("other", "other", "A film by Tarkovsky.", "Stalker"),
]
GRAPH_FACTS = [
    Extraction("film", (Triplet("Vertigo", "directed by", "Hitchcock"),)),
    Extraction("man", (Triplet("Hitchcock", "born in", "Leytonstone"),)),
    Extraction("other", (Triplet("Stalker", "directed by", "Tarkovsky"),)),
]


def test_over_the_graph_of_hipporag(tmp_path):
    """IRCoT + HippoRAG 2: the thought links the second round to the triplet of the birth."""
    encoder = HashingEncoder(4096)
    index = build_index(GRAPH_CHUNKS, propositions(GRAPH_FACTS), encoder, tmp_path / "index")
    completer = ScriptedCompleter(
        ["Hitchcock was born in some town.", "So the answer is: Leytonstone.", "Leytonstone"]
    )
    parts = Parts(completer, encoder, GRAPH_CHUNKS, lambda: index, lambda: GRAPH_FACTS)
    pipeline = assemble(
        partial(
            IRCoT,
            retriever=partial(open_graph_retriever, linking_top_k=1),
            thinker=partial(PromptedThinker),
            reader=partial(PromptedReader),
            num_chunks=1,
        ),
        parts,
    )
    [trace] = answer(pipeline, Question("q", "Who directed Vertigo?"))
    texts = [[hit.proposition.text for hit in one.evidence.hits] for one in trace.rounds]
    assert texts == [["Vertigo directed by Hitchcock"], ["Hitchcock born in Leytonstone"]]
    assert trace.chunk_ids == ("film", "man")
    assert (trace.answer, trace.usage.calls) == ("Leytonstone", 3)
    assert parts.reads_triplets
