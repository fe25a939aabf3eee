"""The paper's semantics: on the recorded runs of the released code, and with many questions."""

import asyncio
from collections import Counter

import pytest

from pipelines import oracle
from triax.llm.ask import Reply
from triax.llm.scripted import ScriptedCompleter
from triax.pipelines.t2rag import T2RAG
from triax.reasoning.decompose import GoldDecomposer, PromptedDecomposer
from triax.reasoning.resolve import FillingResolver, PromptedResolver
from triax.reasoning.synthesize import PromptedSynthesizer
from triax.records.completions import CompletionRequest
from triax.records.documents import Chunk
from triax.records.query_triplets import QueryTriplet
from triax.records.questions import Question
from triax.records.triplets import Extraction, Triplet
from triax.records.usage import Usage
from triax.records.verbs import Pipeline
from triax.retrieval.original import OriginalRetriever


def by_stage(scenario):
    """The recorded answers by stage: the first, the last, and those between in every round.

    The paper's rounds can be more than the recorded ones, and an answer that cannot be read is
    asked again; the last recorded answer of a stage then stands.
    """
    first, *middle, last = scenario["answers"]
    rest = iter(middle)
    latest = ""

    def say(request: CompletionRequest) -> str:
        nonlocal latest
        if request.stage == "synthesize":
            return last
        if request.stage == "decompose" and len(request.messages) == decompose_turns:
            return first
        latest = next(rest, latest or last)
        return latest

    decompose_turns = 2 + 2 * len(PromptedDecomposer.__dataclass_fields__["shots"].default)
    return ScriptedCompleter(say)


def method(retriever, completer, **options):
    return T2RAG(
        retriever,
        PromptedDecomposer(completer),
        PromptedResolver(completer),
        PromptedSynthesizer(completer),
        **options,
    )


def play(name, script=by_stage, **options):
    scenario, _ = oracle.load(name)
    encoder, completer = oracle.Spy(), script(scenario)
    options = {"num_chunks": scenario["k"], "max_rounds": scenario.get("N", 3)} | options
    pipeline = method(oracle.retriever(scenario, encoder), completer, **options)
    [trace] = asyncio.run(pipeline.answer([oracle.question(scenario)]))
    return trace, encoder.calls, completer


def shown(queries):
    return [str(query) for query in queries]


def resolved(state):
    return [" | ".join(one.triplet.fields) for one in state.resolved]


QUESTION = "Which film has the director born earlier, God's Gift To Women or Aldri Annet Enn Brak?"
FILMS = [
    "God's Gift To Women | is directed by | ?directorA",
    "Aldri Annet Enn Brak | is directed by | ?directorB",
]
BIRTHS = ["?directorA | was born in | ?", "?directorB | was born in | ?"]
DIRECTORS = [
    "God's Gift To Women | is directed by | Michael Curtiz",
    "Aldri Annet Enn Brak | is directed by | Edith Carlmar",
]
YEARS = ["Michael Curtiz | was born in | 1886", "Edith Carlmar | was born in | 1911"]
ASKED = [["God's Gift To Women is directed by", "Aldri Annet Enn Brak is directed by"]]


