import asyncio
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.extraction.recorded import (
    RecordedExtractor,
    extraction_from_json,
    extraction_to_json,
    read_extractions,
)
from triax.records.documents import Chunk
from triax.records.files import write_jsonl
from triax.records.triplets import Extraction, Triplet
from triax.records.verbs import Extractor

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
EXTRACTION = st.builds(
    Extraction,
    TEXT,
    st.lists(st.builds(Triplet, TEXT, TEXT, TEXT, st.none() | st.floats(0, 1)), max_size=3).map(
        tuple
    ),
    st.lists(TEXT, max_size=2).map(tuple),
    st.sampled_from(["ok", "partial", "empty", "failed"]),
    st.text(max_size=5),
)


def extract(extractor: RecordedExtractor, *chunks: Chunk) -> list[Extraction]:
    return asyncio.run(extractor.extract(chunks))


@given(EXTRACTION)
def test_r27_rows_keep_every_field_as_it_was(extraction: Extraction) -> None:
    row = json.loads(json.dumps(extraction_to_json(extraction)))
    assert extraction_from_json(row) == extraction


def test_rows_of_another_form_are_refused() -> None:
    row = extraction_to_json(Extraction("c", (Triplet("A", "b", "C"),)))
    for bad in ({**row, "triplets": [["A"]]}, {**row, "triplets": 3}, {"chunk_id": "c"}):
        with pytest.raises(ValueError, match="expected chunk_id, status"):
            extraction_from_json(bad)


def test_our_own_file_is_read_without_bending(tmp_path: Path) -> None:
    # Fields that the grammar of model output would drop, join or take for a header.
    kept = Extraction(
        "c", (Triplet("A ", "—", "..."), Triplet("subject", "predicate", "object", 0.5)), ("E",)
    )
    write_jsonl(tmp_path / "triplets.jsonl", [extraction_to_json(kept)])
    assert list(read_extractions(tmp_path / "triplets.jsonl")) == [kept]


def test_r01_openie_rows(tmp_path: Path) -> None:
    rows = [
        {
            "id": "p1",
            "title": "Paris",
            "text": "Paris is  a city.",
            "entities": ["Paris", " Paris", ""],
            "triples": [["Paris", "is", "a city"], ["Paris", "is"], ["A", "is", "of", "B"]],
        },
        {"passage_id": "p2", "entities": [], "triplets": []},
    ]
    path = tmp_path / "openie.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    first, second = read_extractions(path)
    assert first.triplets == (Triplet("Paris", "is", "a city"), Triplet("A", "is of", "B"))
    assert (first.status, first.entities) == ("partial", ("Paris",))
    assert "1 malformed" in first.reason
    assert (second.chunk_id, second.status) == ("p2", "empty")


def test_file_of_the_original(tmp_path: Path) -> None:
    path = tmp_path / "openie_results_ner.json"
    doc = {
        "idx": "chunk-0123",
        "passage": "Paris\nParis is a city.",
        "extracted_entities": ["Paris"],
        "extracted_triples": [["Paris", "is", "a city"]],
    }
    path.write_text(json.dumps({"docs": [doc], "avg_ent_chars": 5.0}), encoding="utf-8")
    extractor = RecordedExtractor(path)
    (found,) = extract(extractor, Chunk("mine", "mine", "Paris is a city.", "Paris"))
    assert found == Extraction("mine", (Triplet("Paris", "is", "a city"),), ("Paris",))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[]", 'has no list "docs"'),
        ("a.jsonl", '{"x": 1}', "record 1: no extraction in an object with the fields"),
        ("a.jsonl", '{"id": "a", "triples": null}', "expected chunk_id and triplets"),
    ],
)
def test_files_of_no_known_form(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        list(read_extractions(tmp_path / name))


def test_chunks_find_their_record_by_id_or_by_text(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "title": "T", "text": "One.", "entities": [], "triples": [["1", "is", "a"]]},
        {"id": "b", "title": "T", "text": "Two.", "entities": [], "triples": [["2", "is", "b"]]},
        {"id": "x", "title": "T", "text": "Six.", "entities": [], "triples": [["6", "is", "x"]]},
    ]
    write_jsonl(tmp_path / "openie.jsonl", rows)
    extractor = RecordedExtractor(tmp_path / "openie.jsonl")
    assert isinstance(extractor, Extractor)
    found = extract(
        extractor,
        Chunk("a", "a", "One. ", "T"),
        Chunk("other", "other", "TWO.", "t"),
        Chunk("b", "b", "One.", "T"),  # the id of one record, the text of another
        Chunk("a", "a", "changed", "T"),  # a record's id, but no record's text
        Chunk("none", "none", "One.", ""),
    )
    subjects = [[triplet.subject for triplet in one.triplets] for one in found]
    assert subjects == [["1"], ["2"], ["1"], [], []]
    assert [one.chunk_id for one in found] == ["a", "other", "b", "a", "none"]
    assert {(one.status, one.reason) for one in found[3:]} == {("failed", "not recorded")}
    assert extractor.num_unmatched == 1


def test_a_mapping_is_taken_by_its_keys() -> None:
    extractor = RecordedExtractor({"k": Extraction("c", (Triplet("A", "b", "C"),))})
    found, missing = extract(extractor, Chunk("k", "k", "any"), Chunk("c", "c", "any"))
    assert (found.chunk_id, len(found.triplets)) == ("k", 1)
    assert missing.status == "failed"


def test_r28_another_recording_has_another_config() -> None:
    first = {"k": Extraction("k", (Triplet("A", "b", "C"),))}
    second = {"k": Extraction("k", (Triplet("A", "b", "D"),))}
    assert RecordedExtractor(first).config == RecordedExtractor(dict(first)).config
    assert RecordedExtractor(first).config != RecordedExtractor(second).config


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "num_chunks", "num_empty"),
    [("musique/openie_gpt35", 1890, 2), ("t2rag_medical/openie_gpt4omini", 268, 0)],
)
def test_recorded_corpora_are_matched_by_id_and_by_text(
    name: str, num_chunks: int, num_empty: int
) -> None:
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    extractor = RecordedExtractor(path)
    by_id = extract(extractor, *(Chunk(r["id"], r["id"], r["text"], r["title"]) for r in rows))
    assert len(by_id) == num_chunks
    assert sum(one.status == "empty" for one in by_id) == num_empty
    assert not any(one.status == "failed" for one in by_id)
    assert extractor.num_unmatched == 0
    by_text = extract(
        extractor, *(Chunk(str(n), str(n), r["text"], r["title"]) for n, r in enumerate(rows))
    )
    assert not any(one.status == "failed" for one in by_text)
