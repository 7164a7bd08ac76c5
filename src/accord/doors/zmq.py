"""ZeroMQ on a port of this machine: one JSON-RPC message in each frame. Who has no key neither is heard nor hears.

Everything is CURVE. ZeroMQ asks here about each key (ZAP, its RFC 27) and notes it on whatever comes in with it. It
does not tell when somebody goes: who says nothing for a minute, not even `hub.ping`, is forgotten.
"""

import errno
import socket
import struct
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable

import zmq

from accord import errors
from accord.doors import room
from accord.doors.methods import Connection
from accord.doors.rpc import MOST_BYTES, Call, Peer
from accord.hub.core import Hub
from accord.services.keys import LOCAL, Keys
from accord.services.port import refusal

MOST_CALLERS = 1_000
MOST_IN_FLIGHT = 256  # calls of one caller
MOST_UNTAKEN = 1_000  # messages that wait for a caller to take them; who has more may not ask for more
MOST_WAITING = 20_000  # then it is forgotten: 100 feeds with a page each are half of it
SILENCE_S = 60.0

_ZAP = "inproc://zeromq.zap.01"
_DOMAIN = b"accord"
_AT_ONCE = 200  # messages taken before others in the loop have their turn
_SENT_AHEAD = 100  # messages in the hands of ZeroMQ for one caller: a page of mail
_HANDSHAKE_MS = 10_000
_HEARTBEAT_MS = 15_000  # between the two ends' ZeroMQ: finds machines and processes that stand still
_LINGER_MS = 500  # for the last words when the hub ends
_RETRY_S = 0.02  # to see whether there is room, should the descriptor not have told
_LOOK_S = 5.0  # between looks for callers that are gone, when there are many
_MADE_BY_ZMQ = 0  # the first byte of the ids that ZeroMQ gives to connections


