import pytest

from triax.extraction.verbalize import propositions
from triax.indexing.hashing import HashingEncoder
from triax.indexing.updates import build_index
from triax.llm.scripted import RAISE, ScriptedCompleter
from triax.records.documents import Chunk
from triax.records.evidence import Evidence, ScoredChunk
from triax.records.triplets import Extraction, Triplet
from triax.retrieval.proximal import SHOTS, FoundProximal, PromptedProximal, ProximalReader

CHUNKS = [
    Chunk("a", "a", "Vertigo is a film by Hitchcock.", "Vertigo"),
    Chunk("b", "b", "Hitchcock was born in London.", "Hitchcock"),
    Chunk("c", "c", "Nothing here.", "Blank"),
]
FACTS = [
    Extraction(
        "a", (Triplet("Vertigo", "directed by", "Hitchcock"), Triplet("Vertigo", "is", "film"))
    ),
    Extraction("b", (Triplet("Hitchcock", "born in", "London"),)),
]


def evidence(*chunks):
    return Evidence(tuple(ScoredChunk(chunk, 1.0) for chunk in chunks))


def test_the_prompt_shows_passages_cut_and_the_question():
    model = ScriptedCompleter(["Vertigo | directed by | Hitchcock"])
    reader = PromptedProximal(model, most=3, max_words_per_chunk=4)
    [found] = reader.read([["Who directed Vertigo?"]], [evidence(*CHUNKS[:2])])
    assert found.texts == ("Vertigo directed by Hitchcock",) and found.usage.calls == 1
    [request] = model.requests
    assert request.messages[-1].content == (
        "Passages:\nVertigo: Vertigo is a film\nHitchcock: Hitchcock was born in\n\n"
        "Question: Who directed Vertigo?"
    )
    assert request.messages[0].content == (
        "You are given passages and a question. Write down what the passages say that helps to "
        "answer it, as triplets `subject | predicate | object`, one a line, at most 3. State only "
        "what a passage states. If no passage helps, write: none"
    )
    assert request.stage == "proximal" and len(request.messages) == 2 + 2 * len(SHOTS)


@pytest.mark.parametrize(
    ("answers", "texts", "calls"),
    [
        (["none"], (), 1),
        (["a | b | c\nd | e | f\ng | h | i"], ("a b c", "d e f"), 1),
        (["I cannot say", "a | b | c"], ("a b c",), 2),
        (["I cannot say", "still not"], (), 2),
        ([f"{RAISE} down"], (), 1),
    ],
)
def test_r26_what_cannot_be_read_is_asked_again_and_then_is_no_triplet(answers, texts, calls):
    reader = PromptedProximal(ScriptedCompleter(answers), most=2)
    [found] = reader.read([["q"]], [evidence(CHUNKS[0])])
    assert (found.texts, found.usage.calls) == (texts, calls)


def test_examples_are_in_the_asked_form():
    for shot, wanted in zip(SHOTS, (1, 0)):
        [found] = PromptedProximal(ScriptedCompleter([shot[1]])).read([["q"]], [evidence(*CHUNKS)])
        assert len(found.texts) == wanted


def test_r09_without_chunks_nobody_is_asked():
    model = ScriptedCompleter([])
    found = PromptedProximal(model).read([["q"], []], [Evidence(), evidence(CHUNKS[0])])
    assert [one.texts for one in found] == [(), ()] and model.requests == []


def test_without_a_model_the_nearest_triplets_of_the_chunks_are_taken(tmp_path):
    """The hashing encoder counts words: the question shares "Vertigo" and "directed" with one."""
    encoder = HashingEncoder(256)
    index = build_index(CHUNKS, propositions(FACTS), encoder, tmp_path / "index", extractor="t")
    reader = FoundProximal(index, encoder, most=1)
    assert isinstance(reader, ProximalReader)
    question = ["Vertigo directed by whom?"]
    found = reader.read(
        [question, question, question, []],
        [evidence(*CHUNKS), evidence(CHUNKS[1]), evidence(CHUNKS[2]), evidence(CHUNKS[0])],
    )
    assert found[0].texts == ("Vertigo directed by Hitchcock",)
    # Only triplets of the given chunks; one that shares no word scores 0 and is none.
    assert [one.texts for one in found[1:]] == [(), (), ()]
    assert all(one.usage.calls == 0 for one in found)