class TestRecordedRuns:
    pytestmark = oracle.needs_oracle

    def test_happy(self):
        """Same states and answer; the question is not searched, so round 2 finds chunk d."""
        trace, calls, completer = play("happy")
        assert calls == [*ASKED, ["Michael Curtiz was born in", "Edith Carlmar was born in"]]
        one, two = trace.rounds
        assert (shown(one.before.searchable), shown(one.before.fuzzy)) == (FILMS, BIRTHS)
        assert resolved(one.after) == DIRECTORS
        assert shown(one.after.searchable) == [
            "Michael Curtiz | was born in | ?",
            "Edith Carlmar | was born in | ?",
        ]
        assert one.after.fuzzy == ()
        assert resolved(two.after) == DIRECTORS + YEARS
        # With the question in the pool chunk a stands here, with 0.53.
        assert [found.chunk.id for found in two.evidence.chunks] == ["chunk-e", "chunk-d"]
        assert two.evidence.chunks[1].score == pytest.approx(3 / 35**0.5, abs=1e-6)
        assert [one.round for one in trace.final.resolved] == [1, 1, 2, 2]
        assert [one.chunk_ids for one in trace.final.resolved[:2]] == [("chunk-a",), ("chunk-b",)]
        assert (trace.answer, trace.stop_reason, trace.usage.calls) == (
            "God's Gift To Women",
            "resolved",
            4,
        )
        assert trace.chunk_ids == ("chunk-a", "chunk-b", "chunk-e", "chunk-d")
        facts = "\n".join(DIRECTORS + YEARS)
        assert facts in completer.requests[-1].messages[-1].content

    def test_n1(self):
        """One round: the open triplets stand beside the resolved ones in the last prompt."""
        trace, calls, completer = play("N1")
        assert calls == ASKED
        assert (trace.stop_reason, len(trace.rounds), trace.answer) == ("max rounds", 1, "x")
        open_ones = ["Michael Curtiz | was born in | ?", "Edith Carlmar | was born in | ?"]
        assert "\n".join(DIRECTORS + open_ones) in completer.requests[-1].messages[-1].content

    def test_exhaust_n(self):
        """The code drops what is not repeated and runs to N; the paper keeps it and sees no gain.

        `Michael Curtiz | was born in | ?` fits ?directorA and ?directorB, so it binds neither and
        is searched beside them; when it comes back a second time nothing has changed.
        """
        trace, calls, _ = play("exhaust_N")
        assert calls == [*ASKED, [*ASKED[0], "Michael Curtiz was born in"]]
        assert shown(trace.final.searchable) == [*FILMS, "Michael Curtiz | was born in | ?"]
        assert shown(trace.final.fuzzy) == BIRTHS
        assert (trace.stop_reason, trace.usage.calls, trace.answer) == ("no progress", 4, "x")

    def test_partial(self):
        """The code forgets three of four triplets and calls that resolved; the paper goes on.

        The answer for one film names its director, so that director's birth becomes searchable;
        the other film and the other birth stay open.
        """
        trace, calls, _ = play("partial")
        after = trace.rounds[0].after
        assert resolved(after) == DIRECTORS[:1]
        assert shown(after.searchable) == [FILMS[1], "Michael Curtiz | was born in | ?"]
        assert shown(after.fuzzy) == BIRTHS[1:]
        assert calls[1] == ["Aldri Annet Enn Brak is directed by", "Michael Curtiz was born in"]
        assert (len(trace.rounds), trace.stop_reason) == (2, "no progress")
        assert trace.rounds[1].after == after
        assert trace.answer == "x"

    def test_r26_unparsable(self):
        """The code reads `no` as nothing left to do; the paper's solver has failed to answer.

        It is asked once more with the fault, then the state stays and the rounds end as what they
        are.
        """
        trace, calls, completer = play("unparsable")
        assert calls == ASKED
        [one] = trace.rounds
        assert one.before == one.after
        assert shown(one.after.searchable + one.after.fuzzy) == FILMS + BIRTHS
        assert one.note.startswith("unreadable: neither a triplet")
        assert trace.stop_reason == "unreadable resolution"
        assert Counter(request.stage for request in completer.requests) == {
            "decompose": 1,
            "resolve": 2,
            "synthesize": 1,
        }
        again = completer.requests[2].messages
        assert [turn.role for turn in again[-3:]] == ["user", "assistant", "user"]
        assert again[-2].content == "no"
        assert "cannot be read: neither a triplet" in again[-1].content
        assert (trace.answer, trace.error) == ("x", None)

    def test_newly_traceable_two_q(self):
        """The code drops everything and stops as resolved; `? | born in | ?` says nothing new."""
        trace, _, _ = play("newly_traceable_two_q")
        assert shown(trace.final.searchable + trace.final.fuzzy) == FILMS + BIRTHS
        assert trace.rounds[0].note == "1 triplets fit no query triplet"
        assert (trace.stop_reason, trace.final.resolved) == ("no progress", ())

    def test_resolved_with_q(self):
        """The code takes `A | b | ?` as a fact because of its heading; a placeholder is no value.

        It fits no query triplet either, so it is dropped and counted.
        """
        trace, _, _ = play("resolved_with_q")
        assert trace.final.resolved == ()
        assert shown(trace.final.searchable + trace.final.fuzzy) == FILMS + BIRTHS
        assert trace.rounds[0].note == "1 triplets fit no query triplet"
        assert trace.stop_reason == "no progress"

    def test_no_openie(self):
        """An empty index: the code repeats the empty search N times; once says the same."""
        trace, calls, completer = play("no_openie")
        assert calls == []
        assert (trace.stop_reason, trace.usage.calls) == ("no evidence", 2)
        [one] = trace.rounds
        assert (one.note, one.before) == ("nothing was found", one.after)
        assert one.queries == tuple(ASKED[0])
        assert trace.answer == "z"
        assert not [one for one in completer.requests if one.stage == "resolve"]

    def test_fuzzy_only(self):
        """Nothing is searchable, so the question is searched, as it was written.

        The solver's triplets share no name with `?a | directed by | ?b`, so they are no answer to
        it; the code takes them over and goes on.
        """
        trace, calls, _ = play("fuzzy_only")
        assert calls == [[QUESTION]]
        assert shown(trace.final.fuzzy) == ["?a | directed by | ?b"]
        assert (trace.stop_reason, trace.usage.calls) == ("no progress", 3)
        assert trace.rounds[0].note == "4 triplets fit no query triplet"

    def test_fuzzy_only_without_the_question(self):
        """`never`: an empty group of queries is not sent to the retriever at all."""
        trace, calls, _ = play("fuzzy_only", question_query="never")
        assert calls == []
        assert (trace.stop_reason, trace.rounds[0].queries) == ("no evidence", ())

    def test_the_question_can_always_be_searched(self):
        """`always` adds the question as it is; the code adds it in lower case without `which`."""
        trace, calls, _ = play("happy", question_query="always")
        assert [call[-1] for call in calls] == [QUESTION, QUESTION]
        assert trace.stop_reason == "resolved"

    def test_secondary_parse(self):
        """One grammar reads marked lines; a number before one line only may belong to a name.

        The solver's triplets are about other things, so the state stays; the code takes them over
        and stops as resolved.
        """
        trace, calls, _ = play("secondary_parse")
        assert shown(trace.decomposition) == ["1. A | b | ?", "C | d | ?"]
        assert calls == [["1. A b", "C d"]]
        assert trace.rounds[0].note == "2 triplets fit no query triplet"
        assert trace.final == trace.rounds[0].before
        assert (trace.stop_reason, trace.usage.calls, trace.answer) == ("no progress", 3, "z")

    def test_simple_retry(self):
        """The retry is the same conversation with the fault, not another prompt."""
        trace, calls, completer = play("simple_retry")
        assert shown(trace.decomposition) == ["A | b | ?"]
        assert calls == [["A b"]]
        assert (trace.stop_reason, trace.usage.calls, trace.answer) == ("no progress", 4, "z")
        first, second = (one.messages for one in completer.requests[:2])
        assert second[: len(first)] == first
        assert second[len(first)].content == "nothing"

    def test_r29_no_triples(self):
        """As in the code the question fails, after two calls and not three, without an answer."""
        trace, calls, completer = play("no_triples", oracle.in_order)
        assert (trace.answer, trace.stop_reason, trace.rounds) == (None, "error", ())
        assert trace.error.startswith("decomposition: unreadable: no line of the form")
        assert (trace.usage.calls, calls, len(completer.requests)) == (2, [], 2)

    def test_r29_resolver_exception(self):
        """As in the code the question fails; the round and its evidence are kept."""
        trace, calls, _ = play("resolver_exception", oracle.in_order)
        assert (trace.answer, trace.stop_reason) == (None, "error")
        assert trace.error == "resolution: scripted failure"
        [one] = trace.rounds
        assert (one.before, calls) == (one.after, ASKED)
        assert trace.chunk_ids == ("chunk-a", "chunk-b")

    def test_r29_final_exception(self):
        """The code stores "Error generating answer" as the answer; here there is none."""
        trace, _, _ = play("final_exception")
        assert (trace.answer, trace.error) == (None, "synthesis: scripted failure")
        assert (trace.stop_reason, resolved(trace.final)) == ("resolved", ["A | b | C"])

    def test_all_resolved_at_start(self):
        """No round, as in the code."""
        trace, calls, _ = play("all_resolved_at_start")
        assert (calls, trace.rounds, trace.usage.calls) == ([], (), 2)
        assert (trace.answer, trace.stop_reason) == ("z", "resolved")


