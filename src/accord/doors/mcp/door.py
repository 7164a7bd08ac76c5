"""MCP of one hub, for the doors that lead to it. The SDK is loaded for the first caller, in a thread: others go on."""

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from starlette.types import Receive, Scope, Send

from accord.hub.core import Hub

if TYPE_CHECKING:
    from accord.doors.mcp.server import Http, HubServer

_of_hubs: "WeakKeyDictionary[Hub, Mcp]" = WeakKeyDictionary()


class Mcp:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._loading: asyncio.Future[Any] | None = None
        self._server: HubServer | None = None
        self._http: Http | None = None

    async def server(self) -> "HubServer":
        if self._server is None:
            module = await self._load()
            self._server = self._server or module.HubServer(self._hub)
        return self._server

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What comes to /mcp, from whom the door has let in."""
        server = await self.server()
        if self._http is None:
            module = await self._load()
            self._http = self._http or module.Http(self._hub, server)
        await self._http(scope, receive, send)

    async def _load(self) -> Any:
        """The module with all that needs the SDK; one thread loads it, however many ask."""
        if self._loading is None:
            self._loading = self._hub.loop.run_in_executor(self._hub.pool, _load)
        return await asyncio.shield(self._loading)


def of(hub: Hub) -> Mcp:
    """The one of a hub."""
    if hub not in _of_hubs:
        _of_hubs[hub] = Mcp(hub)
    return _of_hubs[hub]


def _load() -> Any:
    from accord.doors.mcp import server

    return server