class Door:
    """Open until it is closed."""

    def __init__(self, hub: Hub, port: int | None) -> None:
        self.hub = hub
        self.keys = Keys(hub.home.path)
        self.callers: dict[bytes, Caller] = {}
        self._asked_port = port  # None: that of the settings, or a free one
        self._accepting = True
        self._refused = 0  # handshakes, since it was last logged
        self._full: dict[bytes, Caller] = {}  # those for whom something waits
        self._looked_at = 0.0

    async def open(self) -> None:
        public, secret = self.keys.own()
        self._zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            judge = self._zmq.socket(zmq.REP)
            judge.bind(_ZAP)
            self._router = self._zmq.socket(zmq.ROUTER)
            _set_up(self._router, public, secret)
            self.hub.ports["port"] = self._bind()
        except BaseException:
            self._zmq.destroy(linger=0)
            raise
        self._tell_keys()
        self._watching = _Reader(self.hub, self._router.get_monitor_socket(zmq.EVENT_ACCEPTED), self._accepted)
        self._judging = _Reader(self.hub, judge, self._judge)
        self._reading = _Reader(self.hub, self._router, self._take, self._flush)

    def stop_accepting(self) -> None:
        """Let nobody in any more. Unbinding would cut off those who are in."""
        self._accepting = False

    def close(self) -> None:
        self.stop_accepting()
        for caller in list(self.callers.values()):
            self.forget(caller)
        for reader in (self._reading, self._judging, self._watching):
            reader.close()
        self._zmq.destroy(linger=_LINGER_MS)

    def sweep(self, now: float) -> None:
        self._flush()
        for caller in list(self.callers.values()):
            caller.sweep(now)
        if len(self.callers) > MOST_CALLERS // 2 and now - self._looked_at > _LOOK_S:
            self._looked_at = now
            self._look_who_is_gone(now)
        if self._refused:
            self.hub.count("refused", self._refused)
            self.hub.log.warning("refused", door="zmq", times=self._refused)
            self._refused = 0

    def put(self, id: bytes, data: bytes) -> bool:
        """Send something, without ever waiting; whether it could be taken, or nobody is there any more."""
        try:
            self._router.send_multipart([id, data], zmq.NOBLOCK)
        except zmq.Again:
            self._reading.look_later()
            return False
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:
                raise
            if id in self.callers:
                self.forget(self.callers[id])
        self._reading.look()
        return True

    def is_full(self, caller: "Caller") -> None:
        """Try again when there may be room for it."""
        self._full[caller.id] = caller

    def forget(self, caller: "Caller") -> None:
        self.callers.pop(caller.id, None)
        self._full.pop(caller.id, None)
        caller.close()

    def _bind(self) -> int:
        """The port that was asked for; or that of the settings, and if somebody has it, any other."""
        if self._asked_port is not None:
            return self._bind_to(self._asked_port)
        try:
            return self._bind_to(int(self.hub.settings["hub_port"]))
        except errors.PortInUse:
            self._router.bind("tcp://127.0.0.1:*")
            return int(self._router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])

    def _bind_to(self, port: int) -> int:
        try:
            self._router.bind(f"tcp://127.0.0.1:{port}")
        except zmq.ZMQError as error:
            raise refusal(port, error.errno, error.strerror) from None
        return port

    def _tell_keys(self) -> None:
        """The port may be another than when the files of keys were made."""
        try:
            moved = self.keys.move(f"{LOCAL}{self.hub.ports['port']}")
        except errors.AccordError as error:
            self.hub.log.warning("keys_not_moved", error_code=error.code, reason=str(error))
            return
        if moved:
            self.hub.log.info("keys_moved", port=self.hub.ports["port"], keys=moved)

    def _accepted(self, frames: list[zmq.Frame]) -> None:
        """Somebody connected, and has shown nothing yet. ZeroMQ would let them in until no file can be opened."""
        _event, fd = struct.unpack("=Hi", frames[0].bytes[:6])
        if room.is_there_for(fd):
            return
        try:
            there = socket.socket(fileno=fd)
        except OSError:
            return  # it is gone already
        try:
            # By now it may be something else's, but not of another door.
            if there.family == socket.AF_INET and there.getsockname()[1] == self.hub.ports["port"]:
                self._refused += 1
                there.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it went away just now
        finally:
            there.detach()  # ZeroMQ closes it

    def _judge(self, frames: list[zmq.Frame]) -> None:
        """Answer ZeroMQ's question whether to let a key in. Its name for the caller is the key, in hex."""
        version, request, _domain, _address, _id, mechanism, *credentials = [frame.bytes for frame in frames]
        public = credentials[0].hex() if mechanism == b"CURVE" else ""
        status = self._status(public)
        if status != b"200":
            self._refused += 1
        self._judging.socket.send_multipart([version, request, status, b"", public.encode(), b""], zmq.NOBLOCK)

    def _status(self, public: str) -> bytes:
        try:
            known = bool(public and self.keys.name_of(public))
        except errors.AccordError as error:
            self.hub.failed("keys", error)
            return b"300"
        if known and not self._accepting:
            return b"300"  # for now: it tries again, and may find the next hub
        return b"200" if known else b"400"

    def _take(self, frames: list[zmq.Frame]) -> None:
        """A message that came in."""
        id, public = frames[0].bytes, str(frames[-1].get("User-Id"))
        caller = self.callers.get(id)
        if caller is not None and (caller.public != public or not self.keys.is_allowed(public)):
            self.forget(caller)
            caller = None
        if caller is None:
            caller = self._admit(id, public)
        if caller is not None:
            caller.receive(frames[1:])

    def _admit(self, id: bytes, public: str) -> "Caller | None":
        """Somebody who was not known yet, or is no longer."""
        name = self.keys.name_of(public)
        if not name:
            return None
        if id[0] != _MADE_BY_ZMQ:
            # Another could take it over, and be sent what is meant for this one.
            self._refuse(id, errors.InvalidRequest(reason="the routing id was set, and must be left to ZeroMQ"))
            return None
        if len(self.callers) >= MOST_CALLERS:
            self._refuse(id, errors.TooBusy(most=MOST_CALLERS, what="callers over ZeroMQ"))
            return None
        self.callers[id] = Caller(self, id, public, name)
        return self.callers[id]

    def _refuse(self, id: bytes, error: errors.AccordError) -> None:
        self._refused += 1

        def send(text: str) -> None:
            self.put(id, text.encode())

        Peer(lambda call: None, send).refuse(error)

    def _flush(self) -> None:
        """Send what could not be sent before."""
        for caller in list(self._full.values()):
            if caller.flush():
                self._full.pop(caller.id, None)

    def _look_who_is_gone(self, now: float) -> None:
        """Say something to those who were not heard for a while: it fails where nobody is."""
        for caller in list(self.callers.values()):
            if now - caller.heard_at > _LOOK_S:
                caller.peer.notify("hub.alive", {})


