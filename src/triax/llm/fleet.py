"""Several servers of one model as one: they come and go, and calls go where a server is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from triax.llm.endpoint import Endpoint, EndpointError
from triax.llm.http import ChatCompleter, Structured, TokenLimitField
from triax.llm.server_watch import Member, ServerWatch, Wanted
from triax.llm.servers import Server

T = TypeVar("T")


class FleetCompleter(ChatCompleter):
    """A model that several servers serve, each a job that may end at any time.

    The servers are those of the files in a folder (slurm/llm_server.sbatch writes them). A call
    goes to the server with the fewest calls of this process under way. When a server is gone,
    what it had not answered is sent to another; one that appears later is used from then on; one
    whose file is gone gets nothing new and may end what it has. Where none is left the calls wait
    for one. The cache key holds no address, so a later job finds the calls of an earlier one.

    Args:
        model: name of the model at the servers; servers of other models are passed over.
        folder: of the files.
        job: Slurm's number of the server's job or array. Only its servers are used, and nothing
            waits for it when it has ended. None: all in the folder.
        wait_s: seconds to wait for a server while there is none.
        api_key_env: name of the environment variable that holds the servers' key.
        max_concurrent: calls of this process under way at each server.
        max_retries: further tries of one call, and the most servers that one call may lose.
        timeout_s: seconds that one try may take.
        poll_s: seconds between two looks into the folder and at the servers' health.
        endpoint_name: what the cache calls the servers.
        extra_body, structured, revision, token_limit_field: see `ChatCompleter`.
        backoff_s: see `Endpoint`.

    Raises:
        NoServerError: from `complete`; results that came before it are kept by a cache.
    """

    def __init__(
        self,
        model: str,
        folder: Path | str,
        job: int | str | None = None,
        wait_s: int | float = 1800.0,
        api_key_env: str | None = None,
        max_concurrent: int = 64,
        max_retries: int = 6,
        timeout_s: int | float = 600.0,
        poll_s: int | float = 3.0,
        extra_body: Mapping[str, Any] | None = None,
        structured: Structured = "auto",
        revision: str = "",
        endpoint_name: str = "servers",
        token_limit_field: TokenLimitField = "max_tokens",
        backoff_s: int | float = 0.5,
    ) -> None:
        def open_endpoint(base_url: str) -> Endpoint:
            return Endpoint(
                base_url,
                api_key_env,
                max_concurrent,
                max_retries,
                timeout_s,
                backoff_s,
                is_one_of_many=True,
            )

        job = None if job is None else str(job)
        wanted = Wanted(model, Path(folder).expanduser(), job, wait_s, poll_s)
        fleet = Fleet(wanted, open_endpoint)
        super().__init__(
            model, fleet, endpoint_name, extra_body, structured, revision, token_limit_field
        )


class Fleet:
    """Carries requests to whichever server of a model is there; see `FleetCompleter`.

    Args:
        wanted: which servers, and how long to wait for one.
        open_endpoint: makes the endpoint of an address; `is_one_of_many` should be set in it.
    """

    def __init__(self, wanted: Wanted, open_endpoint: Callable[[str], Endpoint]) -> None:
        self.wanted = wanted
        self.num_resent = 0
        self._open_endpoint = open_endpoint
        self._endpoints: dict[str, Endpoint] = {}
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, ServerWatch] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"Fleet({self.wanted!r})"

    @property
    def num_retries(self) -> int:
        """Tries beyond the first, at the same server or at another."""
        return self.num_resent + sum(one.num_retries for one in self._endpoints.values())

    def endpoint_of(self, server: Server) -> Endpoint:
        """The endpoint of a server's address."""
        if server.base_url not in self._endpoints:
            self._endpoints[server.base_url] = self._open_endpoint(server.base_url)
        return self._endpoints[server.base_url]

    @asynccontextmanager
    async def session(self) -> AsyncIterator[ServerWatch]:
        """Watches the servers while calls are inside; ends when the last one leaves."""
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = ServerWatch(self.wanted, self.endpoint_of)
        watch.users += 1
        try:
            yield watch
        finally:
            watch.users -= 1
            if watch.users == 0:
                self._watches.pop(loop, None)
                await watch.close()

    async def post(
        self, path: str, body: Mapping[str, Any], read: Callable[[dict[str, Any]], T]
    ) -> tuple[T, float]:
        """As `Endpoint.post`, at one server after another until one answers.

        Raises:
            EndpointError: a server refused the call, or as many were lost with it as it may try.
            NoServerError: there is no server and none came in time.
        """
        num_lost = 0
        async with self.session() as watch:
            while True:
                member, slot = await watch.take()
                try:
                    call = member.endpoint.post(path, body, read)
                    return await _unless_lost(call, member)
                except EndpointError as error:
                    if not error.is_lost:
                        raise
                    watch.suspect(member, str(error))
                    num_lost += error.was_sent
                    # A request that brings servers down must not bring all of them down.
                    if num_lost > member.endpoint.max_retries:
                        raise EndpointError(f"{error} ({num_lost} servers lost with it)") from None
                    self.num_resent += 1
                finally:
                    watch.give_back(member, slot)


async def _unless_lost(call: Awaitable[T], member: Member) -> T:
    """The result of a call; an error as soon as its server is known to be gone."""
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait({task, member.lost}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise EndpointError(f"{member.endpoint.base_url}: {member.lost.result()}", is_lost=True)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
