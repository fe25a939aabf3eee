import threading

import pytest
from tiny_questions import VOCABULARY, tiny_reader, tiny_writer

from triax.models.adapters import AdapterError
from triax.models.query_decoding import QueryDecoder
from triax.models.trained_writer import TrainedWriter, shared_writer

# Training, saving and loading are tested together in tests/training/tasks/test_decompose.py.
QUESTIONS = ["Who is the mother of Vertigo?", "Stalker or Vertigo?"]


class CountingDecoder:
    def __init__(self):
        self.decoder = QueryDecoder(tiny_writer(1, scale=8.0), VOCABULARY, 16)
        self.calls = []

    def write(self, sources):
        self.calls.append([source.text for source in sources])
        return self.decoder.write(sources)


@pytest.fixture(scope="module")
def decoder():
    return CountingDecoder()


@pytest.fixture
def writer(decoder):
    decoder.calls.clear()
    found = TrainedWriter("tiny")
    found._decoder, found._reader = decoder, tiny_reader()
    return found


def test_a_question_is_written_once(writer, decoder):
    first = writer.write([QUESTIONS[0], QUESTIONS[0]])
    assert first[0] == first[1]
    assert writer.write([QUESTIONS[0]]) == first[:1]
    assert decoder.calls == [[QUESTIONS[0]]]


def test_the_order_is_that_of_the_questions(writer):
    apart = [writer.write([question])[0] for question in QUESTIONS]
    assert writer.write(QUESTIONS[::-1]) == apart[::-1]
    assert writer.write([]) == []


def test_only_the_last_questions_are_kept(writer, decoder, monkeypatch):
    monkeypatch.setattr("triax.models.trained_writer._KEPT", 1)
    assert len(writer.write([*QUESTIONS, QUESTIONS[0]])) == 3
    writer.write(QUESTIONS[:1])
    assert len(decoder.calls) == 1
    writer.write(QUESTIONS[1:])
    assert len(decoder.calls) == 2


def test_threads_may_share_it(writer, decoder):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(writer.write(QUESTIONS))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(decoder.calls) == 1
    assert all(one == found[0] for one in found)


def test_an_adapter_that_is_not_there_is_named_at_first_use():
    writer = TrainedWriter("no-such-adapter")
    with pytest.raises(AdapterError, match="no-such-adapter"):
        writer.write(["x"])


def test_one_writer_for_all_parts():
    assert shared_writer("a") is shared_writer("a")
