"""What the checks share."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import NamedTuple, TypeVar

from accord.store.contract import TRIM_EVERY, Append, Change, Committed, Conflict, Head, Item, Moved, Put
from accord.store.protocols import Ledger, Snapshot, Store, Watch

T = TypeVar("T")
Opener = Callable[[], Store]

LONG_S = 20.0  # longer than anything takes that works


class Contents(NamedTuple):
    revision: int
    heads: dict[str, Head]
    items: dict[str, list[Item]]


@contextmanager
def opened(open_store: Opener) -> Iterator[Store]:
    with closing(open_store()) as store:
        yield store


@contextmanager
def raises(kind: type[Exception], why: str = "") -> Iterator[None]:
    """The block must end with this error."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised {why}")


def contents(store: Ledger) -> Contents:
    with store.snapshot() as snapshot:
        return contents_of(snapshot)


def contents_of(snapshot: Snapshot) -> Contents:
    """Everything that the snapshot can show."""
    names: list[str] = []
    after = ""
    while page := snapshot.collections(after=after, limit=1000):
        assert page[0] > after, f"{page[0]} after {after}"
        names += page
        after = page[-1]
    heads = {name: snapshot.head(name) for name in names}
    items = {name: all_items(snapshot, name) for name in names}
    return Contents(snapshot.revision, heads, items)


def all_items(snapshot: Snapshot, collection: str, limit: int = 1000, reverse: bool = False) -> list[Item]:
    """Page by page to the end."""
    found: list[Item] = []
    after = ""
    while page := snapshot.list(collection, after, limit, reverse):
        assert len(page) <= limit
        # Else this would never end.
        assert not after or (page[0].id < after if reverse else page[0].id > after), f"{page[0].id} after {after}"
        found += page
        after = page[-1].id
    return found


def value_of(store: Ledger, collection: str, id: str) -> bytes | None:
    while True:
        try:
            with store.snapshot() as snapshot:
                item = snapshot.get(collection, id)
        except Moved:
            continue  # others write, and an engine may say so
        return None if item is None else item.value


def values_of(store: Ledger, collection: str) -> list[bytes]:
    with store.snapshot() as snapshot:
        return [item.value for item in all_items(snapshot, collection)]


def revision_of(store: Ledger) -> int:
    with store.snapshot() as snapshot:
        return snapshot.revision


def put(store: Ledger, collection: str, id: str, value: bytes = b"") -> Committed:
    return store.commit([], [Put(collection, id, value)])


def append(store: Ledger, collection: str, value: bytes = b"") -> Committed:
    return store.commit([], [Append(collection, value)])


def many_commits(store: Store, count: int, collection: str = "many") -> None:
    """As many revisions, in a few durable commits where the engine can."""
    exclusive = getattr(store, "exclusive", None)
    for start in range(0, count, TRIM_EVERY):
        size = min(TRIM_EVERY, count - start)
        if exclusive is None:
            _put_often(store, collection, size)
        else:
            with exclusive() as batch:
                _put_often(batch, collection, size)


def _put_often(ledger: Ledger, collection: str, count: int) -> None:
    for _ in range(count):
        ledger.commit([], [Put(collection, "one", b"")])


def take(watch: Watch, count: int) -> list[Change]:
    """The next changes, each with its keys sorted: their order has no meaning."""
    found: list[Change] = []
    for _ in range(count):
        change = watch.next(LONG_S)
        assert change is not None, f"only {len(found)} changes of {count}: {found}"
        assert len(set(change.keys)) == len(change.keys), change
        found.append(Change(change.revision, tuple(sorted(change.keys))))
    return found


def is_quiet(watch: Watch) -> bool:
    return watch.next(0.05) is None


def unless_moved(read: Callable[[], T], expected: T) -> bool:
    """The read answers as expected, which is True, or raises `Moved`."""
    try:
        found = read()
    except Moved:
        return False
    assert found == expected
    return True


def is_refused(commit: Callable[[], object]) -> bool:
    try:
        commit()
    except Conflict:
        return True
    return False


def at_once(*works: Callable[[], T]) -> list[T]:
    """Run each work in a thread of its own, all started together; their results in this order."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        start.wait(LONG_S)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(run, work) for work in works]
        return [future.result() for future in running]


@contextmanager
def wall_clock_moved(by_s: float) -> Iterator[None]:
    """The wall clock as Python code of this process sees it."""
    real_time, real_clock = time.time, time.clock_gettime
    time.time = lambda: real_time() + by_s
    time.clock_gettime = lambda clock: real_clock(clock) + by_s * (clock == time.CLOCK_REALTIME)
    try:
        yield
    finally:
        time.time, time.clock_gettime = real_time, real_clock


def seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started
