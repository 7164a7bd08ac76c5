"""Many threads at once, on one handle and on handles of their own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TypeVar

from accord.store.contract import Append, Committed, ItemIs, Moved, Put
from accord.store.protocols import Snapshot, Store
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import (
    LONG_S,
    Opener,
    append,
    at_once,
    is_refused,
    opened,
    take,
    value_of,
    values_of,
)

T = TypeVar("T")

THREADS = 6
TOTAL = 3
ACCOUNTS = ["a", "b", "c", "d", "e"]


def check_numbers_are_dense_and_in_commit_order(open_store: Opener) -> None:
    with _handles(open_store) as stores:

        def append_many(store: Store) -> list[Committed]:
            return [append(store, "c", b"x") for _ in range(20)]

        done = [one for many in at_once(*_each(append_many, stores)) for one in many]
        assert_dense(done)
        assert len(values_of(stores[0], "c")) == len(done)


def check_an_append_never_fails_another(open_store: Opener) -> None:
    """Neither by a conflict nor by a work that has to run again, however old its snapshot."""
    with _handles(open_store) as stores:
        runs: list[int] = []

        def append_one(tx: Transaction) -> None:
            runs.append(1)
            tx.append("c", b"x")

        def append_many(store: Store) -> None:
            for _ in range(15):
                transact(store, append_one)
                with store.snapshot() as snapshot:
                    append(stores[0], "c")
                    store.commit([], [Append("c", b"x")], snapshot)

        at_once(*_each(append_many, stores))
        assert len(runs) == 15 * len(stores)
        assert len(values_of(stores[0], "c")) == 3 * len(runs)


def check_one_of_many_creators_wins(open_store: Opener) -> None:
    with _handles(open_store) as stores:
        for number in range(10):
            id = f"i{number}"

            def create(store: Store, id: str = id) -> bool:
                return not is_refused(lambda: store.commit([ItemIs("c", id, 0)], [Put("c", id, b"")]))

            assert sum(at_once(*_each(create, stores))) == 1, id
        assert len(values_of(stores[0], "c")) == 10


def check_no_update_is_lost(open_store: Opener) -> None:
    with _handles(open_store) as stores:

        def count_up(store: Store) -> None:
            for _ in range(10):
                transact(store, increment)

        at_once(*_each(count_up, stores))
        assert value_of(stores[0], "c", "count") == b"%d" % (10 * len(stores))


def check_transactions_that_list_run_as_if_alone(open_store: Opener) -> None:
    """Each takes the place that it counted to; two that counted the same would leave a gap."""
    with _handles(open_store) as stores:

        def join(tx: Transaction) -> None:
            tx.put("c", f"member{len(tx.list('c')):03d}", b"")

        def join_often(store: Store) -> None:
            for _ in range(5):
                transact(store, join)

        at_once(*_each(join_often, stores))
        with stores[0].snapshot() as snapshot:
            count = 5 * len(stores)
            assert [item.id for item in snapshot.list("c")] == [f"member{number:03d}" for number in range(count)]


def check_no_reader_sees_half_a_commit(open_store: Opener) -> None:
    """Writers move amounts between accounts; whoever reads all accounts finds the sum unchanged."""
    with _handles(open_store) as stores:
        open_accounts(stores[0])
        enough = threading.Event()

        def move_on(store: Store) -> None:
            number = 0
            while not enough.is_set():
                transact(store, partial(move, number))
                number += 1

        def read_on(store: Store) -> None:
            try:
                read_accounts(store, views=40)
            finally:
                enough.set()

        at_once(*_each(move_on, stores[:2]), *_each(read_on, stores[2:4]))


def check_watchers_in_many_threads_get_every_change(open_store: Opener) -> None:
    with _handles(open_store) as stores:
        writers, watchers = stores[:2], stores[2:]

        def write(store: Store) -> list[int]:
            return [append(store, "c").revision for _ in range(30)]

        def watch(store: Store) -> list[int]:
            with store.watch(["c"], 0) as watch:
                return [change.revision for change in take(watch, 60)]

        found = at_once(*_each(write, writers), *_each(watch, watchers))
        revisions = sorted(found[0] + found[1])
        assert found[2:] == [revisions] * len(watchers)


def assert_dense(done: list[Committed]) -> None:
    """Sorted by revision, the numbers are 1, 2, 3 ..."""
    done = sorted(done, key=lambda one: one.revision)
    assert [one.numbers for one in done] == [(number,) for number in range(1, len(done) + 1)]
    assert len({one.revision for one in done}) == len(done)


def increment(tx: Transaction) -> None:
    item = tx.get("c", "count")
    tx.put("c", "count", b"%d" % (1 + int(item.value if item else 0)))


def open_accounts(store: Store) -> None:
    store.commit([], [Put("accounts", ACCOUNTS[0], b"%d" % TOTAL)])


def move(number: int, tx: Transaction) -> None:
    """Move one from an account to another, and log it; an account with nothing in it is no item."""
    found = [tx.get("accounts", id) for id in ACCOUNTS]
    amounts = {item.id: int(item.value) for item in found if item}
    source = sorted(amounts)[number % len(amounts)]
    target = ACCOUNTS[(ACCOUNTS.index(source) + 1 + number % 3) % len(ACCOUNTS)]
    tx.put("accounts", target, b"%d" % (amounts.get(target, 0) + 1))
    if amounts[source] == 1:
        tx.delete("accounts", source)
    else:
        tx.put("accounts", source, b"%d" % (amounts[source] - 1))
    tx.append("moves", b"")


def read_accounts(store: Store, views: int) -> None:
    """Read whole views, one account after another and as a list, and find the sum right in each."""
    seen = tries = 0
    deadline = time.monotonic() + LONG_S
    while min(seen, tries // 2) < views:
        assert time.monotonic() < deadline, f"only {seen} views"
        tries += 1
        with store.snapshot() as snapshot, suppress(Moved):
            assert _sum_singly(snapshot, slowly=tries % 2 == 0) == TOTAL
            assert sum(int(item.value) for item in snapshot.list("accounts")) == TOTAL
            seen += 1


def _sum_singly(snapshot: Snapshot, slowly: bool) -> int:
    total = 0
    for id in ACCOUNTS:
        item = snapshot.get("accounts", id)
        total += int(item.value) if item else 0
        if slowly:
            time.sleep(0.0001)  # lets the writers in between
    return total


@contextmanager
def _handles(open_store: Opener) -> Iterator[list[Store]]:
    """A store for each thread: every two threads share a handle, and there are several handles."""
    with ExitStack() as stack:
        handles = [stack.enter_context(opened(open_store)) for _ in range(THREADS // 2)]
        yield handles * 2


def _each(work: Callable[[Store], T], stores: list[Store]) -> list[Callable[[], T]]:
    return [partial(work, store) for store in stores]
