"""An engine with a write lock: works one after another become one durable commit."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from accord import errors
from accord.store.contract import Append, Change, Committed, Conflict, Delete, Item, ItemIs, Put, number_id
from accord.store.protocols import Batch, Exclusive, Snapshot, Store
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import (
    LONG_S,
    Contents,
    Opener,
    append,
    at_once,
    contents,
    contents_of,
    is_quiet,
    opened,
    put,
    raises,
    revision_of,
    seconds,
    take,
    unless_moved,
    value_of,
    values_of,
)
from accord.testing.conformance.worker import run_in_process

if TYPE_CHECKING:

    class LockedStore(Store, Exclusive, Protocol):
        pass


def check_there_is_exclusive(open_store: Opener) -> None:
    with opened(open_store) as store:
        assert hasattr(store, "exclusive")


def check_works_become_one_commit_with_a_revision_each(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other, other.watch([""], 0) as watch:
        append(store, "c", b"1")
        take(watch, 1)
        with store.exclusive() as batch:
            assert append(batch, "c", b"2") == Committed(2, (2,))
            assert batch.commit([], [Put("d", "a", b""), Append("c", b"3")]) == Committed(3, (3,))
            assert batch.commit([], []) == Committed(3, ())
            assert batch.commit([], [Delete("d", "a")]) == Committed(4, ())
            assert is_quiet(watch)
        assert revision_of(store) == revision_of(other) == 4
        assert values_of(other, "c") == [b"1", b"2", b"3"]
        assert [item.revision for item in contents(other).items["c"]] == [1, 2, 3]
        expected = [
            Change(2, (("c", number_id(2)),)),
            Change(3, (("c", number_id(3)), ("d", "a"))),
            Change(4, (("d", "a"),)),
        ]
        assert take(watch, 3) == expected


def check_works_see_each_other_and_nobody_else_does(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        put(store, "c", "a", b"old")
        before = contents(other)
        with store.exclusive() as batch:
            put(batch, "c", "a", b"new")
            append(batch, "new", b"")
            with batch.snapshot() as snapshot:
                assert snapshot.revision == 3
                item = snapshot.get("c", "a")
                assert item is not None
                assert (item.value, item.revision) == (b"new", 2)
                assert snapshot.head("new").last == 1
                assert list(snapshot.collections()) == ["c", "new"]
            assert contents(other) == before
            assert contents(store) == before
        assert value_of(other, "c", "a") == b"new"


def check_an_error_inside_leaves_nothing(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        store.commit([], [Put("c", "a", b"old"), Append("c", b"1")])
        before = contents(store)
        with raises(KeyError), store.exclusive() as batch:
            put(batch, "c", "a", b"new")
            batch.commit([], [Append("c", b"2"), Put("new", "a", b""), Delete("c", number_id(1))])
            raise KeyError("on purpose")
        assert contents(store) == contents(other) == before
        with other.watch([""], before.revision) as watch:
            assert is_quiet(watch)
        assert append(other, "c", b"2") == Committed(before.revision + 1, (2,))


def check_a_snapshot_inside_keeps_its_view_or_says_that_it_moved(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        put(store, "c", "a", b"old")
        with store.exclusive() as batch, batch.snapshot() as snapshot:
            before = contents_of(snapshot)
            unless_moved(partial(contents_of, snapshot), before)
            batch.commit([], [Put("c", "a", b"new"), Put("c", "b", b"new"), Append("d", b"new")], snapshot)
            _is_as_before(snapshot, before)
        _is_as_before(snapshot, before)
        put(other, "c", "a", b"other")
        _is_as_before(snapshot, before)
        with raises(Conflict):
            store.commit([ItemIs("c", "a", 1)], [Put("c", "a", b"mine")], snapshot)


def _is_as_before(snapshot: Snapshot, before: Contents) -> None:
    unless_moved(lambda: list(snapshot.list("c")), before.items["c"])
    item: Item | None = before.items["c"][0]
    unless_moved(lambda: snapshot.get("c", "a"), item)
    unless_moved(lambda: snapshot.head("c"), before.heads["c"])
    unless_moved(lambda: list(snapshot.collections()), ["c"])


def check_a_conflict_inside_spares_the_other_works(open_store: Opener) -> None:
    with _opened(open_store) as store:
        with store.exclusive() as batch:
            first = append(batch, "c", b"1").revision
            with raises(Conflict):
                batch.commit([ItemIs("c", number_id(1), 0)], [Put("c", "a", b""), Append("c", b"refused")])
            with raises(errors.InvalidKey):
                batch.commit([], [Append("c", b"refused"), Put("c", "A", b"")])
            with raises(errors.InvalidKey):
                batch.commit([], [Append("c", b"refused"), Put("c", number_id(9), b"")])
            batch.commit([ItemIs("c", number_id(1), first)], [Append("c", b"2")])
        assert values_of(store, "c") == [b"1", b"2"]
        assert revision_of(store) == 2


def check_a_batch_without_writes_makes_no_revision(open_store: Opener) -> None:
    with _opened(open_store) as store:
        append(store, "c")
        before = contents(store)
        with store.exclusive() as batch:
            batch.sync()
            assert batch.now().seconds <= store.now().seconds
            assert contents(batch) == before
        assert contents(store) == before


def check_a_commit_before_it_is_seen_inside(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        for number in range(1, 4):
            put(other, "c", "a", b"%d" % number)
            with store.exclusive() as batch:
                assert value_of(batch, "c", "a") == b"%d" % number


def check_the_lock_keeps_all_others_out_until_their_time_is_over(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:

        def enter(handle: "LockedStore") -> None:
            with raises(errors.LockTimeout), handle.exclusive(0.1):
                pass

        def commit(handle: "LockedStore") -> None:
            with raises(errors.LockTimeout):
                handle.commit([], [Append("c", b"")], timeout_s=0.1)

        def run(handle: "LockedStore") -> None:
            with raises(errors.LockTimeout):
                transact(handle, lambda tx: tx.append("c", b""), timeout_s=0.1)

        with store.exclusive() as batch:
            append(batch, "c")
            for handle in (store, other):
                for attempt in (enter, commit, run):
                    waited_s = at_once(partial(seconds, partial(attempt, handle)))[0]
                    assert 0.09 <= waited_s < LONG_S / 4
        for handle in (store, other):
            append(handle, "c")
        assert len(values_of(store, "c")) == 3


def check_readers_need_no_lock(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        put(store, "c", "a", b"old")
        with store.exclusive() as batch:
            put(batch, "c", "a", b"new")
            for handle in (store, other):
                assert at_once(partial(value_of, handle, "c", "a")) == [b"old"]
                with handle.watch(["c"], 0) as watch:
                    assert len(take(watch, 1)) == 1


def check_a_lock_that_becomes_free_is_got(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:
        inside = threading.Event()

        def hold() -> None:
            with store.exclusive() as batch:
                inside.set()
                append(batch, "c", b"first")
                inside.wait(0.05)

        def follow() -> None:
            assert inside.wait(LONG_S)
            append(other, "c", b"second")

        at_once(hold, follow)
        assert values_of(store, "c") == [b"first", b"second"]


def check_batches_of_many_threads_do_not_mix(open_store: Opener) -> None:
    with _opened(open_store) as store, _opened(open_store) as other:

        def write(handle: "LockedStore", name: bytes) -> None:
            for _ in range(5):
                with handle.exclusive() as batch:
                    for _ in range(4):
                        append(batch, "c", name)

        at_once(*[partial(write, handle, b"%d" % number) for number, handle in enumerate([store, other] * 3)])
        found = values_of(store, "c")
        assert len(found) == 6 * 5 * 4
        assert all(len(set(found[start : start + 4])) == 1 for start in range(0, len(found), 4))


def check_a_forked_child_that_leaves_the_block_leaves_the_lock(open_store: Opener) -> None:
    """Both share it; a commit of a third who got in would be lost, or make the parent's block be lost."""
    for way in ("at its end", "by an error", "by closing the store"):
        run_in_process(_leave_in_child, open_store, way)
    with _opened(open_store) as store:
        assert values_of(store, "c") == [b"parent", b"third"] * 3


