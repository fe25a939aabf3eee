import asyncio
import json
import logging
import re
import subprocess
import sys
import threading

import pytest
from fake_server import FakeServer, Reply, chat_body, error, meeting

from triax.llm.http import HttpCompleter, constraint_fields
from triax.records.completions import Completion, CompletionRequest, Grammar, Message
from triax.records.verbs import Completer

KEY_ENV = "TRIAX_TEST_KEY"
KEY = "sk-test-0123456789abcdef"
SCHEMA = {
    "type": "object",
    "properties": {
        "triplets": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "array",
                "minItems": 3,
                "maxItems": 3,
                "items": {"type": "string", "pattern": "^[a-z ]{1,12}$"},
            },
        }
    },
    "required": ["triplets"],
    "additionalProperties": False,
}
JSON = Grammar("json_schema", json.dumps(SCHEMA))
REGEX = Grammar("regex", r"\([a-z]{2,9}; [a-z ]{1,12}; [A-Z]\w{0,9}\)")
LARK = Grammar("lark", 'start: "a" | "b"')


def ask(text: str, **options) -> CompletionRequest:
    return CompletionRequest((Message("user", text),), **options)


def completer_of(server: FakeServer, **options) -> HttpCompleter:
    return HttpCompleter("fake", server.base_url, **({"backoff_s": 0.005} | options))


def complete(completer: HttpCompleter, *requests: CompletionRequest) -> list[Completion]:
    return asyncio.run(completer.complete(requests))


def test_a_call_sends_what_the_request_says():
    with FakeServer() as server:
        completer = completer_of(server, extra_body={"top_p": 0.9})
        assert isinstance(completer, Completer)
        [completion] = complete(
            completer,
            CompletionRequest(
                (Message("system", "be short"), Message("user", "hello there")),
                max_tokens=7,
                temperature=0.5,
                stop=("\n", "END"),
                seed=3,
                stage="solve",
                question_id="q1",
            ),
        )
        assert server.bodies == [
            {
                "model": "fake",
                "messages": [
                    {"role": "system", "content": "be short"},
                    {"role": "user", "content": "hello there"},
                ],
                "max_tokens": 7,
                "temperature": 0.5,
                "stop": ["\n", "END"],
                "seed": 3,
                "top_p": 0.9,
            }
        ]
    assert completion.text == "echo hello there" and completion.finish_reason == "stop"
    assert (completion.prompt_tokens, completion.completion_tokens) == (11, 3)
    assert completion.seconds > 0 and not completion.is_cached and completion.error is None


def test_fields_that_are_not_asked_for_are_not_sent():
    with FakeServer() as server:
        complete(completer_of(server, token_limit_field="max_completion_tokens"), ask("a"))
        assert set(server.bodies[0]) == {
            "model",
            "messages",
            "max_completion_tokens",
            "temperature",
        }


def test_all_requests_run_at_once_and_keep_their_order():
    with FakeServer(fault=meeting(16)) as server:
        completions = complete(completer_of(server), *(ask(str(i)) for i in range(16)))
        assert [completion.text for completion in completions] == [f"echo {i}" for i in range(16)]
        assert server.most_at_once == 16


def test_the_limit_on_calls_holds_over_calls_of_complete():
    async def go(completer):
        await asyncio.gather(*(completer.complete([ask(str(i))]) for i in range(10)))

    with FakeServer(fault=meeting(2)) as server:
        asyncio.run(go(completer_of(server, max_concurrent=2)))
        assert server.most_at_once == 2 and len(server.received) == 10


def test_one_completer_serves_several_event_loops():
    with FakeServer() as server:
        completer = completer_of(server)
        for word in "abc":
            assert complete(completer, ask(word))[0].text == f"echo {word}"


def test_no_requests_are_no_calls():
    with FakeServer() as server:
        assert complete(completer_of(server)) == []
        assert server.received == []


