"""Tests for triax.extraction.prompted."""

import asyncio
import json

from triax.extraction.prompted import SHOT_TRIPLETS, PromptedExtractor
from triax.llm.scripted import ScriptedCompleter
from triax.records.completions import Completion, Grammar
from triax.records.documents import Chunk

CHUNK = Chunk("c1", "c1", "He was born in Łódź in 1941 and directed Blind Chance.", "K. Kieślowski")
OTHER = Chunk("c2", "c2", "The Vistula flows through Warsaw.", "Vistula")


def extract(answers, chunks=(CHUNK,), **options):
    completer = ScriptedCompleter(answers)
    extractor = PromptedExtractor(completer, **options)
    return asyncio.run(extractor.extract(list(chunks))), completer


def test_openie_conditions_the_triplets_on_the_entities():
    entities = json.dumps({"entities": ["K. Kieślowski", "Łódź"]}, ensure_ascii=False)
    triplets = json.dumps({"triplets": [["K. Kieślowski", "born in", "Łódź"]]}, ensure_ascii=False)
    [found], completer = extract([entities, triplets])
    assert [one.fields for one in found.triplets] == [("K. Kieślowski", "born in", "Łódź")]
    assert (found.status, found.entities) == ("ok", ("K. Kieślowski", "Łódź"))
    asked = [request for request in completer.requests]
    assert [request.stage for request in asked] == ["entities", "extract"]
    assert "Entities: K. Kieślowski; Łódź" in asked[1].messages[-1].content
    assert asked[1].grammar.kind == "json_schema"


def test_all_chunks_of_a_stage_go_in_one_call():
    def answer(request):
        return (
            '{"entities": []}' if request.stage == "entities" else '{"triplets": [["a","b","c"]]}'
        )

    class Counting(ScriptedCompleter):
        calls = 0

        async def complete(self, requests):
            Counting.calls += 1
            return await super().complete(requests)

    extractor = PromptedExtractor(Counting(answer))
    found = asyncio.run(extractor.extract([CHUNK, OTHER]))
    assert Counting.calls == 2
    assert [one.chunk_id for one in found] == ["c1", "c2"]


def test_r03_one_failed_chunk_is_asked_again_alone_and_costs_no_other():
    def answer(request):
        return "__RAISE__" if "Vistula" in request.messages[-1].content else "K. | born in | Łódź"

    (good, bad), completer = extract(answer, (CHUNK, OTHER), style="lines", is_faithful=False)
    assert good.status == "ok"
    assert (bad.status, bad.triplets) == ("failed", ())
    assert bad.reason
    assert [request.question_id for request in completer.requests] == ["c1", "c2", "c2"]


def test_r02_an_answer_without_triplets_is_not_ok():
    [found], _ = extract(["I cannot help with that."], style="lines")
    assert found.status == "failed" and "no triplet" in found.reason
    [found], _ = extract(["none"], style="lines")
    assert found.status == "empty"


def test_r02_a_cut_answer_is_partial_and_keeps_its_whole_lines():
    class Cut(ScriptedCompleter):
        async def complete(self, requests):
            text = "K. Kieślowski | born in | Łódź\nK. Kieślowski | directed | Blind Ch"
            return [Completion(text, "length") for _ in requests]

    extractor = PromptedExtractor(Cut([]), style="lines")
    [found] = asyncio.run(extractor.extract([CHUNK]))
    assert [one.object for one in found.triplets] == ["Łódź"]
    assert found.status == "partial"


def test_what_the_example_leaked_is_dropped_and_counted():
    leaked = " | ".join(SHOT_TRIPLETS[1])
    [found], _ = extract([f"{leaked}\nK. Kieślowski | directed | Blind Chance"], style="lines")
    assert [one.object for one in found.triplets] == ["Blind Chance"]
    assert found.status == "partial" and "1 triplets share no word" in found.reason


def test_unreadable_entities_do_not_lose_the_triplets():
    def answer(request):
        return "no idea" if request.stage == "entities" else '{"triplets": [["a", "b", "c"]]}'

    [found], _ = extract(answer)
    assert len(found.triplets) == 1
    assert found.status == "partial" and "no list of entities" in found.reason


def test_a_grammar_may_depend_on_the_chunk():
    grammars = {"c1": Grammar("regex", "a"), "c2": Grammar("regex", "b")}
    _, completer = extract(
        lambda request: "a | b | c",
        (CHUNK, OTHER),
        style="lines",
        grammar=lambda chunk: grammars[chunk.id],
    )
    assert [request.grammar for request in completer.requests] == list(grammars.values())


def test_r08_a_long_passage_is_cut_and_said_so():
    [found], completer = extract(["K. Kieślowski | born in | Łódź"], style="lines", max_words=6)
    assert completer.requests[0].messages[-1].content == "Passage: K. Kieślowski He was born in"
    assert found.status == "partial" and "cut after 6 words" in found.reason


def test_r28_whatever_decides_the_result_is_in_the_config():
    completer = ScriptedCompleter([])
    base = PromptedExtractor(completer, style="lines").config
    others = [
        PromptedExtractor(completer).config,
        PromptedExtractor(completer, style="lines", max_tokens=7).config,
        PromptedExtractor(completer, style="lines", max_words=7).config,
        PromptedExtractor(completer, style="lines", grammar=Grammar("regex", "a")).config,
        PromptedExtractor(completer, style="lines", is_faithful=False).config,
        PromptedExtractor(ScriptedCompleter([], model="other"), style="lines").config,
    ]
    texts = {json.dumps(one, sort_keys=True) for one in [base, *others]}
    assert len(texts) == 7
    assert "Varnhagen" in json.dumps(base)


def test_when_nothing_answers_no_chunk_is_asked_again():
    found, completer = extract(lambda request: "__RAISE__", (CHUNK, OTHER), style="lines")
    assert [one.status for one in found] == ["failed", "failed"]
    assert len(completer.requests) == 2
