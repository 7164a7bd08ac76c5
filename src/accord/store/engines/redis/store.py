"""A store on a Redis server."""

import os

from accord import errors
from accord.store.contract import LOCK_WAIT_S, Committed, Instant, Opened, check_commit
from accord.store.engines.redis import commits, loading, reading, scripts
from accord.store.engines.redis.address import Address
from accord.store.engines.redis.server import Script, Server, Stale
from accord.store.engines.redis.watching import Watch
from accord.store.engines.redis.wire import Wire, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Content, Write
    from accord.store.engines.redis.wire import Reply
    from accord.store.protocols import Snapshot

_OPENING_S = 1.0  # long enough for a server that is started anew, and not too long for a wrong address

TOUCH = Script(scripts.TOUCH)


class Redis:
    """Optimistic, like memory: no lock, and reads that are newer than their snapshot are `Moved`."""

    patience_s = LOCK_WAIT_S

    def __init__(self, address: Address) -> None:
        self._address = address
        self._opened = Opened(address.shown)
        self._server = Server(address)
        self._server.patiently(lambda wire, left_s: None, _OPENING_S)
        self._then = _confirmation(address)

    @property
    def durability(self) -> str:
        return self._server.facts.durability

    @property
    def server(self) -> str:
        """Which one it is, for people."""
        return self._server.facts.server

    def server_clock_s(self) -> float:
        return self.now().seconds

    def snapshot(self) -> reading.Snapshot:
        return reading.Snapshot(self._usable(), self._opened)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        server = self._usable()
        order = commits.Order(checks, writes)
        read_from = getattr(snapshot, "fixed_epoch", b"")

        def ask(wire: Wire, left_s: float) -> "list[Reply]":
            keys = server.keys
            arguments = order.arguments(keys.gen, read_from or server.epoch)
            return server.run(wire, commits.COMMIT, order.keys(keys), arguments, left_s, self._then)

        while True:
            try:
                found = server.patiently(ask, timeout_s, repeatable=not writes)
                break
            except Stale:
                pass  # and nothing was done
        done = commits.done(found[0], server)
        if writes:
            self._check_confirmed(found)
        return done

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> Watch:
        return Watch(self._usable(), self._opened, tuple(prefixes), since, epoch)

    def now(self) -> Instant:
        return reading.Snapshot(self._usable(), self._opened).now()

    def sync(self) -> None:
        """What a server that flushes always has answered is durable; replicas are asked."""
        server = self._usable()
        if self._then:
            meta = server.keys.meta
            found = server.patiently(
                lambda wire, left_s: server.run(
                    wire, TOUCH, (meta,), (os.urandom(4).hex().encode(),), left_s, self._then
                )
            )
            self._check_confirmed(found)

    def load(self, contents: "Iterable[Content]") -> None:
        loading.load(self._usable(), contents)

    def close(self) -> None:
        self._opened.closed = True
        self._server.close()

    def _usable(self) -> Server:
        self._opened.check()
        return self._server

    def _check_confirmed(self, found: "Sequence[Reply]") -> None:
        """Whether as many have it as the URL demands."""
        address = self._address
        demanded = address.copies or address.replicas
        if not demanded:
            return
        have = found[1] if isinstance(found[1], list) else [found[1]]
        if any(count < least for count, least in zip(have, demanded, strict=True)):
            of = "own log and replicas' logs" if address.copies else "replicas"
            reason = f"{_text(have)} of {_text(demanded)} ({of}) confirmed it within {address.timeout_s:g} s"
            raise errors.OutcomeUnknown(path=address.shown, reason=reason)


def _confirmation(address: Address) -> bytes:
    """The command that waits until others have what was committed."""
    within = b"%d" % (address.timeout_s * 1000)
    if address.copies:
        return pack(b"WAITAOF", *[b"%d" % count for count in address.copies], within)
    return pack(b"WAIT", b"%d" % address.replicas[0], within) if address.replicas else b""


def _text(counts: "Sequence[int]") -> str:
    return ",".join(str(count) for count in counts)
