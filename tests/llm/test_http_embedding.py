import asyncio

import numpy as np
import pytest
from fake_server import FakeServer, Reply, error, vector_of

from triax.llm.http_embedding import HttpEncoder, read_embeddings
from triax.records.verbs import Encoder


def encoder_of(server: FakeServer, **options) -> HttpEncoder:
    return HttpEncoder("fake-embedder", server.base_url, **({"backoff_s": 0.005} | options))


def unit(texts, dimension=8) -> np.ndarray:
    rows = np.array([vector_of(text, dimension) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rows_are_those_of_the_texts_in_order_and_of_length_one():
    texts = [f"text {i}" for i in range(23)]
    with FakeServer() as server:
        encoder = encoder_of(server, batch_size=5)
        rows = encoder.encode(texts)
        assert sorted(len(body["input"]) for body in server.bodies) == [3, 5, 5, 5, 5]
        assert all(body["encoding_format"] == "float" for body in server.bodies)
    assert rows.dtype == np.float32 and rows.shape == (23, 8)
    np.testing.assert_allclose(rows, unit(texts), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_the_dimension_is_found_by_the_first_call_or_by_looking():
    with FakeServer(dimension=12) as server:
        encoder = encoder_of(server)
        assert encoder.encode(["a"]).shape == (1, 12)
        assert encoder.dimension == 12 and len(server.received) == 1
        assert encoder_of(server).dimension == 12
        assert encoder_of(server).encode([]).shape == (0, 12)
        num_before = len(server.received)
        assert encoder_of(server, dimension=12).encode([]).shape == (0, 12)
        assert len(server.received) == num_before
        assert isinstance(encoder, Encoder)


def test_r05_another_dimension_than_configured_is_an_error_with_both_values():
    with FakeServer(dimension=12) as server:
        with pytest.raises(ValueError, match=r"fake-embedder .* 12 numbers, expected 8"):
            encoder_of(server, dimension=8).encode(["a"])


def test_instructions_are_wrapped_by_role_and_braces_of_a_text_stay():
    with FakeServer() as server:
        encoder = encoder_of(
            server, query_instruction="Instruct: find it\nQuery: {text}", passage_instruction="P: "
        )
        encoder.encode(["who is {text} {0}?"], "query")
        encoder.encode(["it {is}"], "passage")
        assert [body["input"] for body in server.bodies] == [
            ["Instruct: find it\nQuery: who is {text} {0}?"],
            ["P: it {is}"],
        ]


def test_revision_differs_where_passages_do():
    def revision(**options):
        return HttpEncoder("m", "http://a/v1", dimension=8, **options).revision

    assert revision() == revision(query_instruction="Q: ") == ""
    assert revision(revision="v2") == "v2"
    others = [
        {"passage_instruction": "P: "},
        {"passage_instruction": "P: ", "revision": "v2"},
        {"max_chars": 9},
        {"extra_body": {"dimensions": 8}},
    ]
    assert len({revision(**options) for options in others}) == len(others)


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\x00"])
def test_r08_empty_texts_are_sent_as_a_space_and_get_a_row(text):
    def fault(body, before):
        return error(400, "empty input") if "" in body["input"] else None

    with FakeServer(fault=fault) as server:
        rows = encoder_of(server).encode(["a", text, "b"])
        assert server.bodies[0]["input"] == ["a", " ", "b"]
    np.testing.assert_allclose(rows, unit(["a", " ", "b"]), atol=1e-6)


def test_r08_long_texts_are_cut_and_counted():
    with FakeServer() as server:
        encoder = encoder_of(server, max_chars=4, passage_instruction="P: ")
        encoder.encode(["abcdef", "abcd", "é\ud800x"])
        assert server.bodies[0]["input"] == ["P: abcd", "P: abcd", "P: é\ufffdx"]
        assert encoder.num_truncated == 1


def test_a_batch_that_fails_for_good_is_named():
    def fault(body, before):
        return error(500, "out of memory") if "t5" in body["input"] else None

    with FakeServer(fault=fault) as server:
        with pytest.raises(RuntimeError, match=r"texts 4 to 7 of 10 .*out of memory"):
            encoder_of(server, batch_size=4, max_retries=1).encode([f"t{i}" for i in range(10)])
        assert sum("t5" in body["input"] for body in server.bodies) == 2


def test_r15_a_batch_that_fails_once_is_sent_again():
    with FakeServer(fault=lambda body, before: error(503) if before == 0 else None) as server:
        rows = encoder_of(server, batch_size=2).encode(["a", "b", "c"])
        assert len(server.received) == 4
    np.testing.assert_allclose(rows, unit(["a", "b", "c"]), atol=1e-6)


def test_encode_works_inside_an_event_loop():
    async def go(encoder):
        return encoder.encode(["a", "b"])

    with FakeServer() as server:
        rows = asyncio.run(go(encoder_of(server)))
    np.testing.assert_allclose(rows, unit(["a", "b"]), atol=1e-6)


def test_r23_a_missing_key_is_named(monkeypatch):
    monkeypatch.delenv("TRIAX_TEST_KEY", raising=False)
    with FakeServer() as server:
        with pytest.raises(ValueError, match="TRIAX_TEST_KEY"):
            encoder_of(server, api_key_env="TRIAX_TEST_KEY").encode(["a"])
        assert server.received == []


def rows_of(*vectors, indices=None):
    indices = range(len(vectors)) if indices is None else indices
    return {"data": [{"index": i, "embedding": v} for i, v in zip(indices, vectors)]}


def test_a_row_by_hand():
    reply = rows_of([0, 2], [3, 4], indices=[1, 0])
    np.testing.assert_allclose(read_embeddings(reply, 2), [[0.6, 0.8], [0, 1]])


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"data": None},
        {"data": [1, 2]},
        rows_of([1.0, 2.0]),
        rows_of([1.0], [1.0], indices=[0, 0]),
        rows_of([1.0], [1.0, 2.0]),
        rows_of("ab", "cd"),
        rows_of(None, [1.0]),
        rows_of([float("nan"), 1.0], [1.0, 2.0]),
        rows_of([float("inf"), 1.0], [1.0, 2.0]),
        rows_of([], []),
        rows_of([0.0, 0.0], [1.0, 2.0]),
    ],
)
def test_r29_replies_that_are_no_vectors_are_errors(reply):
    with FakeServer(fault=lambda *_: Reply(200, reply)) as server:
        with pytest.raises(RuntimeError, match="texts 0 to 1 of 2 .*malformed reply"):
            encoder_of(server, max_retries=1).encode(["a", "b"])
        assert len(server.received) == 2
