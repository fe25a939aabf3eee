import pytest

from triax.records.routes import RouterExample

EXAMPLE = RouterExample("q1", "Who?", "bridge", False, True, None, 1.5, 2)


def test_json_there_and_back():
    assert RouterExample.from_json(EXAMPLE.to_json()) == EXAMPLE
    assert EXAMPLE.needs_graph


def test_a_row_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"lacks \['kind', .*label_router"):
        RouterExample.from_json({"id": "q1", "question": "Who?"})
