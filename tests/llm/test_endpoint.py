import asyncio
import email.utils
import time

import pytest
from fake_server import FakeServer, Reply, chat_body, error, meeting

from triax.llm.endpoint import Endpoint, EndpointError, MalformedReply, plain, retry_after_s

KEY_ENV = "TRIAX_TEST_KEY"
KEY = "sk-test-0123456789abcdef"


def post(endpoint: Endpoint, num_calls: int = 1):
    """The replies or errors of calls made at once."""

    async def go():
        async with endpoint.session():
            return await asyncio.gather(
                *(
                    endpoint.post("/chat/completions", {"messages": [{"content": str(i)}]}, dict)
                    for i in range(num_calls)
                ),
                return_exceptions=True,
            )

    return asyncio.run(go())


def failing(*faults: Reply):
    """The first calls get these replies, later ones are answered."""
    left = list(faults)
    return lambda body, before: left.pop(0) if left else None


def endpoint_of(server: FakeServer, **options) -> Endpoint:
    return Endpoint(server.base_url, **({"backoff_s": 0.005} | options))


@pytest.mark.parametrize(
    "fault",
    [
        error(500, "broken"),
        error(503, "loading"),
        error(429, "slow down"),
        error(408, "timeout"),
        Reply(200, b'{"choices": [{"mess'),
        Reply(200, b"<html>proxy</html>", {"Content-Type": "text/html"}),
        Reply(200, [1, 2]),
        Reply(502, b"<html>bad gateway</html>", {"Content-Type": "text/html"}),
        Reply(0),
    ],
    ids=lambda fault: f"{fault.status}-{str(fault.body)[:12]}",
)
def test_r15_what_may_pass_is_tried_again(fault):
    with FakeServer(fault=failing(fault, fault)) as server:
        endpoint = endpoint_of(server)
        [(reply, seconds)] = post(endpoint)
        assert reply["choices"][0]["message"]["content"] == "echo 0"
        assert seconds > 0
        assert len(server.received) == 3 and endpoint.num_retries == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
def test_r15_errors_of_the_request_are_not_tried_again(status):
    with FakeServer(fault=lambda body, before: error(status)) as server:
        [fault] = post(endpoint_of(server))
        assert isinstance(fault, EndpointError) and fault.status == status
        assert f"HTTP {status}" in str(fault)
        assert len(server.received) == 1


def test_r15_an_empty_purse_is_not_a_rate_limit():
    fault = error(429, "You exceeded your quota", code="insufficient_quota")
    with FakeServer(fault=lambda body, before: fault) as server:
        [fault] = post(endpoint_of(server))
        assert "You exceeded your quota" in str(fault)
        assert len(server.received) == 1


def test_r15_retries_are_bounded():
    with FakeServer(fault=lambda body, before: error(500, "broken for good")) as server:
        [fault] = post(endpoint_of(server, max_retries=3))
        assert "broken for good" in str(fault) and "tried 4 times" in str(fault)
        assert len(server.received) == 4


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_r15_retry_after_is_honoured(form):
    now = 1_700_000_000
    headers = {
        "seconds": {"Retry-After": "0.3"},
        "milliseconds": {"Retry-After-Ms": "300", "Retry-After": "9"},
        "date": {
            "Date": email.utils.formatdate(now, usegmt=True),
            "Retry-After": email.utils.formatdate(now + 1, usegmt=True),
        },
    }[form]
    with FakeServer(fault=failing(error(429, headers=headers))) as server:
        assert not isinstance(post(endpoint_of(server))[0], Exception)
        first, second = (received.arrived for received in server.received)
        assert second - first >= 0.3


def test_r15_a_limit_met_by_one_call_holds_the_others():
    refusal = failing(error(429, headers={"Retry-After": "0.5"}))
    with FakeServer(fault=refusal, latency_s=0.1) as server:
        endpoint = endpoint_of(server, max_concurrent=2)
        assert not any(isinstance(reply, Exception) for reply in post(endpoint, 5))
        first, _, *later = (received.arrived for received in server.received)
        assert len(later) == 4 and all(arrived - first >= 0.5 for arrived in later)


def test_r15_a_wait_beyond_the_limit_ends_the_call_with_the_reason():
    with FakeServer(fault=failing(error(429, headers={"Retry-After": "3600"}))) as server:
        [fault] = post(endpoint_of(server))
        assert "wait of 3600 s" in str(fault) and "max_wait_s=120" in str(fault)


def test_r15_the_pace_spaces_the_calls():
    with FakeServer() as server:
        started = time.monotonic()
        post(endpoint_of(server, max_requests_per_minute=600), 4)
        assert server.received[-1].arrived - started >= 0.3


def test_an_answer_that_does_not_come_in_time_is_tried_again():
    with FakeServer(fault=failing(Reply(200, chat_body("late"), delay_s=1.5))) as server:
        [(reply, _)] = post(endpoint_of(server, timeout_s=0.3))
        assert reply["choices"][0]["message"]["content"] == "echo 0"
        [fault] = post(endpoint_of(server, timeout_s=1e-4, max_retries=0))
        assert "no answer within 0.0001 s" in str(fault)


def test_no_server_is_an_error_that_names_the_address():
    with FakeServer() as server:
        address = server.base_url
    [fault] = post(Endpoint(address, max_retries=1, backoff_s=0.001))
    assert address in str(fault) and "no connection" in str(fault) and fault.status is None