CHUNKS = {name: Chunk(name, name, f"text of {name}", name.upper()) for name in "abc"}
FACTS = [
    Extraction("a", (Triplet("Vertigo", "directed by", "Hitchcock"),)),
    Extraction("b", (Triplet("Hitchcock", "born in", "Leytonstone"),)),
    Extraction("c", (Triplet("Stalker", "directed by", "Tarkovsky"),)),
]
CHAIN = (
    QueryTriplet.parse("Vertigo", "directed by", "?director"),
    QueryTriplet.parse("?director", "born in", "?place"),
)
SINGLE = (QueryTriplet.parse("Stalker", "directed by", "?director"),)
KNOWN = (QueryTriplet.parse("Vertigo", "directed by", "Hitchcock"),)
VALUES = {"Vertigo | directed by | ?": "Hitchcock", "Hitchcock | born in | ?": "Leytonstone"}
VALUES["Stalker | directed by | ?"] = "Tarkovsky"


def toy_retriever():
    return OriginalRetriever(CHUNKS, FACTS, oracle.Spy())


class Batches:
    """Counts the batches of a completer: (stage, question ids) of each."""

    def __init__(self, say):
        self.model = "scripted"
        self.batches = []
        self._inner = ScriptedCompleter(say)

    async def complete(self, requests):
        [stage] = {request.stage for request in requests}
        self.batches.append((stage, [request.question_id for request in requests]))
        return await self._inner.complete(requests)


