"""The socket in the home: one JSON-RPC message on each line.

Only whoever runs the hub is served, and in a home that a group shares its members, each under their own uid.
"""

import asyncio
import os
import socket
import time
from collections import deque
from functools import partial
from typing import Any

from accord import errors, place, platform
from accord.doors import command, room
from accord.doors.mcp import door as mcp
from accord.doors.methods import Connection
from accord.doors.rpc import MOST_BYTES
from accord.hub.core import Hub
from accord.store.local import folder

MOST_CONNECTIONS = 4_000
MOST_IN_FLIGHT = 256  # calls of one connection; who has more waits to be read
MOST_READING = 8  # of these, whose answers may be large
STALLED_S = 60.0  # for how long a caller may leave untaken what was sent to it
_BACKLOG = 512


class Door:
    """Listens until it is closed."""

    def __init__(self, hub: Hub) -> None:
        self.connections: set[Line] = set()
        self._hub = hub
        self._path = hub.files.socket
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Take the place of a socket that a killed hub left; the hub's lock says that no other is there."""
        there = os.path.dirname(self._path)
        folder.make_folder(there)
        if not place.is_ours(there):
            raise errors.DataDirError(path=there, errno=1, reason="it is not this user's alone")
        folder.unlink_if_there(self._path)
        listening = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        try:
            listening.bind(self._path)
        finally:
            os.umask(mask)
        if place.is_shared(there):
            os.chmod(self._path, 0o660)
        self._server = await self._hub.loop.create_unix_server(partial(Line, self), sock=listening, backlog=_BACKLOG)

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            folder.unlink_if_there(self._path)

    def close(self) -> None:
        self.stop_accepting()
        for line in list(self.connections):
            line.close()

    def sweep(self, now: float) -> None:
        for line in list(self.connections):
            line.sweep(now)


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._hub = door._hub
        self._start: list[bytes] = []  # of a line whose end has not come yet
        self._size = 0
        self._skipping = False  # the rest of a line that is too long
        self._lines: deque[bytes] = deque()  # that are not begun with
        self._beginning = False
        self._paused = False
        self._full = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        peer = transport.get_extra_info("socket")
        uid, pid = platform.peer_of(peer)
        is_member = self._hub.home.admits(uid, platform.groups_of(peer))
        has_room = len(self._door.connections) < MOST_CONNECTIONS and room.is_there_for(peer.fileno(), known=True)
        if not is_member or not has_room:
            self._hub.count("refused")
            self._hub.log.warning("refused", door="unix", uid=uid, pid=pid)
            transport.abort()
            return
        session = self._hub.session(pid, uid)
        self._connection = Connection(self._hub, self._send, self._answered, session)
        self._connection.own["cli.run"] = partial(command.start, self._connection)
        self._connection.own["mcp.open"] = partial(mcp.of(self._hub).begin, self._connection)
        self._connection.can_take = lambda: not self._full
        self._door.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._door.connections:
            self._door.connections.discard(self)
            self._connection.close()

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._start, lines[0]])
            self._start, self._size = [], 0
            if self._skipping:
                self._skipping = False
                lines = lines[1:]  # that was the end of it
            self._lines.extend(line for line in lines if line.strip())
        self._start.append(rest)
        self._size += len(rest)
        if self._size > MOST_BYTES:
            if not self._skipping:
                self._connection.peer.refuse(errors.ParseError(reason=f"a line of more than {MOST_BYTES} bytes"))
            self._start, self._size, self._skipping = [], 0, True
        self._begin()

    def _begin(self) -> None:
        """Begin with what has come, as much as there may be in flight."""
        if self._beginning:
            return  # something was answered at once
        self._beginning = True
        while self._lines and not self._must_wait():
            self._connection.peer.receive(self._lines.popleft())
        self._beginning = False
        self._hold_back()

    def pause_writing(self) -> None:
        self._full = True
        self._full_since = time.monotonic()
        self._hold_back()

    def resume_writing(self) -> None:
        self._full = False
        self._begin()
        self._connection.unblock()

    def close(self) -> None:
        self._transport.close()

    def sweep(self, now: float) -> None:
        peer = self._connection.peer
        peer.sweep(now)
        if self._full and now - self._full_since > STALLED_S:
            self._hub.count("stalled")
            self._transport.abort()
            return
        if any(call.method == "cli.run" for call in peer.open_calls):
            peer.notify("cli.alive", {})
        if peer.malformed:
            self._hub.count("malformed", peer.malformed)
            self._hub.log.warning("malformed", door="unix", pid=self._connection.session.pid, times=peer.malformed)
            peer.malformed = 0

    def _send(self, text: str) -> None:
        if not self._transport.is_closing():
            self._transport.write(text.encode() + b"\n")

    def _answered(self) -> None:
        if self._paused:
            self._begin()

    def _must_wait(self) -> bool:
        """Whether it has much in flight, or does not take its answers."""
        connection = self._connection
        return self._full or len(connection.peer.open_calls) >= MOST_IN_FLIGHT or connection.reading >= MOST_READING

    def _hold_back(self) -> None:
        """Read no more from who must wait."""
        must = bool(self._lines) or self._must_wait()
        if must and not self._paused:
            self._transport.pause_reading()
        elif not must and self._paused:
            self._transport.resume_reading()
        self._paused = must