def test_no_more_calls_run_at_once_than_allowed():
    with FakeServer(fault=meeting(3)) as server:
        replies = post(endpoint_of(server, max_concurrent=3), 12)
        assert not any(isinstance(reply, Exception) for reply in replies)
        assert server.most_at_once == 3 and len(server.received) == 12


def test_an_endpoint_serves_one_event_loop_after_another():
    with FakeServer() as server:
        endpoint = endpoint_of(server)
        for _ in range(3):
            assert not isinstance(post(endpoint)[0], Exception)


def test_calls_of_one_event_loop_may_follow_each_other():
    async def go(endpoint):
        for _ in range(2):
            await endpoint.post("/chat/completions", {"messages": [{"content": "a"}]}, dict)

    with FakeServer() as server:
        asyncio.run(go(endpoint_of(server)))
        assert len(server.received) == 2


def test_after_a_401_the_calls_that_wait_are_not_sent():
    with FakeServer(fault=lambda body, before: error(401)) as server:
        faults = post(endpoint_of(server, max_concurrent=2), 20)
        assert all(fault.status == 401 for fault in faults)
        assert len(server.received) <= 2


def test_r23_the_configured_key_goes_out_and_none_of_the_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, f"ambient-{name}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer ambient\nX-Team: ambient")
    monkeypatch.setenv(KEY_ENV, f"{KEY}\n")
    with FakeServer() as server:
        assert not isinstance(post(endpoint_of(server, api_key_env=KEY_ENV))[0], Exception)
        assert not isinstance(post(endpoint_of(server))[0], Exception)
        with_key, without = (received.headers for received in server.received)
    assert with_key["Authorization"] == f"Bearer {KEY}"
    assert without["Authorization"] == "Bearer none"
    for headers in (with_key, without):
        assert "ambient" not in str(headers)
        assert {name.lower() for name in headers} <= {
            "host",
            "accept",
            "accept-encoding",
            "connection",
            "content-type",
            "content-length",
            "user-agent",
            "authorization",
        }


def test_r23_the_key_follows_no_redirect(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    with FakeServer() as other:
        target = f"{other.base_url}/chat/completions"
        moved = Reply(307, {}, {"Location": target})
        with FakeServer(fault=lambda body, before: moved) as server:
            [fault] = post(endpoint_of(server, api_key_env=KEY_ENV))
        assert target in str(fault) and "redirects are not followed" in str(fault)
        assert other.received == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 307, 200])
def test_r23_no_error_and_no_log_holds_the_key(status, monkeypatch, caplog):
    monkeypatch.setenv(KEY_ENV, KEY)
    caplog.set_level(0)
    # The key straddles the place where long messages are cut.
    message = "x" * 290 + f" {KEY} is not good"
    fault = error(status, message, {"Location": "/elsewhere"})
    with FakeServer(fault=lambda body, before: fault) as server:
        endpoint = endpoint_of(server, api_key_env=KEY_ENV, max_retries=1)

        def read(reply):
            raise MalformedReply(f"what is {reply}?")

        async def go():
            await endpoint.post("/chat/completions", {"messages": []}, read)

        with pytest.raises(EndpointError) as caught:
            asyncio.run(go())
    seen = f"{caught.value} {caught.value!r} {endpoint!r} {caplog.text}"
    assert KEY[:8] not in seen
    if status in (401, 403):
        assert KEY_ENV in str(caught.value)


def test_r23_a_key_that_a_server_echoes_is_taken_out_of_the_reply(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    with FakeServer(answer=lambda body: f"your key is {KEY}") as server:
        [(reply, _)] = post(endpoint_of(server, api_key_env=KEY_ENV))
    assert reply["choices"][0]["message"]["content"] == "your key is [key]"
    assert reply["usage"]["prompt_tokens"] == 11


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "clé", "a\x01b"])
def test_r23_a_missing_or_broken_key_stops_before_the_first_call(value, monkeypatch):
    if value is None:
        monkeypatch.delenv(KEY_ENV, raising=False)
    else:
        monkeypatch.setenv(KEY_ENV, value)
    with FakeServer() as server:
        with pytest.raises(ValueError, match=KEY_ENV) as caught:
            post(endpoint_of(server, api_key_env=KEY_ENV))
        assert server.received == []
    assert not (value or "").strip() or value not in str(caught.value)


@pytest.mark.parametrize(
    "address, reason",
    [
        ("localhost:8000/v1", "expected http"),
        ("ftp://host/v1", "expected http"),
        ("http://", "expected http"),
        ("http://user:secret@host/v1", "api_key_env"),
        ("http://host/v1?api-key=secret", "api_key_env"),
    ],
)
def test_addresses_that_are_none_or_hold_secrets_are_refused(address, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        Endpoint(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("limits", [{"max_concurrent": 0}, {"max_retries": -1}])
def test_limits_that_allow_no_call_are_refused(limits):
    with pytest.raises(ValueError, match="expected at least"):
        Endpoint("http://host/v1", **limits)


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        (
            {
                "date": "Fri, 31 Dec 1999 23:59:00 GMT",
                "retry-after": "Sat, 01 Jan 2000 00:00:05 GMT",
            },
            65.0,
        ),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_retry_after_as_a_date_without_the_servers_clock():
    seconds = retry_after_s({"retry-after": email.utils.formatdate(time.time() + 60, usegmt=True)})
    assert seconds is not None and 50 < seconds <= 61


def test_plain_values_of_a_configuration():
    omegaconf = pytest.importorskip("omegaconf")
    value = {"a": [1, {"b": None}], "c": "x"}
    assert plain(omegaconf.OmegaConf.create(value)) == value