def fill(request):
    if request.stage == "synthesize":
        return f"answer {request.question_id}"
    return VALUES[request.messages[-1].content.splitlines()[-1]]


def filling(say=fill, decomposer=None, retriever=None, **options):
    completer = Batches(say)
    pipeline = T2RAG(
        retriever or toy_retriever(),
        decomposer or GoldDecomposer(),
        FillingResolver(completer),
        PromptedSynthesizer(completer),
        **({"num_chunks": 2} | options),
    )
    assert isinstance(pipeline, Pipeline)
    return pipeline, completer


def ask(pipeline, *questions):
    return asyncio.run(pipeline.answer(list(questions)))


def gold(name, triplets):
    return Question(name, f"question {name}", gold_query_triplets=triplets)


def test_questions_advance_together_and_leave_the_batch_when_done():
    pipeline, completer = filling()
    traces = ask(pipeline, gold("chain", CHAIN), gold("single", SINGLE), gold("known", KNOWN))
    assert completer.batches == [
        ("resolve", ["chain", "single"]),
        ("resolve", ["chain"]),
        ("synthesize", ["chain", "single", "known"]),
    ]
    assert [trace.question_id for trace in traces] == ["chain", "single", "known"]
    assert [len(trace.rounds) for trace in traces] == [2, 1, 0]
    assert [trace.usage.calls for trace in traces] == [3, 2, 1]
    assert {trace.stop_reason for trace in traces} == {"resolved"}
    assert [trace.answer for trace in traces] == ["answer chain", "answer single", "answer known"]
    assert resolved(traces[0].final) == [
        "Vertigo | directed by | Hitchcock",
        "Hitchcock | born in | Leytonstone",
    ]


def test_one_search_a_round_for_all_that_have_something_to_search():
    class Recording:
        groups: list = []

        def search(self, groups, num_chunks):
            self.groups.append([list(group) for group in groups])
            return toy_retriever().search(groups, num_chunks)

    retriever = Recording()
    fuzzy = (QueryTriplet.parse("?a", "?b", "?c"),)
    pipeline, _ = filling(retriever=retriever, question_query="never")
    ask(pipeline, gold("chain", CHAIN), gold("fuzzy", fuzzy), gold("single", SINGLE))
    assert retriever.groups == [
        [["Vertigo directed by"], ["Stalker directed by"]],
        [["Hitchcock born in"]],
    ]


def test_a_triplet_without_any_text_is_searched_by_the_question():
    nameless = (QueryTriplet.parse("?x", "?x", "?x"),)
    assert nameless[0].kind == "searchable"
    pipeline, _ = filling(lambda request: "not found")
    [trace] = ask(pipeline, gold("stalker", nameless))
    assert trace.rounds[0].queries == ("question stalker",)


def test_no_questions_ask_nothing():
    pipeline, completer = filling()
    assert ask(pipeline) == []
    assert completer.batches == []


def test_r03_one_failing_question_stops_no_other():
    def say(request):
        if (
            request.question_id in ("resolve", "synthesize")
            and request.stage == request.question_id
        ):
            return "__RAISE__: down"
        return fill(request)

    pipeline, completer = filling(say)
    names = ["decompose", "resolve", "synthesize", "fine"]
    found = ask(pipeline, *[gold(name, SINGLE if name != "decompose" else ()) for name in names])
    assert [trace.answer for trace in found] == [None, None, None, "answer fine"]
    assert [trace.error for trace in found] == [
        "decomposition: question decompose has no gold query triplets",
        "resolution: down",
        "synthesis: down",
        None,
    ]
    assert [trace.stop_reason for trace in found] == ["error", "error", "resolved", "resolved"]
    assert completer.batches[-1] == ("synthesize", ["synthesize", "fine"])


