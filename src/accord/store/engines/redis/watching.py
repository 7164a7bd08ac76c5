"""Watches: the log is a stream, which the server hands on as it grows."""

import threading
import time
from collections import deque

from accord import errors
from accord.store.contract import LOCK_WAIT_S, Change, Opened
from accord.store.engines.redis import scripts
from accord.store.engines.redis.server import Script, Server, Stale
from accord.store.engines.redis.wire import Lost, Wire, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.redis.wire import Reply

FOLLOW = Script(scripts.FOLLOW)

_AT_ONCE = b"1000"  # changes
_LOOK_S = 5.0  # without a change, it looks whether the store is still the same
_PAUSE_S = 0.2  # between tries to reach the server
_LAST = b"18446744073709551615"  # place of the log at a revision


class Watch:
    def __init__(self, server: Server, opened: Opened, prefixes: tuple[str, ...], since: int, epoch: str) -> None:
        self.revision = since
        self._server = server
        self._opened = opened
        self._prefixes = prefixes
        self._found: deque[Change] = deque()  # to be given out, those too of which no key matches
        self._closed = threading.Event()
        self._asking = threading.Lock()
        self._wire: Wire | None = None
        self._looked_at = time.monotonic()
        self._lost_at: float | None = None
        while True:
            try:
                facts = server.read(FOLLOW, lambda keys: (keys.meta, keys.log), ())
                break
            except Stale:
                pass
        newest = facts[0].split(b" ")
        self._epoch: bytes = epoch.encode() or newest[0]
        self._check(facts)
        self._at: bytes = facts[2] if since == int(newest[1]) else b"%d-%b" % (since, _LAST)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def next(self, timeout_s: float) -> Change | None:
        self._opened.check_process()
        deadline = time.monotonic() + timeout_s
        with self._asking:
            try:
                return self._next(deadline)
            finally:
                if self._closed.is_set():
                    self._drop()

    def close(self) -> None:
        self._closed.set()
        if self._opened.is_inherited():
            return  # the connection is the parent's, who may wait on it
        if self._asking.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._asking.release()
        elif (wire := self._wire) is not None:
            wire.interrupt()  # and whoever asks drops it

    def _next(self, deadline: float) -> Change | None:
        while not self._closed.is_set():
            while self._found:
                change = self._found.popleft()
                self.revision = change.revision
                if change.keys:
                    return change
            left_s = deadline - time.monotonic()
            try:
                if self._read(left_s) or left_s > 0:
                    continue
            except Lost as lost:
                self._drop()
                self._count_on(lost)
                if left_s <= 0:
                    return None
                self._closed.wait(min(_PAUSE_S, left_s))
                continue
            return None
        return None

    def _read(self, left_s: float) -> bool:
        """Wait for changes, for a while at most; whether there were any."""
        wire = self._wire or self._connect()
        if self._closed.is_set():
            return False
        block_s = max(0.001, min(left_s, _LOOK_S))
        block = (b"BLOCK", b"%d" % (block_s * 1000)) if left_s > 0 else ()
        command = pack(b"XREAD", *block, b"COUNT", _AT_ONCE, b"STREAMS", self._server.keys.log, self._at)
        found = wire.ask(command, timeout_s=block_s + self._server.address.timeout_s)[0]
        self._lost_at = None
        if found:
            self._take(found[0][1])
            return True
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._look(wire)
        return False

    def _take(self, entries: "Reply") -> None:
        """Dense revisions tell whether one is missing; whatever else the log has ends this history."""
        last = self._found[-1].revision if self._found else self.revision
        for place, (kind, text, *_) in entries:
            if kind == b"keys":
                revision = int(place.partition(b"-")[0])
                if revision != last + 1:
                    raise self._gone(revision - 1)
                self._found.append(Change(revision, self._matching(text.decode())))
                last = revision
            elif kind != b"epoch" or text != self._epoch:
                raise self._gone(last)
            self._at = place
        first, _, second = self._at.partition(b"-")
        self._server.saw(self._epoch, int(first), second)
        self._looked_at = time.monotonic()

    def _matching(self, text: str) -> tuple[tuple[str, str], ...]:
        keys = [key.rpartition("/") for key in text.split(" ")]
        return tuple((collection, id) for collection, _, id in keys if collection.startswith(self._prefixes))

    def _connect(self) -> Wire:
        self._wire = wire = self._server.connect()
        self._look(wire)
        return wire

    def _look(self, wire: Wire) -> None:
        """Whether the history still is the one that was begun with."""
        keys = self._server.keys
        try:
            facts = self._server.run(wire, FOLLOW, (keys.meta, keys.log), (keys.gen,))[0]
        except Stale:
            return self._look(wire)
        self._check(facts)
        self._looked_at = time.monotonic()

    def _check(self, facts: "Reply") -> None:
        epoch, newest, *_ = facts[0].split(b" ")
        floor = int(facts[1])
        if epoch != self._epoch or not floor <= self.revision <= int(newest):
            raise self._gone(floor)

    def _gone(self, oldest: int) -> errors.HistoryGone:
        return errors.HistoryGone(since=self.revision, oldest=oldest)

    def _count_on(self, lost: Lost) -> None:
        """A server may be away for a while, and not for long."""
        now = time.monotonic()
        self._lost_at = self._lost_at or now
        if now - self._lost_at > LOCK_WAIT_S and not self._closed.is_set():
            raise self._server.unreachable(lost)

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
