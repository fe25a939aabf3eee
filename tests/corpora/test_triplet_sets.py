import pytest

from triax.corpora.triplet_sets import read_gold
from triax.records.files import write_jsonl


def test_all_names_and_further_arguments(tmp_path):
    path = tmp_path / "dev.jsonl"
    rows = [
        {
            "id": "b",
            "title": None,
            "text": "He won it in 1903 .",
            "triples": [
                {"s": "He", "p": "won", "o": "it", "args": ["in 1903"]},
                {"s": "He", "p": "slept", "o": "", "args": []},
            ],
        },
        {
            "id": "a",
            "title": "Marie Curie",
            "text": "Curie was born in Warsaw.",
            "triples": [{"s": "Marie Curie", "p": "place of birth", "o": "Warsaw"}],
            "entities": [{"mentions": ["Marie Curie", "Curie"]}, {"mentions": ["Warsaw"]}],
        },
    ]
    write_jsonl(path, rows)
    first, second = read_gold(path)
    assert (first.chunk.id, first.chunk.title, second.chunk.title) == ("a", "Marie Curie", "")
    assert first.triplets == (
        (("Marie Curie", "place of birth", "Warsaw"), ("Curie", "place of birth", "Warsaw")),
    )
    assert second.triplets == ((("He", "won", "it in 1903"),),)
    assert [one.chunk.id for one in read_gold(path, limit=1)] == ["a"]


def test_a_row_without_triplets_is_refused(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", [{"id": "a", "title": "", "text": "x"}])
    with pytest.raises(ValueError, match="no field 'triples'"):
        read_gold(tmp_path / "x.jsonl")