def test_r03_a_request_that_fails_leaves_the_others_alone():
    def fault(body, before):
        return error(500, "boom") if body["messages"][-1]["content"] == "2" else None

    with FakeServer(fault=fault) as server:
        completions = complete(
            completer_of(server, max_retries=1), *(ask(str(i)) for i in range(5))
        )
    assert [completion.text for completion in completions] == [
        "echo 0",
        "echo 1",
        None,
        "echo 3",
        "echo 4",
    ]
    assert completions[2].finish_reason == "error" and "boom" in completions[2].error
    assert all(completion.error is None for completion in completions if completion.text)


def test_results_are_told_when_they_arrive():
    has_arrived, seen = threading.Event(), []

    def fault(body, before):
        if body["messages"][-1]["content"] == "slow":
            assert has_arrived.wait(30)

    def on_result(position, completion):
        seen.append((position, completion.text))
        has_arrived.set()

    with FakeServer(fault=fault) as server:
        requests = [ask("slow"), ask("fast")]
        asyncio.run(completer_of(server).complete_each(requests, on_result))
    assert seen == [(1, "echo fast"), (0, "echo slow")]


@pytest.mark.parametrize("text", [None, "", " \n\t "])
def test_r02_a_spent_budget_without_an_answer_is_an_error(text):
    body = chat_body(text, "length", reasoning_content="let me think")
    with FakeServer(fault=lambda *_: Reply(200, body)) as server:
        [completion] = complete(completer_of(server), ask("a"))
        assert completion.text is None and completion.finish_reason == "length"
        assert "raise max_tokens" in completion.error and "reasoning" in completion.error
        assert completion.prompt_tokens == 11
        assert len(server.received) == 1


@pytest.mark.parametrize(
    "body, text, finish_reason, error_part",
    [
        (chat_body("half an ans", "length"), "half an ans", "length", None),
        (chat_body("", "stop"), "", "stop", None),
        (chat_body(None, "stop", refusal="I will not"), None, "error", "I will not"),
        (chat_body(None, "tool_calls"), None, "error", "tool_calls"),
        (chat_body("part", "content_filter"), None, "error", "content filter"),
        (chat_body("half an ans", "abort"), None, "error", "gave the call up"),
        ({"choices": [{"message": {"content": "x"}}]}, "x", "stop", None),
        (chat_body("x") | {"usage": None}, "x", "stop", None),
    ],
)
def test_how_a_reply_is_read(body, text, finish_reason, error_part):
    with FakeServer(fault=lambda *_: Reply(200, body)) as server:
        [completion] = complete(completer_of(server), ask("a"))
    assert (completion.text, completion.finish_reason) == (text, finish_reason)
    assert (completion.error is None) if error_part is None else (error_part in completion.error)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": None},
        {"choices": [3]},
        {"error": {"message": "upstream is down"}},
    ],
)
def test_r29_a_reply_without_an_answer_is_tried_again_and_then_an_error(body):
    with FakeServer(fault=lambda *_: Reply(200, body)) as server:
        [completion] = complete(completer_of(server, max_retries=2), ask("a"))
        assert len(server.received) == 3
    assert completion.text is None and "malformed reply" in completion.error
    assert "error" not in body or "upstream is down" in completion.error


def test_r07_lone_surrogates_do_not_break_a_call():
    with FakeServer() as server:
        [completion] = complete(completer_of(server), ask("a\ud800b"))
        assert completion.error is None
        assert server.prompts() == ["a\ufffdb"]


def test_r23_the_key_is_in_no_result_no_identity_and_no_repr(monkeypatch, caplog):
    monkeypatch.setenv(KEY_ENV, KEY)
    caplog.set_level(0)

    def fault(body, before):
        if body["messages"][-1]["content"] == "ok":
            return None
        return error(int(body["messages"][-1]["content"]), f"bad key {KEY}")

    with FakeServer(answer=lambda body: KEY, fault=fault) as server:
        completer = completer_of(server, api_key_env=KEY_ENV, max_retries=1)
        completions = complete(completer, ask("400"), ask("500"), ask("403"), ask("ok"))
        assert all(
            received.headers["Authorization"] == f"Bearer {KEY}" for received in server.received
        )
    assert all(completion.error for completion in completions[:3])
    seen = f"{completions} {completer!r} {completer.identity} {caplog.text}"
    assert KEY not in seen


