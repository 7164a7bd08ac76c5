"""Firebase's Realtime Database, by REST: `firebase://PROJECT/PATH?url=https://HOST&key=FILE`.

Nothing is ever written but under the ETag of what was there (but for places nobody uses yet or any more). See
docs/design/engines.md for how that becomes transactions.
"""

from _thread import allocate_lock
from time import monotonic

from accord import errors
from accord.store.contract import LOCK_WAIT_S, Committed, Opened, check_commit
from accord.store.engines.firebase import record
from accord.store.engines.firebase.clock import Clock
from accord.store.engines.firebase.place import Where
from accord.store.engines.firebase.rest import NULL_ETAG, Ask, Rest
from accord.store.engines.firebase.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Content, Instant, Write
    from accord.store.engines.firebase.record import Head
    from accord.store.engines.firebase.rest import Reply
    from accord.store.engines.firebase.watch import Watch


def open_store(place: str) -> "Firebase":
    return Firebase(Where(place))


def beside(place: str, name: str) -> str:
    """Below `data`, where accord's security rules let it write anything."""
    from urllib.parse import unquote

    from accord.store.remote.place import with_path

    return with_path(place, f"{unquote(Where(place).path)}/data/{name}")


def remove(place: str) -> None:
    from accord.store.engines.firebase.loading import remove

    rest = Rest(Where(place))
    try:
        remove(rest)
    finally:
        rest.close()


class Firebase:
    """An optimistic engine. Threads share its connections, and commit one after another."""

    durability = "power"
    patience_s = LOCK_WAIT_S

    def __init__(self, where: Where) -> None:
        self.rest = Rest(where)
        self.server = f"a Realtime Database at {where.endpoint.shown}"
        self.known_head: Head | None = None
        self._applied: tuple[str, int] = "", 0
        self._clock = Clock(self.rest)
        self._opened = Opened(where.shown)
        self._commits = allocate_lock()

    def snapshot(self) -> Snapshot:
        self._opened.check()
        return Snapshot(self, self._opened)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "object | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        from accord.store.engines.firebase.committing import Commit

        check_commit(checks, writes)
        self._opened.check()
        began = monotonic()
        if not self._commits.acquire(True, max(0.0, timeout_s)):
            raise errors.Contention(tries=1, timeout_seconds=timeout_s)
        try:
            seen = snapshot if isinstance(snapshot, Snapshot) else None
            return Commit(self, checks, writes, seen, timeout_s - (monotonic() - began)).run()
        finally:
            self._commits.release()

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "Watch":
        from accord.store.engines.firebase.watch import Watch

        self._opened.check()
        self.current()  # which makes the store, if there is none
        return Watch(self.rest, self._opened, prefixes, since, epoch)

    def now(self) -> "Instant":
        self._opened.check()
        return self._clock.now()

    def sync(self) -> None:
        self._opened.check()

    def load(self, contents: "Iterable[Content]") -> None:
        from accord.store.engines.firebase.loading import load

        self._opened.check()
        load(self, contents)

    def close(self) -> None:
        self._opened.closed = True
        if not self._opened.is_inherited():
            self.rest.close()

    # For the parts of the engine.

    def current(self) -> "Head":
        """The last commit now."""
        return self.look([])[0]

    def look(self, asks: "Sequence[Ask]") -> "tuple[Head, list[Reply]]":
        """The last commit now, and what was asked together with that."""
        known = self.known_head
        clock = self._clock.ask()
        head = Ask("head", None, known.etag if known is not None else "?")
        replies = self.rest.ask([head, *asks, *([clock] if clock else [])])
        time = replies.pop() if clock else None
        found = known if replies[0].status == 304 and known is not None else self.head_of(replies[0])
        if time:
            self._clock.learn(time)
        return found, replies[1:]

    def head_of(self, reply: "Reply") -> "Head":
        """The last commit, as somebody was told it."""
        while not reply.etag or not reply.text.strip() or reply.text.strip() == b"null":
            if reply.etag == NULL_ETAG:
                self.rest.put("head", record.first().node, NULL_ETAG)
            reply = self.rest.get("head", "?")
            if not reply.etag:
                raise errors.EngineUnreachable(
                    path=self.rest.shown, reason="what answers there is no Realtime Database"
                )
        head = record.read(reply, self.rest.shown)
        known = self.known_head
        if known is not None and known.id == head.id:
            return known
        self.known_head = head
        return head

    def is_applied(self, head: "Head") -> bool:
        data, revision = self._applied
        return head.is_applied_anyway or (data == head.data and head.revision <= revision)

    def note_applied(self, head: "Head") -> None:
        data, revision = self._applied
        if data != head.data or head.revision > revision:
            self._applied = head.data, head.revision
