"""MCP with a caller at the socket in the home: `accord mcp`, a pipe to here for whoever started it.

Each message is the `params` of a notification `mcp.message`, either way.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from accord.doors.mcp import within
from accord.doors.methods import Connection

if TYPE_CHECKING:
    from accord.doors.mcp.door import Came
    from accord.doors.mcp.server import HubServer

MOST_AT_ONCE = 256  # requests of one caller that are being answered; the next ones wait
_LOOK_S = 0.05  # how often to look whether a caller takes again what was sent

_Stream = Any  # of the SDK's messages


async def serve(server: "HubServer", connection: Connection, came: "Came") -> None:
    """Answer one caller until it is gone."""
    to_server, read = anyio.create_memory_object_stream[Any](0)
    write, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    caller = _Caller(connection)
    async with anyio.create_task_group() as group:
        group.start_soon(caller.take, came, to_server)
        group.start_soon(caller.give, from_server)
        await serve_dual_era_loop(server, read, write, lifespan_state={})
        group.cancel_scope.cancel()


class _Caller:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._room = asyncio.Semaphore(MOST_AT_ONCE)

    async def take(self, came: "Came", to_server: _Stream) -> None:
        """Pass on what the caller says, as whoever it has shown to be by then."""
        while True:
            call, said = await came.get()
            try:
                message = types.jsonrpc_message_adapter.validate_python(said, by_name=False)
            except ValidationError:
                self._send(types.JSONRPCError(jsonrpc="2.0", id=None, error=_NO_MESSAGE))
                call.answer({})
                continue
            speaker = await within.speaker(self._connection.hub, self._connection.session)
            more = ServerMessageMetadata(request_context=speaker, on_request_unanswered=self._free)
            if isinstance(message, types.JSONRPCRequest):
                await self._room.acquire()
            await to_server.send(SessionMessage(message, more))
            call.answer({})

    async def give(self, from_server: _Stream) -> None:
        async for answer in from_server:
            while not self._connection.can_take():
                await asyncio.sleep(_LOOK_S)
            self._send(answer.message)
            if isinstance(answer.message, types.JSONRPCResponse | types.JSONRPCError):
                self._room.release()

    async def _free(self) -> None:
        self._room.release()

    def _send(self, message: types.JSONRPCMessage) -> None:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._connection.peer.send_text(f'{{"jsonrpc":"2.0","method":"mcp.message","params":{text}}}')


_NO_MESSAGE = types.ErrorData(code=types.INVALID_REQUEST, message="This is no message of MCP.")
