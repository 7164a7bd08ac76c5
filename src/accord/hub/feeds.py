"""What is pushed to those who listen: their mail, or everything that happens.

A feed is a place in something that only grows: an inbox, or the store's log of changes. When there may be more it reads
from its place on and hands that over; one that cannot keep up stays behind, and costs no memory.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from accord import errors
from accord.model import timestamp
from accord.operations.context import Context
from accord.services import events, mail
from accord.store.protocols import Store, Watch

if TYPE_CHECKING:
    from accord.hub.core import Hub

HEARTBEAT_S = 15.0
MOST_FEEDS = 5_000
PAGE = 100

# What holds somebody up for now, and passes.
PASSING = (
    errors.Halted, errors.NotEngaged, errors.LockTimeout, errors.StorageFailing, errors.StorageFull, errors.TooBusy,
    errors.TooManyFiles, errors.EngineUnreachable,
)  # fmt: skip

_EVERYTHING = ("",)


class Feed(ABC):
    """Somebody who listens."""

    method: str  # by which it is told

    def __init__(self, identity: str, push: Callable[[str, dict[str, Any]], bool]) -> None:
        self.identity = identity  # whose mail it is; "": everything
        self._push = push  # whether more can be taken
        self.ended = False
        self.blocked = False  # what was pushed has not been taken yet
        self.reading = False
        self.more = False  # something came while it was read
        self.waiting_for = ""  # the code of the error that holds it up
        self.since = time.time()

    @abstractmethod
    def read(self) -> list[dict[str, Any]]:
        """What comes next, a page at most; in a thread."""

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Nobody listens any more."""

    def push(self, method: str, params: dict[str, Any]) -> None:
        self.blocked = not self._push(method, params) or self.blocked


class MailFeed(Feed):
    method = "mail.message"

    def __init__(self, context: Context, identity: str, after: int, push: Callable[..., bool], pid: int) -> None:
        super().__init__(identity, push)
        self.context = context
        self.pid = pid
        self.after = after  # the number, in the inbox, of the last message that was pushed

    def read(self) -> list[dict[str, Any]]:
        found = mail.unread_after(self.context.store, self.identity, self.after, PAGE)
        # Only then, or what came after a name was lost, or a halt began, would still be handed out.
        self.context.halt.check()
        self.context.check_reader(self.identity, peek=False)
        if found:
            self.after = found[-1]["number"]
        return found


