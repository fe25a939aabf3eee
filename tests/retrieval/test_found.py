from triax.indexing.tables import TripletTables
from triax.indexing.walk import Walk
from triax.records.evidence import Evidence, ScoredChunk
from triax.retrieval.found import chunk_evidence, triplet_evidence


def test_rows_become_records(propositions, chunks):
    tables = TripletTables.of(chunks, propositions)
    row = [p.text for p in tables.all_propositions()].index("Charles Babbage was born in London")
    found = triplet_evidence(tables, Walk((row,), (0.5,), (1,), (0.5,)))
    assert found.chunks == (ScoredChunk(chunks[1], 0.5),)
    assert found.hits[0].chunk_ids == ("babbage",)
    assert found.hits[0].proposition.chunk_ids == ("ada", "babbage")
    assert chunk_evidence(tables, Walk((1,), (0.5,), (1,), (0.5,))) == Evidence(found.chunks)
    assert triplet_evidence(tables, Walk()) == Evidence()