@pytest.mark.parametrize(
    "structured, grammar, fields",
    [
        ("vllm", REGEX, {"guided_regex", "structured_outputs"}),
        ("vllm", LARK, {"guided_grammar", "structured_outputs"}),
        ("llama_cpp", REGEX, {"grammar"}),
        ("auto", REGEX, {"guided_regex", "structured_outputs", "grammar"}),
        ("auto", LARK, {"guided_grammar", "structured_outputs"}),
        ("json_schema", JSON, {"response_format"}),
        ("vllm", JSON, {"response_format"}),
        ("llama_cpp", JSON, {"response_format"}),
        ("auto", JSON, {"response_format"}),
        ("none", JSON, set()),
        ("none", REGEX, set()),
    ],
)
def test_a_grammar_is_sent_in_the_words_of_the_server(structured, grammar, fields):
    with FakeServer() as server:
        completer = completer_of(server, structured=structured)
        [completion] = complete(completer, ask("a", grammar=grammar))
        [body] = server.bodies
    assert completion.error is None and completer.num_unconstrained == 0
    assert set(body) == {"model", "messages", "max_tokens", "temperature"} | fields
    if grammar is JSON and fields:
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    if "guided_regex" in fields:
        assert body["guided_regex"] == REGEX.source
        assert body["structured_outputs"] == {"regex": REGEX.source}


@pytest.mark.parametrize(
    "structured, grammar",
    [
        ("json_schema", REGEX),
        ("json_schema", LARK),
        ("llama_cpp", LARK),
        ("llama_cpp", Grammar("regex", "(?=a)b")),
        ("auto", Grammar("json_schema", "{")),
    ],
)
def test_a_grammar_that_cannot_be_said_is_an_error_of_its_request(structured, grammar):
    with pytest.raises(ValueError):
        constraint_fields(grammar, structured)
    with FakeServer() as server:
        completer = completer_of(server, structured=structured)
        bad, good = complete(completer, ask("a", grammar=grammar), ask("b"))
    assert good.text == "echo b"
    if structured == "auto":
        assert bad.text == "echo a" and completer.num_unconstrained == 1
    else:
        assert bad.text is None and bad.error


def refuses_formats(body, before):
    if "response_format" in body or "guided_regex" in body:
        return error(400, "response_format is not supported")
    return None


def test_auto_asks_once_more_without_the_refused_format_logs_it_once_and_counts(caplog):
    caplog.set_level(logging.WARNING, "triax")
    with FakeServer(fault=refuses_formats) as server:
        completer = completer_of(server)
        first = complete(completer, ask("a", grammar=JSON), ask("b"), ask("c", grammar=REGEX))
        assert [completion.text for completion in first] == ["echo a", "echo b", "echo c"]
        assert len(server.received) == 5 and completer.num_unconstrained == 2
        second = complete(completer, ask("d", grammar=JSON))
        assert second[0].text == "echo d"
        assert len(server.received) == 6 and completer.num_unconstrained == 3
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2 and "not supported" in warnings[0]


def test_a_named_form_that_is_refused_is_one_clear_error():
    with FakeServer(fault=refuses_formats) as server:
        [completion] = complete(
            completer_of(server, structured="json_schema"), ask("a", grammar=JSON)
        )
        assert len(server.received) == 1
    assert completion.text is None
    assert "not supported" in completion.error and "json_schema" in completion.error


