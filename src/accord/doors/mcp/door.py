"""MCP of one hub, for the doors that lead to it. The SDK is loaded for the first caller, in a thread: others go on."""

import asyncio
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from accord import errors
from accord.doors.methods import Connection
from accord.doors.rpc import Call
from accord.errors.table import to_json
from accord.hub.core import Hub

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from accord.doors.mcp.server import Http, HubServer

Came = asyncio.Queue[tuple[Call, dict[str, Any]]]  # messages of one caller at the socket, as they came

_of_hubs: "WeakKeyDictionary[Hub, Mcp]" = WeakKeyDictionary()


class Mcp:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._loading: asyncio.Future[_Loaded] | None = None
        self._server: HubServer | None = None
        self._http: Http | None = None

    def begin(self, connection: Connection, call: Call, params: dict[str, Any]) -> None:
        """`mcp.open`: from here on this caller speaks MCP, in notifications `mcp.message`."""
        if "mcp.message" in connection.own:
            raise errors.InvalidRequest(reason="MCP was begun on this connection already")
        came: Came = asyncio.Queue()
        connection.own["mcp.message"] = partial(_take, came)
        serving = self._hub.loop.create_task(self._serve(connection, came))
        connection.at_end.append(serving.cancel)
        call.answer({})

    async def _serve(self, connection: Connection, came: Came) -> None:
        try:
            server = await self.server()
            await (await self._load()).serve(server, connection, came)
        except Exception as error:
            self._hub.failed("mcp", error)
            await _refuse(connection, came)

    async def server(self) -> "HubServer":
        if self._server is None:
            loaded = await self._load()
            self._server = self._server or loaded.HubServer(self._hub)
        return self._server

    async def http(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """What comes to /mcp, from whom the door has let in."""
        server = await self.server()
        if self._http is None:
            loaded = await self._load()
            self._http = self._http or loaded.Http(self._hub, server)
        await self._http(scope, receive, send)

    async def _load(self) -> "_Loaded":
        """What needs the SDK; one thread loads it, however many ask."""
        if self._loading is None:
            self._loading = self._hub.loop.run_in_executor(self._hub.pool, _load)
        return await asyncio.shield(self._loading)


def of(hub: Hub) -> Mcp:
    """The one of a hub."""
    if hub not in _of_hubs:
        _of_hubs[hub] = Mcp(hub)
    return _of_hubs[hub]


def _take(came: "Came", call: Call, params: dict[str, Any]) -> None:
    # It counts as being in flight until it is looked at: a caller with too many is not read.
    came.put_nowait((call, params))


async def _refuse(connection: Connection, came: Came) -> None:
    """Tell a caller that nobody will answer it, as where the SDK cannot be loaded."""
    while True:
        call, said = await came.get()
        call.answer({})
        if "method" in said and "id" in said:
            refused = {"jsonrpc": "2.0", "id": said["id"], "error": to_json(errors.AccordError())}
            connection.peer.notify("mcp.message", refused)


class _Loaded(NamedTuple):
    """What needs the SDK."""

    HubServer: "type[HubServer]"
    Http: "type[Http]"
    serve: Any


_WITH_SDK = ("accord.doors.mcp.server", "accord.doors.mcp.lines")
_codes: "dict[str, CodeType]" = {}  # of these, as they were when the hub started


def prepare() -> None:
    """Read all of accord that MCP needs, while nobody waits: later, another version may lie on the disk.

    What would import the SDK is only read, and run when the first caller comes.
    """
    from accord.doors.mcp import changes, resources, within  # noqa: F401

    for name in _WITH_SDK:
        spec: Any = find_spec(name)
        _codes[name] = spec.loader.get_code(name)


def _load() -> _Loaded:
    server, lines = [sys.modules.get(name) or _run(name) for name in _WITH_SDK]
    return _Loaded(server.HubServer, server.Http, lines.serve)


def _run(name: str) -> Any:
    """A module, from what was read of it."""
    if name not in _codes:
        return import_module(name)
    module = sys.modules[name] = ModuleType(name)
    try:
        exec(_codes[name], module.__dict__)  # noqa: S102  # our own, as an import would
    except BaseException:
        del sys.modules[name]
        raise
    return module
