import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.extraction.verbalize import proposition_id, propositions, sentence
from triax.records.triplets import Extraction, Triplet

DATA = Path(os.environ.get("TRIAX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
NAMES = st.sampled_from(["A", "B", "é"])
EXTRACTIONS = st.lists(
    st.builds(
        Extraction,
        st.sampled_from(["c1", "c2", "c3"]),
        st.lists(st.builds(Triplet, NAMES, NAMES, NAMES), max_size=4).map(tuple),
    ),
    max_size=5,
)


def test_sentence() -> None:
    assert sentence(Triplet("Paris", "capital of", "France", 0.5)) == "Paris capital of France"


def test_id_is_the_hash_of_the_fields() -> None:
    expected = hashlib.sha256(b'["\\u00c9mile", "is", "X"]').hexdigest()[:16]
    assert proposition_id(Triplet("Émile", "is", "X")) == expected
    assert proposition_id(Triplet("Émile", "is", "X", 0.3)) == expected
    # The sentence is the same, the triplet is not.
    assert proposition_id(Triplet("Émile is", "is", "X")) != proposition_id(
        Triplet("Émile", "is is", "X")
    )


def test_r27_every_source_is_kept_in_order() -> None:
    a, b = Triplet("A", "is", "B"), Triplet("B", "is", "C")
    found = propositions(
        [
            Extraction("c2", (a, b, a)),
            Extraction("c1", (), status="failed"),
            Extraction("c1", (Triplet("A", "is", "B", 0.5),)),
            Extraction("c2", (a,)),
        ]
    )
    assert [(p.text, p.chunk_ids) for p in found] == [("A is B", ("c2", "c1")), ("B is C", ("c2",))]
    assert [p.triplet.confidence for p in found] == [0.5, None]


@given(EXTRACTIONS.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_r18_r27_order_does_not_change_the_set(
    orders: tuple[list[Extraction], list[Extraction]],
) -> None:
    extractions, shuffled = orders
    first, second = propositions(extractions), propositions(shuffled)
    assert {(p.id, p.triplet, frozenset(p.chunk_ids)) for p in first} == {
        (p.id, p.triplet, frozenset(p.chunk_ids)) for p in second
    }
    assert len({p.id for p in first}) == len(first)
    pairs = {(t.fields, e.chunk_id) for e in extractions for t in e.triplets}
    assert {(p.triplet.fields, c) for p in first for c in p.chunk_ids} == pairs


@pytest.mark.data
def test_r27_figures_of_the_medical_corpus() -> None:
    path = DATA / "t2rag_medical" / "openie_gpt4omini.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    found = propositions(
        Extraction(row["id"], tuple(Triplet(*fields) for fields in row["triples"])) for row in rows
    )
    # Counted on the released file: 5,256 triplets, 4,957 texts, 221 of them in several chunks.
    assert len({p.text for p in found}) == 4957
    chunks: dict[str, set[str]] = {}
    for proposition in found:
        chunks.setdefault(proposition.text, set()).update(proposition.chunk_ids)
    assert sum(len(ids) > 1 for ids in chunks.values()) == 221