def test_auto_keeps_the_constraint_when_the_fault_is_elsewhere(caplog):
    with FakeServer(fault=lambda *_: error(400, "prompt too long")) as server:
        completer = completer_of(server)
        [completion] = complete(completer, ask("a", grammar=JSON))
        assert "prompt too long" in completion.error
        assert completer.num_unconstrained == 0 and not caplog.records
        assert len(server.received) == 2


def test_identity_tells_apart_what_changes_answers_and_nothing_else():
    def identity(**options):
        return HttpCompleter(**({"model": "m", "base_url": "http://a/v1"} | options)).identity

    same = [{}, {"base_url": "http://a/v1/"}, {"max_retries": 1, "timeout_s": 9, "backoff_s": 1}]
    assert all(identity(**options) == identity() for options in same)
    other = [
        {"model": "n"},
        {"base_url": "http://b/v1"},
        {"revision": "2"},
        {"structured": "none"},
        {"extra_body": {"top_p": 0.5}},
    ]
    assert all(identity(**options) != identity() for options in other)
    named = {"endpoint_name": "our vllm"}
    assert identity(**named) == identity(base_url="http://b:81/v1", **named)
    assert json.loads(json.dumps(identity(**other[-1]))) == identity(**other[-1])


def test_r16_nothing_is_imported_or_sent_before_the_first_call():
    code = (
        "import sys; from triax.llm.http import HttpCompleter; "
        "HttpCompleter('m', 'http://127.0.0.1:9/v1', api_key_env='NOT_SET'); "
        "from triax.llm.cache import CachedCompleter; from triax.llm.ledger import Ledger; "
        "print([name for name in ('openai', 'httpx2', 'jax', 'torch') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def llama_cpp(tmp_path_factory):
    xllamacpp = pytest.importorskip("xllamacpp")
    from tiny_gguf import write_tiny_gguf

    params = xllamacpp.CommonParams()
    params.model.path = str(write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.n_gpu_layers = 8192, 4, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.mark.parametrize("structured", ["auto", "llama_cpp"])
def test_a_real_llama_cpp_server_is_held_to_schemas_and_regexes(llama_cpp, structured):
    completer = HttpCompleter("tiny", llama_cpp, structured=structured)
    requests = [
        ask(f"text {i}", grammar=grammar, seed=i, temperature=1.0, max_tokens=400)
        for grammar in (JSON, REGEX)
        for i in range(8)
    ]
    completions = complete(completer, *requests)
    assert [completion.error for completion in completions] == [None] * 16
    assert completer.num_unconstrained == 0
    for completion in completions[:8]:
        triplets = json.loads(completion.text)["triplets"]
        assert 1 <= len(triplets) <= 2
        assert all(re.fullmatch("[a-z ]{1,12}", part) for row in triplets for part in row)
    for completion in completions[8:]:
        assert re.fullmatch(REGEX.source, completion.text)
    assert all(completion.prompt_tokens > 0 for completion in completions)
    assert len({completion.text for completion in completions[8:]}) > 1


@pytest.mark.parametrize(
    "pattern", [r"(yes|no|)!?", r"\d{4}-\d\d", r"[\]\-\\^a]{3,5}", r" \$[é-ü]{2}\"", "^a{,3}b$"]
)
def test_the_grammar_made_of_a_regex_is_the_regex(llama_cpp, pattern):
    completer = HttpCompleter("tiny", llama_cpp, structured="llama_cpp")
    grammar = Grammar("regex", pattern)
    completions = complete(
        completer, *(ask("x", grammar=grammar, seed=i, temperature=1.5) for i in range(6))
    )
    assert all(re.fullmatch(pattern, completion.text) for completion in completions)


def test_a_real_server_names_a_schema_that_it_cannot_follow(llama_cpp):
    grammar = Grammar("json_schema", json.dumps({"type": "nonsense"}))
    [strict] = complete(
        HttpCompleter("tiny", llama_cpp, structured="json_schema"), ask("x", grammar=grammar)
    )
    assert strict.text is None and "HTTP 400" in strict.error
