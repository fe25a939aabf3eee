"""Tests of triax.corpora.hub, on rows of the hub's field layouts."""

import json

import pytest

from triax.corpora import hub
from triax.records.documents import Document
from triax.records.query_triplets import QueryTriplet
from triax.records.triplets import Triplet

HOTPOT = {
    "id": "5a8b57f25542995d1e6f1371",
    "question": "Were Scott Derrickson and Ed Wood of the same nationality?",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": {"title": ["Scott Derrickson", "Ed Wood", "Ed Wood"], "sent_id": [0, 0, 1]},
    "context": {
        "title": ["Ed Wood (film)", "Scott Derrickson", "Ed Wood"],
        "sentences": [
            ["Ed Wood is a film.", " It is from 1994."],
            ["Scott Derrickson is an American director."],
            ["Edward Wood was an American filmmaker."],
        ],
    },
}
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "A", "paragraph_text": "about a", "is_supporting": True},
        {"idx": 1, "title": "B", "paragraph_text": "about b", "is_supporting": False},
        {"idx": 2, "title": "A", "paragraph_text": "more of a", "is_supporting": True},
    ],
    "question": "Of which country is the author of Brand a citizen?",
    "question_decomposition": [
        {"id": 1, "question": "Brand >> author", "answer": "Ibsen", "paragraph_support_idx": 2},
        {"id": 2, "question": "#1 >> country", "answer": "Norway", "paragraph_support_idx": 0},
    ],
    "answer": "Norway",
    "answer_aliases": ["NO"],
    "answerable": True,
}
POPQA = {
    "id": 4222362,
    "subj": "George Rankin",
    "prop": "occupation",
    "obj": "politician",
    "question": "What is George Rankin's occupation?",
    "possible_answers": '["politician", "political leader", "pol"]',
}


def test_hotpotqa_row():
    question, documents = hub.read_hotpotqa(HOTPOT)
    by_title = {one.title: one for one in documents}
    assert by_title["Ed Wood (film)"].text == "Ed Wood is a film. It is from 1994."
    assert question.gold_document_ids == (
        by_title["Scott Derrickson"].id,
        by_title["Ed Wood"].id,
    )
    assert (question.answers, question.kind) == (("yes",), "comparison")
    assert len({one.id for one in documents}) == 3


def test_r19_fullwiki_row_that_lacks_a_gold_paragraph():
    context = {"title": ["Ed Wood"], "sentences": [["Edward Wood was a filmmaker."]]}
    question, documents = hub.read_hotpotqa(HOTPOT | {"context": context})
    assert question.gold_document_ids == (documents[0].id,)
    assert question.unmatched_gold == ("Scott Derrickson",)


def test_hotpotqa_test_row_without_answer():
    row = HOTPOT | {"answer": None, "supporting_facts": {"title": [], "sent_id": []}}
    question, _ = hub.read_hotpotqa(row)
    assert question.answers == question.gold_document_ids == question.unmatched_gold == ()


@pytest.mark.parametrize(
    "evidences",
    [
        [["Ed Wood", "country", "America"], ["broken", "row"]],
        {"fact": ["Ed Wood"], "relation": ["country"], "entity": ["America"]},
    ],
)
def test_2wikimultihopqa_row(evidences):
    context = {"title": ["Ed Wood"], "sentences": [["He was a director.", "He died in 1978."]]}
    question, documents = hub.read_2wikimultihopqa(
        HOTPOT | {"context": context, "evidences": evidences}
    )
    assert documents[0].text == "He was a director. He died in 1978."
    assert question.gold_triplets == (Triplet("Ed Wood", "country", "America"),)


def test_musique_row():
    question, documents = hub.read_musique(MUSIQUE)
    assert question.gold_document_ids == (documents[0].id, documents[2].id)
    assert (question.kind, question.answers) == ("2hop", ("Norway", "NO"))
    assert [step.document_id for step in question.steps] == [documents[2].id, documents[0].id]
    assert question.gold_query_triplets == (
        QueryTriplet.parse("Brand", "author", "?1"),
        QueryTriplet.parse("?1", "country", "?2"),
    )
    steps = [{"question": "Who wrote Brand?", "answer": "x", "paragraph_support_idx": None}]
    question, _ = hub.read_musique(MUSIQUE | {"question_decomposition": steps})
    assert question.gold_query_triplets == () and question.steps[0].document_id is None


def test_popqa_row():
    question, documents = hub.read_popqa(POPQA)
    assert documents == () and question.id == "4222362"
    assert question.answers == ("politician", "political leader", "pol")
    assert question.gold_triplets == (Triplet("George Rankin", "occupation", "politician"),)
    assert str(question.gold_query_triplets[0]) == "George Rankin | occupation | ?1"


def test_graphrag_bench_rows_and_texts():
    row = {
        "id": "Novel-1",
        "source": "Novel-30752",
        "question": "Who?",
        "answer": "She.",
        "question_type": "Fact Retrieval",
        "evidence": "She did.",
    }
    question, _ = hub.read_graphrag_bench(row)
    assert (question.kind, question.gold_document_ids) == ("Fact Retrieval", ("Novel-30752",))
    text = {"corpus_name": "Novel-30752", "context": "Once."}
    expected = [Document("Novel-30752", "Once.", "Novel-30752")]
    assert list(hub.read_graphrag_bench_corpus(text)) == expected
    assert list(hub.read_graphrag_bench_corpus([text])) == expected


def test_load_pools_the_paragraphs_of_all_rows(monkeypatch):
    calls = []

    def load_dataset(*arguments, **options):
        calls.append((arguments, options))
        return [HOTPOT, HOTPOT | {"id": "other", "question": "Else?"}]

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    corpus = hub.load_hub("hotpotqa", revision="abc", limit=1)
    assert calls == [
        (("hotpotqa/hotpot_qa", "distractor"), {"split": "validation", "revision": "abc"})
    ]
    assert len(corpus.documents) == 3 and len(corpus.questions) == 1
    assert corpus.name == "hotpotqa" and not corpus.questions[0].unmatched_gold


def test_load_reads_the_corpus_file(monkeypatch, tmp_path):
    path = tmp_path / "medical.json"
    path.write_text(json.dumps({"corpus_name": "Medical", "context": "Text."}), encoding="utf-8")
    row = {"id": "m1", "source": "Medical", "question": "What?", "answer": "x"}
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: [row])
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: str(path))
    corpus = hub.load_hub("graphrag_bench_medical")
    assert [one.id for one in corpus.documents] == ["Medical"]
    assert corpus.questions[0].gold_document_ids == ("Medical",)


def test_r16_an_unreachable_hub_names_the_local_ways(monkeypatch):
    def load_dataset(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(ConnectionError, match="no route.*corpus=folder.*corpus=demo"):
        hub.load_hub("popqa")
    with pytest.raises(ValueError, match="no source 'nq'; there are .*popqa"):
        hub.load_hub("nq")
