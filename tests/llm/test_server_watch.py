import asyncio
import json

import pytest
from fake_server import FakeServer

from triax.llm.endpoint import Endpoint
from triax.llm.server_watch import ServerWatch, Wanted


def publish(folder, server, name, model="fake"):
    row = {"base_url": server.base_url, "model": model, "job": name, "restart": 0, "host": "here"}
    (folder / f"{name}.json").write_text(json.dumps(row))


def watched(folder, use, num_places=3, **options):
    """What `use(watch)` gives, with a watch over the servers of a folder."""

    async def go():
        wanted = Wanted("fake", folder, **({"poll_s": 0.02, "wait_s": 20} | options))

        def endpoint_of(server):
            return Endpoint(server.base_url, max_concurrent=num_places, is_one_of_many=True)

        watch = ServerWatch(wanted, endpoint_of)
        try:
            return await use(watch)
        finally:
            await watch.close()

    return asyncio.run(go())


async def until(true):
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def test_a_call_goes_where_the_fewest_are(tmp_path):
    async def use(watch):
        await until(lambda: len(watch.servers) == 2)
        taken = [await watch.take() for _ in range(4)]
        names = [member.server.file for member, _ in taken]
        assert sorted(names[:2]) == sorted(names[2:]) == ["1.json", "2.json"]
        # One server ends both of its calls: the next two are its own.
        for member, slot in taken[::-1]:
            if member.server.file == "2.json":
                watch.give_back(member, slot)
        return [(await watch.take())[0].server.file for _ in range(2)]

    with FakeServer() as one, FakeServer() as two:
        publish(tmp_path, one, "1")
        publish(tmp_path, two, "2")
        assert watched(tmp_path, use) == ["2.json", "2.json"]


def test_a_place_is_waited_for(tmp_path):
    async def use(watch):
        member, slot = await watch.take()
        waiting = asyncio.ensure_future(watch.take())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        watch.give_back(member, slot)
        return await waiting == (member, slot)

    with FakeServer() as server:
        publish(tmp_path, server, "1")
        assert watched(tmp_path, use, num_places=1)


def test_a_healthy_server_that_was_set_aside_is_used_again(tmp_path):
    async def use(watch):
        member, slot = await watch.take()
        watch.suspect(member, "a broken connection")
        assert watch.servers == []
        watch.give_back(member, slot)
        again, _ = await watch.take()
        return again is not member and again.server == member.server

    with FakeServer() as server:
        publish(tmp_path, server, "1")
        assert watched(tmp_path, use)


def test_a_busy_server_may_miss_a_health_check(tmp_path):
    async def use(watch):
        member, _ = await watch.take()
        server.health = 503
        await until(lambda: member.num_missed == 1)
        server.health = 200
        await until(lambda: member.num_missed == 0)
        assert member.is_open and not member.lost.done()
        server.health = 503
        return await member.lost

    with FakeServer() as server:
        publish(tmp_path, server, "1")
        assert "its health check gives HTTP 503" in watched(tmp_path, use, poll_s=0.1)


def test_an_unhealthy_server_is_not_begun_with(tmp_path):
    async def use(watch):
        await asyncio.sleep(0.2)
        assert watch.servers == []
        server.health = 200
        return (await watch.take())[0].server.file

    with FakeServer() as server:
        server.health = 503
        publish(tmp_path, server, "1")
        assert watched(tmp_path, use) == "1.json"


def test_a_fault_of_the_watch_reaches_all_that_wait(tmp_path):
    async def use(watch):
        return await asyncio.gather(watch.take(), watch.take(), return_exceptions=True)

    row = {"base_url": "n1:80", "model": "fake", "job": "1", "restart": 0, "host": "n1"}
    (tmp_path / "1.json").write_text(json.dumps(row))
    errors = watched(tmp_path, use)
    assert len(errors) == 2
    assert all(isinstance(one, ValueError) and "base_url 'n1:80'" in str(one) for one in errors)


@pytest.mark.parametrize("options", [{"wait_s": -1}, {"poll_s": 0}])
def test_times_that_make_no_sense_are_refused(tmp_path, options):
    with pytest.raises(ValueError, match="expected at least 0"):
        Wanted("fake", tmp_path, **options)
