import json

from triax.records.documents import Chunk
from triax.records.evidence import Evidence, Hit, Note, ScoredChunk, ScoredNote
from triax.records.query_triplets import QueryTriplet
from triax.records.state import Resolved, State
from triax.records.trace_json import trace_to_json, usage_from_json, usage_to_json
from triax.records.traces import Round, Trace
from triax.records.triplets import Proposition, Triplet
from triax.records.usage import Usage

OPEN = QueryTriplet.parse("Vertigo", "directed by", "?director")
FUZZY = QueryTriplet.parse("?director", "born in", "?")
KNOWN = Resolved(Triplet("Vertigo", "directed by", "Hitchcock", 0.5), ("a", "b"), 1)
EVIDENCE = Evidence(
    (ScoredChunk(Chunk("a", "d", "a long text", "Vertigo"), 0.12345678),),
    (Hit(Proposition("p", KNOWN.triplet, "Vertigo by Hitchcock", ("a", "b")), 0.87654321, ("a",)),),
)
ROUND = Round(
    1,
    ("Vertigo directed by",),
    EVIDENCE,
    State((), (OPEN,), (FUZZY,)),
    State((KNOWN,)),
    "n",
)
TRACE = Trace(
    "q",
    "Who?",
    "t2rag",
    None,
    "max rounds",
    "synthesis: down",
    (OPEN, FUZZY),
    (ROUND,),
    State((KNOWN,), (), (FUZZY,)),
    ("a",),
    Usage(3, 1, 100, 20, 1.23456),
    2.34567,
)


def test_a_whole_trace():
    assert trace_to_json(TRACE) == {
        "question_id": "q",
        "question": "Who?",
        "pipeline": "t2rag",
        "answer": None,
        "stop_reason": "max rounds",
        "error": "synthesis: down",
        "decomposition": [["Vertigo", "directed by", "?director"], ["?director", "born in", "?"]],
        "rounds": [
            {
                "number": 1,
                "queries": ["Vertigo directed by"],
                "propositions": [
                    {"text": "Vertigo by Hitchcock", "score": 0.876543, "chunk_ids": ["a"]}
                ],
                "chunks": [{"id": "a", "title": "Vertigo", "score": 0.123457}],
                "before": {
                    "resolved": [],
                    "searchable": [["Vertigo", "directed by", "?director"]],
                    "fuzzy": [["?director", "born in", "?"]],
                },
                "after": {
                    "resolved": [
                        {
                            "triplet": ["Vertigo", "directed by", "Hitchcock"],
                            "confidence": 0.5,
                            "chunk_ids": ["a", "b"],
                            "round": 1,
                        }
                    ],
                    "searchable": [],
                    "fuzzy": [],
                },
                "note": "n",
            }
        ],
        "final": {
            "resolved": [
                {
                    "triplet": ["Vertigo", "directed by", "Hitchcock"],
                    "confidence": 0.5,
                    "chunk_ids": ["a", "b"],
                    "round": 1,
                }
            ],
            "searchable": [],
            "fuzzy": [["?director", "born in", "?"]],
        },
        "chunk_ids": ["a"],
        "usage": {
            "calls": 3,
            "cached_calls": 1,
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "llm_seconds": 1.235,
        },
        "seconds": 2.346,
    }


def test_it_is_json_without_the_texts_of_chunks():
    text = json.dumps(trace_to_json(TRACE))
    assert json.loads(text) == trace_to_json(TRACE)
    assert "a long text" not in text


def test_a_trace_without_rounds():
    shown = trace_to_json(Trace("q", "Who?", "closed_book", "x"))
    assert (shown["rounds"], shown["final"], shown["error"]) == ([], None, None)


def test_usage_there_and_back():
    usage = Usage(3, 1, 100, 20, 1.5)
    assert usage_from_json(usage_to_json(usage)) == usage
    assert usage + Usage(1, 1, 1, 1, 0.5) == Usage(4, 2, 101, 21, 2.0)


def test_notes_and_context_are_there_where_they_are_used():
    note = ScoredNote(Note("n", "a summary", "Films", ("a",)), 0.12345678)
    one = Round(1, (), Evidence(notes=(note,)), State(), State())
    found = trace_to_json(Trace("q", "Who?", "raptor", "x", rounds=(one,), context=("a summary",)))
    assert found["context"] == ["a summary"]
    assert found["rounds"][0]["notes"] == [
        {"id": "n", "text": "a summary", "title": "Films", "chunk_ids": ["a"], "score": 0.123457}
    ]
    assert "context" not in trace_to_json(TRACE)
