import dataclasses

import pytest

from triax.records.documents import Chunk, Document


def test_the_passage_is_title_newline_text():
    """The form of T2RAG's and HippoRAG's files: `title\\ntext`."""
    assert Chunk("c", "d", "a text", "A title").passage == "A title\na text"
    assert Chunk("c", "d", "a text").passage == "a text"
    assert Chunk("c", "d", "", "A title").passage == "A title\n"


def test_documents_share_no_metadata():
    first, second = Document("a", "x"), Document("b", "y")
    assert first.metadata == {} and first.metadata is not second.metadata


@pytest.mark.parametrize("record", [Document("a", "x"), Chunk("c", "d", "x")])
def test_records_are_frozen(record):
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.text = "other"
    assert not hasattr(record, "__dict__")
