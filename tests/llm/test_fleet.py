import asyncio
import json
import threading

import pytest
from fake_server import FakeServer, Reply, error, meeting

from triax.llm.arrivals import ArrivingCompleter
from triax.llm.cache import CachedCompleter
from triax.llm.fleet import FleetCompleter
from triax.llm.http import HttpCompleter
from triax.llm.servers import NoServerError
from triax.records.completions import CompletionRequest, Message

KEY_ENV = "TRIAX_TEST_KEY"


def ask(text):
    return CompletionRequest((Message("user", str(text)),))


def publish(folder, server, job="1", model="fake", restart=0):
    """Tells of a server as slurm/llm_server.sbatch does; returns the file."""
    folder.mkdir(exist_ok=True)
    row = {"base_url": server.base_url, "model": model, "job": job, "host": "here"}
    path = folder / f"{job}.json"
    (folder / "new").write_text(json.dumps(row | {"restart": restart}))
    (folder / "new").rename(path)
    return path


def fleet_of(folder, **options):
    return FleetCompleter(
        "fake", folder, **({"poll_s": 0.02, "wait_s": 20, "backoff_s": 0.005} | options)
    )


def complete(completer, *texts):
    return asyncio.run(completer.complete([ask(text) for text in texts]))


def texts(completions):
    return [one.text for one in completions]


async def until(true):
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def echoes(count):
    return [f"echo {number}" for number in range(count)]


def dying(server):
    """A fault by which the server breaks every connection off and listens no more."""

    def fault(body, before):
        server.stop()
        return Reply(0)

    return fault


def test_the_cache_key_holds_no_address(tmp_path):
    first = fleet_of(tmp_path / "a", job=1).identity
    assert first == fleet_of(tmp_path / "b", job="2", api_key_env=KEY_ENV).identity
    assert "http:" not in json.dumps(first) and str(tmp_path) not in json.dumps(first)
    named = HttpCompleter("fake", "http://n1:80/v1", endpoint_name="servers")
    assert first == named.identity
    assert isinstance(fleet_of(tmp_path), ArrivingCompleter)


def test_calls_are_spread_over_all_servers(tmp_path):
    """Each server answers only when half of the calls are there."""
    with FakeServer(fault=meeting(4)) as one, FakeServer(fault=meeting(4)) as two:
        publish(tmp_path, one, "7_0")
        publish(tmp_path, two, "7_1")
        fleet = fleet_of(tmp_path, job=7)

        async def go():
            async with fleet._endpoint.session() as watch:
                await until(lambda: len(watch.servers) == 2)
                return await fleet.complete([ask(number) for number in range(8)])

        assert texts(asyncio.run(go())) == echoes(8)
        assert len(one.received) == len(two.received) == 4
        assert fleet.num_retries == 0


def test_the_limit_holds_for_each_server(tmp_path):
    with FakeServer(latency_s=0.02) as server:
        publish(tmp_path, server)
        assert texts(complete(fleet_of(tmp_path, max_concurrent=2), *range(9))) == echoes(9)
        assert server.most_at_once == 2


def test_what_a_dead_server_had_not_answered_goes_to_another(tmp_path):
    with FakeServer() as dead, FakeServer() as alive:
        dead.fault = dying(dead)
        publish(tmp_path, dead, "1")
        publish(tmp_path, alive, "2")
        assert texts(complete(fleet_of(tmp_path), *range(20))) == echoes(20)
        assert sorted(alive.prompts()) == sorted(map(str, range(20)))


def test_a_server_that_hangs_loses_its_calls(tmp_path):
    release = threading.Event()

    def hang(body, before):
        hung.health = 503
        release.wait(20)
        return Reply(0)

    with FakeServer(fault=hang) as hung, FakeServer() as alive:
        publish(tmp_path, hung, "1")
        fleet = fleet_of(tmp_path)

        async def go():
            waiting = asyncio.ensure_future(fleet.complete([ask(0)]))
            await until(lambda: hung.received)
            publish(tmp_path, alive, "2")
            return await waiting

        assert texts(asyncio.run(go())) == echoes(1)
        assert fleet.num_retries == 1
        release.set()


def test_a_withdrawn_server_ends_what_it_has_and_gets_nothing_new(tmp_path):
    release = threading.Event()

    def slow(body, before):
        release.wait(20)

    with FakeServer(fault=slow) as leaving, FakeServer() as staying:
        path = publish(tmp_path, leaving, "1")
        fleet = fleet_of(tmp_path)

        async def go():
            first = asyncio.ensure_future(fleet.complete([ask(0)]))
            await until(lambda: leaving.received)
            path.unlink()
            publish(tmp_path, staying, "2")
            async with fleet._endpoint.session() as watch:
                await until(lambda: [one.file for one in watch.servers] == ["2.json"])
            second = await fleet.complete([ask(1), ask(2)])
            release.set()
            return [*await first, *second]

        assert texts(asyncio.run(go())) == echoes(3)
        assert leaving.prompts() == ["0"] and sorted(staying.prompts()) == ["1", "2"]


def test_a_server_that_comes_later_is_waited_for(tmp_path):
    with FakeServer() as server:
        timer = threading.Timer(0.2, publish, (tmp_path, server))
        timer.start()
        assert texts(complete(fleet_of(tmp_path / "."), 0)) == echoes(1)
        timer.join()


