"""Opening, closing, forking, the clock, and what stays."""

import os
from collections.abc import Callable

from accord import errors
from accord.store.contract import Append, Delete, Instant, Put, number_id
from accord.store.protocols import Batch, Snapshot, Store
from accord.testing.conformance.tools import (
    Opener,
    append,
    contents,
    opened,
    put,
    raises,
    revision_of,
    take,
    value_of,
)
from accord.testing.conformance.worker import run_in_process


def check_everything_is_there_after_opening_again(open_store: Opener) -> None:
    with opened(open_store) as store:
        for number in range(1, 30):
            store.commit([], [Append("c", b"%d" % number), Put(f"d/{number}", "a", b"")])
        store.commit([], [Delete("c", number_id(29)), Delete("d/5", "a")])
        before = contents(store)
    for _ in range(3):
        with opened(open_store) as store:
            assert contents(store) == before
    with opened(open_store) as store:
        assert append(store, "c").numbers == (30,)
        with store.watch(["d"], 0) as watch:
            assert len(take(watch, 30)) == 30


def check_the_store_tells_what_a_commit_survives(open_store: Opener) -> None:
    with opened(open_store) as store:
        assert store.durability in ("power", "process", "none")


def check_a_closed_store_refuses(open_store: Opener) -> None:
    store = open_store()
    append(store, "c")
    with store.snapshot() as snapshot:
        store.close()
        for name, use in _uses(store).items():
            with raises(errors.StoreClosed, f"by {name}"):
                use()
        with raises(errors.StoreClosed, "by commit with a snapshot taken before"):
            store.commit([], [Append("c", b"")], snapshot)
    store.close()
    with opened(open_store) as store:
        assert revision_of(store) == 1


def check_closing_one_handle_leaves_the_others(open_store: Opener) -> None:
    with opened(open_store) as store, store.watch(["c"], 0) as watch, store.snapshot() as snapshot:
        assert snapshot.revision == 0
        for number in range(1, 4):
            with opened(open_store) as other:
                assert append(other, "c").numbers == (number,)
        assert snapshot.revision == 0
        assert len(take(watch, 3)) == 3
        assert append(store, "c").numbers == (4,)


def check_closing_gives_back_what_was_opened(open_store: Opener) -> None:
    """Descriptors above all: a system has few of those that watch files."""
    _open_and_close(open_store)  # what stays of the first time is not lost by each
    before = _descriptors()
    for _ in range(20):
        _open_and_close(open_store)
    assert _descriptors() - before < 10


def check_a_forked_child_is_refused(open_store: Opener) -> None:
    """A child shares its parent's locks and connections, and would break both."""
    endings, numbers = run_in_process(_use_in_child, open_store)
    assert endings == dict.fromkeys(endings, "StoreForked")
    assert numbers == (4,)


def check_the_clock_goes_forward(open_store: Opener) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        instants = [handle.now() for _ in range(1000) for handle in (store, other)]
        assert len({instant.era for instant in instants}) == 1
        seconds = [instant.seconds for instant in instants]
        assert seconds == sorted(seconds)
        while store.now().seconds == seconds[0]:
            pass
        later = store.now()
        assert instants[0].is_over(later)
        assert not later.is_over(instants[0])


def check_an_instant_is_over_when_its_time_or_its_era_is(open_store: Opener) -> None:
    with opened(open_store) as store:
        now = store.now()
        assert now.is_over(now)
        assert not now.plus(60.0).is_over(now)
        assert now.plus(60.0).is_over(now.plus(60.0))
        assert now.plus(-60.0).is_over(now)
        assert Instant("another " + now.era, now.seconds + 60.0).is_over(now)


def check_sync_changes_nothing(open_store: Opener) -> None:
    with opened(open_store) as store:
        store.sync()
        append(store, "c")
        before = contents(store)
        store.sync()
        assert contents(store) == before


def _uses(store: Store) -> dict[str, Callable[[], object]]:
    uses: dict[str, Callable[[], object]] = {
        "snapshot": store.snapshot,
        "commit": lambda: store.commit([], [Append("c", b"")]),
        "commit without writes": lambda: store.commit([], []),
        "watch": lambda: store.watch(["c"], 0),
        "load": lambda: store.load([]),
        "sync": store.sync,
    }
    if exclusive := getattr(store, "exclusive", None):
        uses["exclusive"] = lambda: exclusive().__enter__()
    return uses


def _open_and_close(open_store: Opener) -> None:
    with opened(open_store) as store:
        put(store, "c", "a", b"1")
        with store.snapshot(), store.snapshot():
            value_of(store, "c", "a")
        with store.watch(["c"], 0) as watch:
            take(watch, 1)
        watch = store.watch(["c"], 0)
        take(watch, 1)
        watch.close()
        store.sync()


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def _use_in_child(open_store: Opener) -> tuple[dict[str, str], tuple[int, ...]]:
    """How each use in a forked child ended, and what number the parent's next append got."""
    with opened(open_store) as store:
        for _ in range(2):
            append(store, "c")
        uses = _uses(store)
        with store.snapshot() as snapshot, store.watch(["c"], 0) as watch:
            uses |= {f"{name} of a snapshot taken before": use for name, use in _reads(snapshot).items()}
            uses["commit with a snapshot taken before"] = lambda: store.commit([], [Append("c", b"")], snapshot)
            take(watch, 1)  # the other change may be waiting in it
            uses["next of a watch begun before"] = lambda: watch.next(0.0)
            endings = {name: _ending_in_child(use) for name, use in uses.items()}
        if exclusive := getattr(store, "exclusive", None):
            with exclusive() as batch:
                endings |= {name: _ending_in_child(use) for name, use in _uses_of_batch(batch).items()}
                append(batch, "c")
        else:
            append(store, "c")
        return endings, append(store, "c").numbers


def _reads(snapshot: Snapshot) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: snapshot.get("c", number_id(1)),
        "list": lambda: snapshot.list("c"),
        "head": lambda: snapshot.head("c"),
        "collections": snapshot.collections,
    }


def _uses_of_batch(batch: Batch) -> dict[str, Callable[[], object]]:
    snapshot = batch.snapshot()
    uses: dict[str, Callable[[], object]] = {
        "snapshot": batch.snapshot,
        "commit": lambda: batch.commit([], [Append("c", b"")]),
        "commit with a snapshot": lambda: batch.commit([], [Append("c", b"")], snapshot),
        "leaving": lambda: batch.__exit__(None, None, None),
        **_reads(snapshot),
    }
    return {f"{name} of a block entered before": use for name, use in uses.items()}


def _ending_in_child(use: Callable[[], object]) -> str:
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        try:
            use()
            os.write(writable, b"no error")
        except BaseException as error:
            os.write(writable, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, "rb") as pipe:
        ending = pipe.read().decode()
    os.waitpid(child, 0)
    return ending
