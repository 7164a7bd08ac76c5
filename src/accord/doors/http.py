"""HTTP on this machine, for programs and pages: the port. What is behind it is loaded once the hub has started."""

import asyncio
import socket
from typing import TYPE_CHECKING

from accord import errors
from accord.hub.core import Hub
from accord.services.port import refusal

if TYPE_CHECKING:
    from accord.doors.http_server import Server

ADDRESS = "127.0.0.1"
_BACKLOG = 512


class Door:
    """Listens until it is closed."""

    def __init__(self, hub: Hub, port: int | None = None) -> None:
        self._hub = hub
        self._wanted = port  # by whoever started the hub; None: the one of the settings, or any that is free
        self._socket: socket.socket | None = None
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._socket = self._listen()
        self._hub.ports["http_port"] = self._socket.getsockname()[1]
        self._hub.loop.add_reader(self._socket, self._first_came)

    def prepare(self) -> None:
        """Load it while nobody waits: when the first caller comes, another version of accord may lie on the disk."""
        self._hub.run_in_thread(_load_all, lambda server, error: None)

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.stop()
        elif self._socket is not None:
            self._hub.loop.remove_reader(self._socket)
            self._socket.close()
        self._socket = None

    def close(self) -> None:
        self.stop_accepting()
        if self._server is not None:
            self._server.force_exit = True

    def sweep(self, now: float) -> None:
        if self._server is not None:
            self._server.sweep(now)

    def _listen(self) -> socket.socket:
        if self._wanted is not None:
            return self._listen_at(self._wanted)
        port = self._hub.settings["http_port"]
        try:
            return self._listen_at(port)
        except errors.AccordError as error:
            self._hub.log.warning("another_port", door="http", reason=str(error))
            return self._listen_at(0)

    def _listen_at(self, port: int) -> socket.socket:
        listening = socket.socket()
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # else a restart waits for old connections
            listening.bind((ADDRESS, port))
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except OSError as error:
            listening.close()
            raise refusal(port, error.errno, error.strerror) from None
        return listening

    def _first_came(self) -> None:
        """Whoever it is waits in the backlog while the server is loaded, in a thread: others go on meanwhile."""
        if self._socket is not None:
            self._hub.loop.remove_reader(self._socket)
            self._hub.run_in_thread(_load, self._loaded)

    def _loaded(self, server: "type[Server] | None", error: BaseException | None) -> None:
        if self._socket is None:
            return  # it stops already
        if server is None:
            self._hub.failed("http", error or ImportError())
            self.stop_accepting()
            return
        self._server = server(self._hub, self._socket.getsockname()[1])
        self._serving = self._hub.loop.create_task(self._server.serve(sockets=[self._socket]))


def _load_all() -> None:
    from accord.doors.mcp import door

    _load()
    door.prepare()


def _load() -> "type[Server]":
    import uvicorn.lifespan.off  # noqa: F401  # which it only names, and loads when it begins

    from accord.doors.http_server import Server

    return Server