class EventFeed(Feed):
    method = "events.event"

    def __init__(
        self,
        store: Store,
        since: str,
        kinds: list[str],
        push: Callable[..., bool],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__("", push)
        self._check = check  # that the caller is still who they showed to be
        self._reader = events.Reader(store, since)
        self.since_revision = self._reader.since
        self._kinds = kinds
        self._held: list[dict[str, Any]] = []  # what was read, until it is known that it may be told

    def read(self) -> list[dict[str, Any]]:
        kinds = self._kinds
        while not self._held and (found := self._reader.read(PAGE)):
            self._held = [one for one in found if not kinds or one["event"] in kinds or one["event"] == events.GAP]
        self._check()  # only then, or what happened after the name was lost would still be told
        held, self._held = self._held, []
        return held

    def close(self) -> None:
        self._reader.close()


class Feeds:
    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._feeds: set[Feed] = set()
        self._by_name: dict[str, set[Feed]] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._feeds)

    def add(self, feed: Feed) -> None:
        if len(self._feeds) >= MOST_FEEDS:
            raise errors.TooBusy(most=MOST_FEEDS, what="listeners")
        if self._thread is None:
            self._start_watching()
        self._feeds.add(feed)
        self._by_name.setdefault(feed.identity, set()).add(feed)
        self.wake(feed)

    def remove(self, feed: Feed) -> None:
        feed.ended = True
        self._feeds.discard(feed)
        there = self._by_name.get(feed.identity, set())
        there.discard(feed)
        if not there:
            self._by_name.pop(feed.identity, None)
        if not feed.reading:
            feed.close()

    def listeners(self) -> dict[str, dict[str, Any]]:
        """Who is connected, by name."""
        found = {name: self.listener(name) for name in list(self._by_name)}
        return {name: listener for name, listener in found.items() if listener is not None}

    def listener(self, name: str) -> dict[str, Any] | None:
        """Who is connected under one name; in any thread."""
        for feed in list(self._by_name.get(name, ())):
            if isinstance(feed, MailFeed):
                return {"connected": True, "pid": feed.pid or None, "last_seen": timestamp(feed.since)}
        return None

    def wake(self, feed: Feed) -> None:
        """There may be more for it."""
        if feed.ended or feed.blocked or feed.reading:
            feed.more = True
            return
        feed.reading, feed.more = True, False
        self._hub.run_in_thread(feed.read, lambda found, error: self._took(feed, found, error))

    def unblock(self, feed: Feed) -> None:
        """What was pushed has been taken."""
        if feed.blocked:
            feed.blocked = False
            self.wake(feed)

    def look_after(self) -> None:
        """Try again with those who were held up, as by a HALT."""
        for feed in list(self._feeds):
            if feed.waiting_for:
                self.wake(feed)

    def tell_all(self, method: str, params: dict[str, Any]) -> None:
        for feed in list(self._feeds):
            feed.push(method, params)

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._watch.close()
            self._thread.join(2.0)

    def _took(self, feed: Feed, found: list[dict[str, Any]] | None, error: BaseException | None) -> None:
        feed.reading = False
        if feed.ended:
            feed.close()
            return
        if error is not None:
            self._held_up(feed, error)
            return
        feed.waiting_for = ""
        for one in found or []:
            feed.push(feed.method, one)
        self._hub.count("pushed", len(found or []))
        if feed.more or found:
            self.wake(feed)

    def _held_up(self, feed: Feed, error: BaseException) -> None:
        """Tell why nothing comes: for now, as under a HALT, or for good, as when the name is another's."""
        from accord.errors.table import to_json

        error = self._hub.told("feed", error)
        if isinstance(error, errors.HubOutdated):
            return  # the hub stops, which all are told; they go on with the next one
        if not isinstance(error, PASSING):
            feed.push("listen.ended", to_json(error))
            self.remove(feed)
        elif feed.waiting_for != error.code:
            feed.waiting_for = error.code
            feed.push("listen.waiting", to_json(error))

    def _look(self) -> None:
        """Follow the store, whoever writes to it, and wake whom it concerns."""
        is_lost = False  # its place in the log
        is_away = False
        while not self._closed:
            try:
                if is_lost:
                    self._watch_anew()
                    is_lost = False
                change = self._watch.next(10.0)
                if is_away:
                    is_away = False
                    self._hub.log.info("store_back")
                if change is not None:
                    self._hub.loop.call_soon_threadsafe(self._changed, _names(change.keys))
            except errors.HistoryGone:
                is_lost = True
            except errors.StoreTooNew as error:
                self._hub.loop.call_soon_threadsafe(self._hub.told, "watch", error)
                return
            except Exception as error:
                if self._closed:
                    return
                if not isinstance(error, errors.EngineUnreachable):
                    self._hub.failed("watch", error)
                elif not is_away:  # it is told once, however long that takes
                    is_away = True
                    self._hub.log.warning("store_away", reason=str(error.details["reason"]))
                time.sleep(1.0)  # a disk that fails is not to be asked without end; until then listeners hear less

    def _start_watching(self) -> None:
        """From the first listener on; before, it would only cost time."""
        self._watch = self._watched()
        self._thread = threading.Thread(target=self._look, name="feeds", daemon=True)
        self._thread.start()

    def _watched(self) -> Watch:
        with self._hub.store.snapshot() as snapshot:
            revision = snapshot.revision
        return self._hub.store.watch(_EVERYTHING, revision)

    def _watch_anew(self) -> None:
        watch = self._watched()
        self._watch.close()
        self._watch = watch
        self._hub.loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for feed in list(self._feeds):
            self.wake(feed)

    def _changed(self, names: set[str]) -> None:
        for name in names:
            for feed in list(self._by_name.get(name, ())):
                self.wake(feed)
        for feed in list(self._by_name.get("", ())):
            self.wake(feed)


def _names(keys: Any) -> set[str]:
    """Whose mail or registration changed."""
    found = set()
    for collection, id in keys:
        if collection == "agents":
            found.add(id)
        elif collection.startswith("mail/"):
            found.add(collection[5:])
    return found