class Caller(Connection):
    """Somebody who is connected, for as long as they are heard and their key is good."""

    def __init__(self, door: Door, id: bytes, public: str, name: str) -> None:
        super().__init__(door.hub, self._send, lambda: None)
        self.id = id  # what ZeroMQ calls the connection
        self.public = public
        self.heard_at = 0.0
        self.can_take = lambda: not self._waiting
        self._door = door
        self._name = name
        self._waiting: deque[bytes] = deque()

    def receive(self, frames: list[zmq.Frame]) -> None:
        self.heard_at = time.monotonic()
        if len(frames) == 1:
            self.peer.receive(frames[0].bytes)
        else:
            self.peer.refuse(errors.ParseError(reason=f"it came in {len(frames)} frames, not in one"))

    def flush(self) -> bool:
        """Send what waits; whether nothing does any more."""
        while self._waiting:
            if not self._door.put(self.id, self._waiting[0]):
                return False
            if self.session.gone:
                return True
            self._waiting.popleft()
        self.unblock()
        return True

    def sweep(self, now: float) -> None:
        if not self._door.keys.is_allowed(self.public):
            self._door.forget(self)
        elif now - self.heard_at > SILENCE_S:
            self.peer.notify("session.ended", {"reason": f"nothing was heard for {SILENCE_S:g} s"})
            self._door.forget(self)
        self.peer.sweep(now)
        if self.peer.malformed:
            self.hub.count("malformed", self.peer.malformed)
            self.hub.log.warning("malformed", door="zmq", key=self._name, times=self.peer.malformed)
            self.peer.malformed = 0

    def _serve(self, call: Call) -> None:
        if len(self.peer.open_calls) > MOST_IN_FLIGHT:
            raise errors.TooBusy(most=MOST_IN_FLIGHT, what="requests of this caller")
        if len(self._waiting) > MOST_UNTAKEN:
            raise errors.TooBusy(most=MOST_UNTAKEN, what="messages to this caller waiting")
        super()._serve(call)

    def _send(self, text: str) -> None:
        if self.session.gone:
            return
        if not self._door.keys.is_allowed(self.public):
            self._door.forget(self)
            return
        data = text.encode()
        if self._waiting or not self._door.put(self.id, data):
            self._waiting.append(data)
            self._door.is_full(self)
        if len(self._waiting) > MOST_WAITING:
            self._door.forget(self)


class _Reader:
    """A socket of ZeroMQ in the loop: `take` gets each message, `done` is called when there are no more for now.

    Its descriptor tells once that something is new, be it a message or room for one, and any use of the socket may use
    that up: who sends asks to `look` afterwards, or, where there was no room, to `look_later`.
    """

    def __init__(
        self,
        hub: Hub,
        socket: "zmq.Socket[bytes]",
        take: Callable[[list[zmq.Frame]], None],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.socket = socket
        self._hub = hub
        self._loop: AbstractEventLoop = hub.loop
        self._fd = int(socket.getsockopt(zmq.FD))
        self._take = take
        self._done = done
        self._will_look = False
        self._timer: TimerHandle | None = None
        self._closed = False
        self._loop.add_reader(self._fd, self._read)
        self.look()

    def look(self) -> None:
        """Soon, see whether there is more."""
        if not self._will_look:
            self._will_look = True
            self._loop.call_soon(self._read)

    def look_later(self) -> None:
        """At once if a message is there; else, not to spin, after a moment."""
        if int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self.look()
        elif self._timer is None:
            self._timer = self._loop.call_later(_RETRY_S, self._on_timer)

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._fd)

    def _on_timer(self) -> None:
        self._timer = None
        self._read()

    def _read(self) -> None:
        self._will_look = False
        for _ in range(_AT_ONCE):
            if self._closed:
                return
            try:
                frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                self._done()
                return
            try:
                self._take(frames)
            except Exception as error:
                self._hub.failed("zmq", error)
        self.look()


def _set_up(router: "zmq.Socket[bytes]", public: str, secret: str) -> None:
    router.curve_server = True
    router.curve_publickey = public.encode()
    router.curve_secretkey = secret.encode()
    router.zap_domain = _DOMAIN
    router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # without, all are let in when nobody answers about keys
    router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # say so when nobody is there, or takes no more
    router.setsockopt(zmq.SNDHWM, _SENT_AHEAD)
    router.setsockopt(zmq.MAXMSGSIZE, 2 * MOST_BYTES)  # somewhat too much is answered, more cuts the connection
    router.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
    router.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
    router.setsockopt(zmq.HEARTBEAT_TIMEOUT, int(SILENCE_S * 1000))
    router.setsockopt(zmq.LINGER, _LINGER_MS)
