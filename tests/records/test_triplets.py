from triax.records.triplets import Extraction, Proposition, Triplet


def test_the_fields_leave_the_confidence_out():
    assert Triplet("A", "b", "C", 0.5).fields == Triplet("A", "b", "C").fields == ("A", "b", "C")
    assert Triplet("A", "b", "C", 0.5) != Triplet("A", "b", "C")


def test_triplets_can_be_keys():
    assert len({Triplet("A", "b", "C"), Triplet("A", "b", "C"), Triplet("A", "b", "D")}) == 2


def test_an_extraction_is_whole_unless_it_says_otherwise():
    found = Extraction("c", ())
    assert (found.status, found.reason, found.entities) == ("ok", "", ())


def test_r27_a_proposition_keeps_all_its_chunks():
    found = Proposition("p", Triplet("A", "b", "C"), "A b C", ("c1", "c2"))
    assert found.chunk_ids == ("c1", "c2")
