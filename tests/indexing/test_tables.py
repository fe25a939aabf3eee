import pytest

from triax.indexing.tables import Sources, TripletTables, merge_propositions
from triax.records.documents import Chunk
from triax.records.triplets import Proposition, Triplet

ALL = ["ada", "babbage", "curie", "london", "empty"]


def test_records_come_back_as_they_went_in(toy):
    chunks, propositions = toy(ALL)
    tables = TripletTables.of(chunks, propositions)
    assert tables.all_chunks() == sorted(chunks, key=lambda chunk: chunk.id)
    assert tables.all_propositions() == merge_propositions(propositions)
    assert [tables.chunk(row) for row in range(5)] == tables.all_chunks()
    found = tables.all_propositions()
    assert [tables.proposition(row) for row in range(len(found))] == found


def test_r27_a_repeated_proposition_keeps_all_its_sources(toy):
    tables = TripletTables.of(*toy(ALL))
    repeated = [p for p in tables.all_propositions() if p.text == "Ada born in London"]
    assert [p.chunk_ids for p in repeated] == [("ada-0", "london-0")]
    row = tables.all_propositions().index(repeated[0])
    assert [tables.chunk_id(int(c)) for c in tables.sources.of(row)] == ["ada-0", "london-0"]


def test_r18_the_order_of_arrival_does_not_matter(toy):
    chunks, propositions = toy(ALL)
    one = TripletTables.of(chunks, propositions)
    other = TripletTables.of(chunks[::-1], propositions[::-1])
    assert one.chunks.equals(other.chunks) and one.propositions.equals(other.propositions)
    assert one.digests() == other.digests()


def test_confidence_may_be_unknown_and_the_highest_stands():
    def proposition(confidence):
        return Proposition("p", Triplet("a", "b", "c", confidence), "a b c", ("c",))

    def merged(*confidences):
        return merge_propositions(map(proposition, confidences))[0].triplet.confidence

    assert (merged(None), merged(None, 0.5), merged(0.25, 0.5)) == (None, 0.5, 0.5)


def test_one_id_with_two_contents_is_refused():
    chunks = [Chunk("c", "d", "one"), Chunk("c", "d", "two")]
    with pytest.raises(ValueError, match="chunk id 'c' stands for two contents, 'one' and 'two'"):
        TripletTables.of(chunks, [])
    propositions = [Proposition("p", Triplet("a", "b", x), f"a b {x}", ("c",)) for x in "cd"]
    with pytest.raises(ValueError, match="'p' stands for 'a b c' and 'a b d'"):
        TripletTables.of(chunks[:1], propositions)


@pytest.mark.parametrize("sources", [("other",), ()])
def test_a_proposition_without_a_known_source_is_refused(sources):
    proposition = Proposition("p", Triplet("a", "b", "c"), "a b c", sources)
    with pytest.raises(ValueError, match=r"names chunks .*, expected some of the 1 given"):
        TripletTables.of([Chunk("c", "d", "one")], [proposition])


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(ValueError, match="cannot be written as UTF-8"):
        TripletTables.of([Chunk("c", "d", "half \ud800")], [])


def test_r09_empty_tables_and_identity():
    tables = TripletTables.of([], [])
    assert tables.all_chunks() == [] and tables.all_propositions() == []
    assert tables.sources.offsets.tolist() == [0]
    assert [Sources.identity(3).of(row).tolist() for row in range(3)] == [[0], [1], [2]]