def test_a_server_whose_file_lies_there_from_before_is_not_used(tmp_path):
    with FakeServer() as gone:
        publish(tmp_path, gone, "1")
    with FakeServer() as server:
        publish(tmp_path, server, "2")
        fleet = fleet_of(tmp_path)
        assert texts(complete(fleet, 0, 1)) == echoes(2)
        assert fleet.num_retries == 0


def test_no_server_ends_with_what_was_found(tmp_path):
    with FakeServer() as server:
        publish(tmp_path, server, "3", model="other")
        with FakeServer() as gone:
            publish(tmp_path, gone, "4")
        (tmp_path / "notes.json").write_text("{}")
        with pytest.raises(NoServerError) as raised:
            complete(fleet_of(tmp_path, wait_s=0.1), 0)
    said = str(raised.value)
    assert f"no server of fake in {tmp_path} within 0.1 s" in said
    assert "3.json is of model other" in said and "4.json does not answer" in said
    assert "notes.json is no server's file" in said and "slurm/llm_server.sbatch fake" in said


def test_only_the_servers_of_the_job_are_used(tmp_path):
    with FakeServer() as other, FakeServer() as its_own:
        publish(tmp_path, other, "8")
        publish(tmp_path, its_own, "9_1")
        assert texts(complete(fleet_of(tmp_path, job=9), *range(4))) == echoes(4)
        assert not other.received
        with pytest.raises(NoServerError, match="8.json is of another job"):
            complete(fleet_of(tmp_path, job="9_2", wait_s=0.1), 0)


@pytest.mark.parametrize(
    "answer, told",
    [
        ("echo 12 FAILED", r"job 12, which was to serve it, has ended \(12 FAILED\)"),
        ("echo Invalid job id specified >&2; exit 1", r"has ended \(forgotten\)"),
    ],
)
def test_nothing_waits_for_a_job_that_has_ended(tmp_path, monkeypatch, answer, told):
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\n{answer}\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NoServerError, match=told):
        complete(fleet_of(tmp_path / "none", job=12, wait_s=1e6), 0)


def test_a_job_that_is_started_anew_is_waited_for(tmp_path, monkeypatch):
    """Slurm says once that it has ended, then that it waits; then its server is there."""
    squeue = tmp_path / "squeue"
    seen = tmp_path / "seen"
    squeue.write_text(
        f"#!/bin/sh\n[ -e {seen} ] && echo 12 PENDING || echo 12 NODE_FAIL\n: >{seen}\n"
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with FakeServer() as server:
        timer = threading.Timer(0.5, publish, (tmp_path, server, "12", "fake", 1))
        timer.start()
        assert texts(complete(fleet_of(tmp_path, job=12), 0)) == echoes(1)
        timer.join()
    assert seen.exists()


def test_a_request_that_breaks_servers_does_not_go_on_for_ever(tmp_path):
    def fault(body, before):
        return Reply(0) if body["messages"][-1]["content"] == "bad" else None

    with FakeServer(fault=fault) as server:
        publish(tmp_path, server)
        good, bad = complete(fleet_of(tmp_path, max_retries=2), "good", "bad")
        assert good.text == "echo good"
        assert bad.text is None and "3 servers lost with it" in bad.error
        assert server.prompts().count("bad") == 3


def test_a_refused_request_is_an_error_of_its_own(tmp_path):
    with FakeServer(fault=lambda body, before: error(400, "too long")) as server:
        publish(tmp_path, server)
        [completion] = complete(fleet_of(tmp_path), 0)
        assert "too long" in completion.error and len(server.received) == 1


def test_the_key_goes_to_the_servers(tmp_path, monkeypatch):
    with FakeServer() as server:
        publish(tmp_path, server)
        monkeypatch.setenv(KEY_ENV, "sk-test-0123456789abcdef")
        complete(fleet_of(tmp_path, api_key_env=KEY_ENV), 0)
        headers = {key.lower(): value for key, value in server.received[0].headers.items()}
        assert headers["authorization"] == "Bearer sk-test-0123456789abcdef"
        monkeypatch.delenv(KEY_ENV)
        with pytest.raises(ValueError, match=KEY_ENV):
            complete(fleet_of(tmp_path, api_key_env=KEY_ENV), 0)


def test_a_proxy_of_the_environment_is_passed_by(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with FakeServer() as server:
        publish(tmp_path, server)
        assert texts(complete(fleet_of(tmp_path), 0)) == echoes(1)


def test_one_fleet_serves_several_event_loops(tmp_path):
    with FakeServer() as server:
        publish(tmp_path, server)
        fleet = fleet_of(tmp_path)
        assert [complete(fleet, word)[0].text for word in "ab"] == ["echo a", "echo b"]
        assert complete(fleet) == []


def test_r04_a_later_server_is_not_asked_for_what_an_earlier_one_answered(tmp_path):
    def two_then_dead(body, before):
        if len(first.received) > 2:
            first.stop()
            return Reply(0)

    def open_model():
        return CachedCompleter(
            fleet_of(tmp_path / "servers", max_concurrent=1, wait_s=0.2), tmp_path / "calls.db"
        )

    with FakeServer(fault=two_then_dead) as first:
        publish(tmp_path / "servers", first, "1")
        with pytest.raises(NoServerError):
            complete(open_model(), *range(5))
        answered = first.prompts()[:2]
    with FakeServer() as second:
        publish(tmp_path / "servers", second, "2")
        completions = complete(open_model(), *range(5))
    assert texts(completions) == echoes(5)
    assert sorted([*answered, *second.prompts()]) == [str(number) for number in range(5)]
    assert [one.is_cached for one in completions] == [
        str(number) in answered for number in range(5)
    ]