def _leave_in_child(open_store: Opener, way: str) -> None:
    with _opened(open_store) as store, _opened(open_store) as third:
        with store.exclusive() as batch:
            append(batch, "c", b"parent")
            child = os.fork()
            if not child:
                _leave(store, batch, way)
            os.waitpid(child, 0)
            with raises(errors.LockTimeout, f"when a child had left {way}"):
                third.commit([], [Append("c", b"third")], timeout_s=0.1)
        append(third, "c", b"third")


def _leave(store: "LockedStore", batch: Batch, way: str) -> NoReturn:
    try:
        if way == "at its end":
            batch.__exit__(None, None, None)
        elif way == "by an error":
            batch.__exit__(KeyError, KeyError("on purpose"), None)
        else:
            store.close()
    finally:
        os._exit(0)


def check_an_overtaken_work_runs_again_under_the_lock(open_store: Opener) -> None:
    """So that it runs twice at most: nobody can come first again."""
    with _opened(open_store) as store, _opened(open_store) as other:
        outcomes: list[str] = []

        def work(tx: Transaction) -> None:
            tx.get("c", "a")
            try:
                other.commit([], [Put("c", "a", b"other")], timeout_s=0.05)
                outcomes.append("overtaken")
            except errors.LockTimeout:
                outcomes.append("alone")
            tx.put("c", "a", b"mine")

        transact(store, work)
        assert outcomes == ["overtaken", "alone"]
        assert value_of(store, "c", "a") == b"mine"


@contextmanager
def _opened(open_store: Opener) -> "Iterator[LockedStore]":
    with opened(open_store) as store:
        yield cast("LockedStore", store)
