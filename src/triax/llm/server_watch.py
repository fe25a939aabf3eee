"""The servers of a model while calls are under way: which are there, and who has a free place."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from triax.llm.endpoint import Endpoint
from triax.llm.servers import ENDED, NoServerError, Server, is_of, job_states, read_servers

_log = logging.getLogger(__name__)

_HEALTH_S = 5.0  # seconds that a health check may take
_MAX_MISSED = 3  # checks in a row without an answer; a busy server may miss some
_JOB_EVERY = 5  # looks into the folder for one question to Slurm's controller
_SAY_S = 60.0  # seconds between two words about waiting


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which servers are wanted, and how they are waited for; see `triax.llm.fleet`.

    Raises:
        ValueError: a time is negative, or `poll_s` is 0.
    """

    model: str
    folder: Path
    job: str | None = None
    wait_s: int | float = 1800.0
    poll_s: int | float = 3.0

    def __post_init__(self) -> None:
        if self.wait_s < 0 or self.poll_s <= 0:
            raise ValueError(
                f"wait_s={self.wait_s}, poll_s={self.poll_s}: expected at least 0 and more than 0"
            )


class Member:
    """A healthy server while it is used, within one event loop."""

    def __init__(self, server: Server, endpoint: Endpoint) -> None:
        self.server = server
        self.endpoint = endpoint
        self.num_calls = 0
        self.num_missed = 0
        self.is_open = True  # takes new calls
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class ServerWatch:
    """The wanted servers as one event loop sees them, and the free places at them.

    Each server gives `max_concurrent` places numbered from 0, and the lowest number goes first:
    that is the server with the fewest calls under way. Places of a server that is gone are
    dropped when they are met.

    Args:
        wanted: which servers.
        endpoint_of: the endpoint of a server.
    """

    def __init__(self, wanted: Wanted, endpoint_of: Callable[[Server], Endpoint]) -> None:
        self.users = 0
        self._wanted = wanted
        self._endpoint_of = endpoint_of
        self._members: dict[Server, Member] = {}
        self._leaving: set[Member] = set()
        self._places: asyncio.PriorityQueue[tuple[int, float, int, Member | None]]
        self._places = asyncio.PriorityQueue()
        self._order = count()
        self._num_ended = 0  # looks in a row that found the job ended
        self._failure: Exception | None = None
        self._connections = AsyncExitStack()
        self._task = asyncio.ensure_future(self._run())

    @property
    def servers(self) -> list[Server]:
        """Those that calls go to now."""
        return list(self._members)

    async def take(self) -> tuple[Member, int]:
        """A server with a free place, and the number of that place.

        Raises:
            NoServerError: there is none and none came in time.
        """
        while True:
            slot, _, _, member = await self._places.get()
            if member is None:
                assert self._failure is not None
                self._give(-1, None)  # for the next one that waits
                raise self._failure
            if member.is_open:
                member.num_calls += 1
                return member, slot

    def give_back(self, member: Member, slot: int) -> None:
        """Frees a place."""
        member.num_calls -= 1
        if member.is_open:
            self._give(slot, member)

    def suspect(self, member: Member, reason: str) -> None:
        """Sends nothing more to a server until it is found healthy again."""
        if member.is_open:
            _log.warning("%s (%s) is set aside: %s", member.server.file, member.server.host, reason)
            self._leave(member)

    async def close(self) -> None:
        """Ends watching and closes the connections."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._connections.aclose()

    def _give(self, slot: int, member: Member | None) -> None:
        # Among equals chance decides, so that many clients do not all begin with one server.
        self._places.put_nowait((slot, random.random(), next(self._order), member))

    def _leave(self, member: Member) -> None:
        member.is_open = False
        self._members.pop(member.server, None)
        self._leaving.add(member)

    async def _run(self) -> None:
        try:
            await self._watch()
        except Exception as error:  # whatever it is, those that wait must hear of it
            self._failure = error
            self._give(-1, None)

    async def _watch(self) -> None:
        import openai

        since = said = time.monotonic()
        looks = 0
        state = ""
        async with openai.DefaultAsyncHttpxClient(
            timeout=_HEALTH_S, trust_env=False, verify=False
        ) as http:
            while True:
                others = await self._look(http)
                now = time.monotonic()
                if self._members or self._leaving:
                    since, looks, self._num_ended = now, 0, 0
                else:
                    if looks % _JOB_EVERY == 0 or self._num_ended:
                        state = await self._job_state()
                    left_s = self._wanted.wait_s - (now - since)
                    if left_s <= 0:
                        raise NoServerError(self._complaint(others, state))
                    if looks == 0 or now - said > _SAY_S:
                        said = now
                        _log.warning(
                            "no server of %s in %s%s; waiting up to %.0f s",
                            self._wanted.model,
                            self._wanted.folder,
                            state,
                            left_s,
                        )
                    looks += 1
                await asyncio.sleep(self._wanted.poll_s)

    async def _look(self, http: Any) -> list[str]:
        """Reads the folder, tries what is there; returns what else was found, for an error."""
        servers, unread = await asyncio.to_thread(read_servers, self._wanted.folder)
        others = [f"{name} is no server's file" for name in unread]
        wanted = set()
        for server in servers:
            if server.model != self._wanted.model:
                others.append(f"{server.file} is of model {server.model}")
            elif self._wanted.job is not None and not is_of(self._wanted.job, server):
                others.append(f"{server.file} is of another job")
            else:
                wanted.add(server)
        for server, member in [*self._members.items()]:
            if server not in wanted:
                _log.info("%s is withdrawn; it gets no more calls", server.file)
                self._leave(member)
        self._leaving = {one for one in self._leaving if one.num_calls and not one.lost.done()}
        new = wanted - set(self._members)
        await asyncio.gather(
            *(self._check(http, member) for member in [*self._members.values(), *self._leaving]),
            *(self._join(http, server) for server in new),
        )
        others += [f"{one.file} does not answer" for one in wanted - set(self._members)]
        return sorted(others)

    async def _join(self, http: Any, server: Server) -> None:
        endpoint = self._endpoint_of(server)
        if await _fault(http, server) is not None:
            return
        await self._connections.enter_async_context(endpoint.session())
        member = self._members[server] = Member(server, endpoint)
        _log.info("%s serves %s at %s", server.file, server.model, server.base_url)
        for slot in range(endpoint.max_concurrent):
            self._give(slot, member)

    async def _check(self, http: Any, member: Member) -> None:
        fault = await _fault(http, member.server)
        if fault is None:
            member.num_missed = 0
            return
        member.num_missed += 1
        # A port that nobody listens at is a process that has ended; no answer may be a busy one.
        if fault == "ConnectError" or member.num_missed >= _MAX_MISSED:
            self.suspect(member, f"its health check gives {fault}")
            if not member.lost.done():
                member.lost.set_result(f"the server is gone, its health check gives {fault}")

    async def _job_state(self) -> str:
        """Words on the state of the job that is waited for; none where no job was named.

        Raises:
            NoServerError: it has ended.
        """
        job = self._wanted.job
        if job is None:
            return ""
        states = await asyncio.to_thread(job_states, job)
        if states is None:
            return f", and Slurm says nothing of job {job}"
        if not set(states.values()) <= ENDED:
            self._num_ended = 0
            return f", job {job} is {', '.join(sorted(set(states.values())))}"
        self._num_ended += 1
        found = ", ".join(f"{key} {value}" for key, value in states.items()) or "forgotten"
        # A job that is about to be started anew may look ended for a moment.
        if self._num_ended < 2:
            return f", job {job} has ended ({found})"
        raise NoServerError(
            f"{self._wanted.folder} has no server of {self._wanted.model}, and job {job}, which "
            f"was to serve it, has ended ({found}). Its output says why; submit it again, then "
            "start this program again with the new job's number"
        )

    def _complaint(self, others: list[str], state: str) -> str:
        found = f"found: {'; '.join(others)}" if others else "it holds no server's file"
        return (
            f"no server of {self._wanted.model} in {self._wanted.folder} within "
            f"{self._wanted.wait_s:g} s{state} ({found}). Start one: sbatch "
            f"slurm/llm_server.sbatch {self._wanted.model}, with the same TRIAX_ENDPOINTS; then "
            "start this program again, what was answered is not asked again"
        )


async def _fault(http: Any, server: Server) -> str | None:
    """What is wrong with a server's health; None if nothing is."""
    address = server.base_url.rstrip("/").removesuffix("/v1")
    try:
        # A connection of its own: what is asked is also whether new ones are taken.
        reply = await http.get(f"{address}/health", headers={"Connection": "close"})
    except Exception as error:  # of one of two HTTP libraries
        return type(error).__name__
    return None if reply.status_code == 200 else f"HTTP {reply.status_code}"
