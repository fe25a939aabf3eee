from dataclasses import replace

from triax.records.completions import Completion, CompletionRequest, Grammar, Message

REQUEST = CompletionRequest((Message("user", "Who?"),))


def test_requests_can_be_keys():
    """A cache and a batch tell requests apart by all that decides their output."""
    others = [
        replace(REQUEST, messages=(Message("user", "What?"),)),
        replace(REQUEST, messages=(Message("system", "Who?"),)),
        replace(REQUEST, max_tokens=1),
        replace(REQUEST, temperature=0.5),
        replace(REQUEST, stop=("\n",)),
        replace(REQUEST, seed=1),
        replace(REQUEST, grammar=Grammar("regex", "a")),
        replace(REQUEST, grammar=Grammar("lark", "a")),
    ]
    assert len({REQUEST, replace(REQUEST), *others}) == 1 + len(others)


def test_the_usual_request_is_greedy_and_free():
    assert (REQUEST.temperature, REQUEST.grammar, REQUEST.stop) == (0.0, None, ())


def test_r29_a_failed_call_has_no_text():
    failed = Completion(None, "error", error="down")
    assert (failed.text, failed.error, failed.is_cached) == (None, "down", False)
