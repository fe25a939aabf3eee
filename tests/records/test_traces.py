from triax.records.traces import Trace


def test_r29_no_answer_is_none():
    trace = Trace("q", "Who?", "t2rag", None)
    assert (trace.answer, trace.error, trace.final, trace.rounds) == (None, None, None, ())
