"""The server behind the HTTP door: uvicorn, in the hub's own loop, with limits on what a connection may hold up."""

import logging
import time
from asyncio import Event, Transport
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from accord.doors import room
from accord.doors.http_routes import Routes
from accord.hub.core import Hub

MOST_CONNECTIONS = 500
REQUEST_WITHIN_S = 10.0  # the whole of it, counted from the connection or from the answer before
STALLED_S = 60.0  # for how long a caller may take nothing of what was sent to it
KEEP_ALIVE_S = 5

_MOST_HEADER_BYTES = 16 << 10

# On every answer: pages of another origin shall not even be able to load it as something that it is not.
_HEADERS = [
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]


class State(ServerState):
    """What connections share."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0  # connections that took too long, or one too many, since the last sweep
        self.malformed = 0  # requests that were no HTTP, since then


class Server(uvicorn.Server):
    server_state: State

    def __init__(self, hub: Hub, port: int) -> None:
        # Whatever strangers send would be told on standard error, and fill the disk.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._hub = hub
        self._routes = Routes(hub, port)
        self._stopped = Event()
        super().__init__(
            uvicorn.Config(
                self._routes.application(),
                http=Protocol,
                ws="none",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,  # it would have to be made anew each second
                headers=_HEADERS,
                timeout_keep_alive=KEEP_ALIVE_S,
                h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
            )
        )
        self.server_state = State()

    async def serve(self, sockets: Any = None) -> None:
        """Without uvicorn's handling of signals, which are the hub's."""
        await self._serve(sockets)

    async def main_loop(self) -> None:
        """Uvicorn's own looks ten times a second whether it is to stop."""
        await self.on_tick(0)
        await self._stopped.wait()

    def stop(self) -> None:
        """Accept nothing more, and end each connection when it is answered."""
        self.should_exit = True
        self._stopped.set()

    def sweep(self, now: float) -> None:
        self._routes.sweep(now)
        for connection in list(self.server_state.connections):
            if isinstance(connection, Protocol):
                connection.sweep(now)
        for counting in (self.server_state, self._routes):
            self._tell("refused", counting.refused)
            self._tell("malformed", counting.malformed)
            counting.refused = counting.malformed = 0

    def _tell(self, what: str, times: int) -> None:
        if times:
            self._hub.count(what, times)
            self._hub.log.warning(what, door="http", times=times)


class Protocol(H11Protocol):
    """One connection."""

    server_state: State

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._since = time.monotonic()  # when it was the caller's turn to send a request
        self._unsent = 0
        self._moved_at = self._since  # when the caller last took something
        peer = transport.get_extra_info("socket")
        if len(self.connections) > MOST_CONNECTIONS or (peer and not room.is_there_for(peer.fileno())):
            self._make_room()

    def on_response_complete(self) -> None:
        self._since = time.monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self.server_state.malformed += 1
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()  # in the middle of an answer

    def sweep(self, now: float) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent or not unsent:
            self._unsent, self._moved_at = unsent, now
        is_late = self._owes_request() and now - self._since > REQUEST_WITHIN_S
        if is_late or now - self._moved_at > STALLED_S:
            self._drop()

    def _owes_request(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _make_room(self) -> None:
        """Whoever has kept us waiting the longest goes: holding connections open shuts nobody out."""
        waiting = [other for other in self.connections if isinstance(other, Protocol) and other._owes_request()]
        min(waiting, key=lambda other: other._since)._drop()

    def _drop(self) -> None:
        self.server_state.refused += 1
        self.connections.discard(self)
        self.transport.abort()
