"""Data in this process: `memory:` is a store of its own, `memory:NAME` the one of that name in this process."""

import _thread
from bisect import bisect_left, bisect_right, insort

from accord import errors, platform
from accord.store.contract import (
    KEPT_REVISIONS,
    LOCK_WAIT_S,
    TRIM_EVERY,
    Change,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    Instant,
    Item,
    Moved,
    Opened,
    assign_numbers,
    check_commit,
    check_contents,
    check_page,
    new_epoch,
    resolve,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store.contract import Check, Content, Write
    from accord.store.protocols import Snapshot, Store

_NEVER = Head(0, 0)
_named: "dict[str, _Data]" = {}


def open_store(place: str) -> "Store":
    if not place:
        return Memory(_Data(), place)
    return Memory(_named.setdefault(place, _Data()), place)


class _Data:
    """What stores of one name share; whoever touches it holds `lock`."""

    def __init__(self) -> None:
        self.lock = _thread.allocate_lock()
        self.epoch = new_epoch()
        self.revision = 0
        self.heads: dict[str, Head] = {}
        self.items: dict[str, dict[str, Item]] = {}
        self.ids: dict[str, list[str]] = {}  # of each collection, in order
        self.changes: list[Change] = []
        self.floor = 0  # the newest revision whose change is forgotten
        self.waits: list[_thread.LockType] = []  # of those who watch, each released once


class Memory:
    """An optimistic engine: snapshots hold no lock, and `exclusive` does not exist."""

    durability = "none"
    patience_s = LOCK_WAIT_S

    def __init__(self, data: _Data, name: str) -> None:
        self._data = data
        self._opened = Opened(f"memory:{name}")

    def snapshot(self) -> "_Snapshot":
        return _Snapshot(self._usable(), self._opened)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        data = self._usable()
        with data.lock:
            if not all(_holds(data, check) for check in checks):
                raise Conflict
            if not writes:
                return Committed(data.revision, ())
            numbers, lasts = assign_numbers(writes, lambda collection: data.heads.get(collection, _NEVER).last)
            _apply(data, resolve(writes, numbers), lasts)
            while data.waits:
                data.waits.pop().release()
            return Committed(data.revision, tuple(numbers))

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "_Watch":
        return _Watch(self._usable(), self._opened, tuple(prefixes), since, epoch)

    def now(self) -> Instant:
        return Instant(platform.boot_id(), platform.boot_seconds())

    def sync(self) -> None:
        self._usable()

    def load(self, contents: "Iterable[Content]") -> None:
        data = self._usable()
        with data.lock:
            if data.revision:
                raise errors.StoreNotEmpty(path=self._opened.path)
            heads, items = {}, {}
            for collection, last, found in check_contents(contents):
                heads[collection] = Head(1, last)
                items[collection] = {item.id: Item(item.id, item.value, 1) for item in found}
            data.heads, data.items = heads, items
            data.ids = {collection: sorted(found) for collection, found in items.items()}
            data.revision = data.floor = 1

    def close(self) -> None:
        self._opened.closed = True

    def _usable(self) -> _Data:
        self._opened.check()
        return self._data


class _Snapshot:
    def __init__(self, data: _Data, opened: Opened) -> None:
        self._data = data
        self._opened = opened
        with data.lock:
            self.epoch = data.epoch
            self.revision = data.revision

    def __enter__(self) -> "_Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def get(self, collection: str, id: str) -> Item | None:
        data = self._usable()
        with data.lock:
            item = data.items.get(collection, {}).get(id)
            if item is None:
                self._unmoved(collection)  # it may have been deleted since
            elif item.revision > self.revision:
                raise Moved
            return item

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        data = self._usable()
        with data.lock:
            self._unmoved(collection)
            ids = data.ids.get(collection, [])
            items = data.items.get(collection, {})
            if reverse:
                end = bisect_left(ids, after) if after else len(ids)
                page = ids[max(0, end - limit) : end][::-1]
            else:
                start = bisect_right(ids, after)
                page = ids[start : start + limit]
            return [items[id] for id in page]

    def head(self, collection: str) -> Head:
        with self._usable().lock:
            return self._unmoved(collection)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        data = self._usable()
        with data.lock:
            if data.revision != self.revision:
                raise Moved
            return sorted(name for name in data.heads if name.startswith(prefix) and name > after)[:limit]

    def _usable(self) -> _Data:
        self._opened.check_process()
        return self._data

    def _unmoved(self, collection: str) -> Head:
        head = self._data.heads.get(collection, _NEVER)
        if head.revision > self.revision:
            raise Moved
        return head


class _Watch:
    def __init__(self, data: _Data, opened: Opened, prefixes: tuple[str, ...], since: int, epoch: str) -> None:
        self.revision = since
        self._data = data
        self._opened = opened
        self._prefixes = prefixes
        self._closed = False
        self._waits: _thread.LockType | None = None
        with data.lock:
            if (epoch and epoch != data.epoch) or not data.floor <= since <= data.revision:
                raise errors.HistoryGone(since=since, oldest=data.floor)

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def next(self, timeout_s: float) -> Change | None:
        self._opened.check_process()
        deadline = platform.boot_seconds() + timeout_s
        while True:
            with self._data.lock:
                change = None if self._closed else self._look()
                left_s = deadline - platform.boot_seconds()
                if change is not None or self._closed or left_s <= 0:
                    return change
                # A lock of its own for each wait, so that it is released exactly once.
                self._waits = wait = _thread.allocate_lock()
                wait.acquire()
                self._data.waits.append(wait)
            if not wait.acquire(True, left_s):
                with self._data.lock:
                    self._wake()

    def close(self) -> None:
        with self._data.lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        if self._waits in self._data.waits:
            self._data.waits.remove(self._waits)
            self._waits.release()

    def _look(self) -> Change | None:
        data = self._data
        if self.revision < data.floor:
            raise errors.HistoryGone(since=self.revision, oldest=data.floor)
        for change in data.changes[self.revision - data.floor :]:
            self.revision = change.revision
            keys = tuple(key for key in change.keys if key[0].startswith(self._prefixes))
            if keys:
                return Change(change.revision, keys)
        return None


def _holds(data: _Data, check: "Check") -> bool:
    if isinstance(check, CollectionIs):
        return data.heads.get(check.collection, _NEVER).revision == check.revision
    item = data.items.get(check.collection, {}).get(check.id)
    return (item.revision if item else 0) == check.revision


def _apply(data: _Data, values: dict[tuple[str, str], bytes | None], lasts: dict[str, int]) -> None:
    data.revision += 1
    for (collection, id), value in values.items():
        items = data.items.setdefault(collection, {})
        ids = data.ids.setdefault(collection, [])
        if value is not None:
            if id not in items:
                insort(ids, id)
            items[id] = Item(id, value, data.revision)
        elif items.pop(id, None):
            del ids[bisect_left(ids, id)]
        last = lasts.get(collection, data.heads.get(collection, _NEVER).last)
        data.heads[collection] = Head(data.revision, last)
    data.changes.append(Change(data.revision, tuple(values)))
    if data.revision % TRIM_EVERY == 0:
        keep = data.changes[-KEPT_REVISIONS:]
        data.floor += len(data.changes) - len(keep)
        data.changes = keep