def test_r26_an_empty_decomposition_is_no_resolved_question():
    class Nothing:
        async def decompose(self, questions):
            return [Reply((), Usage()) for _ in questions]

    pipeline, _ = filling(decomposer=Nothing())
    [trace] = ask(pipeline, gold("x", SINGLE))
    assert (trace.answer, trace.stop_reason) == (None, "error")
    assert trace.error == "decomposition: no query triplet"


def test_r25_a_mark_in_a_name_is_no_placeholder():
    """The released code takes this triplet as traceable and never as resolved."""
    pipeline, completer = filling()
    film = QueryTriplet.parse("What's Up, Doc?", "released in", "1972")
    [trace] = ask(pipeline, gold("x", (film,)))
    assert (trace.stop_reason, trace.rounds) == ("resolved", ())
    assert [stage for stage, _ in completer.batches] == ["synthesize"]


def test_r25_a_value_with_a_mark_is_no_placeholder():
    chain = (QueryTriplet.parse("Vertigo", "directed by", "?d"), CHAIN[1].fill({"director": "X"}))
    pipeline, _ = filling(lambda request: "Who, me?", num_chunks=1)
    [trace] = ask(pipeline, gold("x", chain[:1]))
    assert resolved(trace.final) == ["Vertigo | directed by | Who, me?"]
    assert trace.stop_reason == "resolved"


def test_r17_rounds_end_when_the_calls_are_spent():
    pipeline, completer = filling(max_calls=1)
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert (trace.stop_reason, len(trace.rounds), trace.usage.calls) == ("max calls", 1, 2)
    assert trace.answer == "answer x"


def test_r17_a_question_that_is_resolved_by_its_last_call_is_resolved():
    pipeline, _ = filling(max_calls=2)
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert (trace.stop_reason, trace.usage.calls) == ("resolved", 3)


def test_r17_a_decomposition_that_spends_all_leaves_no_round():
    completer = ScriptedCompleter(["A | b | ?c", "fine"])
    [trace] = ask(method(toy_retriever(), completer, max_calls=1), Question("x", "y"))
    assert (trace.stop_reason, trace.rounds, trace.answer) == ("max calls", (), "fine")


def test_r17_rounds_end_when_the_tokens_are_spent():
    pipeline, _ = filling(max_tokens=1)
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert (trace.stop_reason, len(trace.rounds)) == ("max tokens", 1)


def test_r17_rounds_end_at_their_number():
    pipeline, _ = filling(max_rounds=1)
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert (trace.stop_reason, shown(trace.final.searchable)) == (
        "max rounds",
        ["Hitchcock | born in | ?place"],
    )


def test_r17_rounds_end_without_progress():
    pipeline, completer = filling(
        lambda request: "done" if request.stage == "synthesize" else "not found", max_rounds=9
    )
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert (trace.stop_reason, len(trace.rounds), trace.answer) == ("no progress", 1, "done")
    assert trace.final == trace.rounds[0].before


def test_r17_r29_abstention_is_no_failure():
    pipeline, _ = filling(
        lambda request: "Unknown." if request.stage == "synthesize" else fill(request)
    )
    [trace] = ask(pipeline, gold("x", SINGLE))
    assert (trace.answer, trace.error, trace.stop_reason) == (None, None, "resolved")


def test_r26_one_unreadable_slot_keeps_the_others():
    """Of two searchable triplets one is answered; the other's fault is noted, its gap stays."""
    pair = (SINGLE[0], QueryTriplet.parse("Vertigo", "directed by", "?other"))

    def say(request):
        asked = any(turn.content.endswith("Vertigo | directed by | ?") for turn in request.messages)
        return "" if asked and request.stage == "resolve" else fill(request)

    pipeline, _ = filling(say, max_rounds=1)
    [trace] = ask(pipeline, gold("x", pair))
    assert resolved(trace.final) == ["Stalker | directed by | Tarkovsky"]
    assert shown(trace.final.searchable) == ["Vertigo | directed by | ?other"]
    assert "an empty line" in trace.rounds[0].note


@pytest.mark.parametrize("max_rounds", [1, 2, 3])
def test_r17_no_more_rounds_than_allowed(max_rounds):
    pipeline, _ = filling(max_rounds=max_rounds)
    [trace] = ask(pipeline, gold("x", CHAIN))
    assert len(trace.rounds) == min(max_rounds, 2)
