"""What sqlite does when the database, the disk or another user of it fails."""

import errno
import gc
import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from accord import errors, platform
from accord.store.contract import Conflict, Item, ItemIs, Put
from accord.store.engines.sqlite import Sqlite, link
from accord.store.engines.sqlite.batch import Batch
from accord.store.engines.sqlite.link import Link
from accord.store.local.bell import Bell
from accord.store.open import open_store
from accord.store.protocols import Ledger
from accord.store.transaction import transact
from accord.testing.conformance.tools import contents, is_quiet, put, value_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def failing(*args: object) -> Any:
    raise OSError(errno.EIO, "on purpose")


# Another program that locks the database without asking at the gate.


@pytest.mark.covers("S1", "T3.12")
@pytest.mark.parametrize("way", ["commit", "exclusive", "transact"])
def test_another_program_is_waited_for_until_the_deadline_and_no_longer(path: str, way: str) -> None:
    store = Sqlite(path)
    put(store, "c", "a")
    ways: dict[str, Callable[[], object]] = {
        "commit": lambda: store.commit([], [Put("c", "b", b"")], timeout_s=0.3),
        "exclusive": lambda: store.exclusive(0.3).__enter__(),
        "transact": lambda: transact(store, lambda tx: tx.put("c", "b", b""), timeout_s=0.3),
    }
    with closing(apsw.Connection(path)) as other:
        other.execute("begin immediate")
        began = time.monotonic()
        with pytest.raises(errors.LockTimeout, match="another program") as timeout:
            ways[way]()
        assert 0.2 <= time.monotonic() - began < 5
        assert timeout.value.details["timeout_seconds"] == pytest.approx(0.3, abs=0.1)
        other.execute("rollback")
    put(store, "c", "b")
    assert store._idle[-1]._db.execute("pragma busy_timeout").get == link.BUSY_MS


# A batch that fails.


def fill_up(batch: Batch) -> None:
    """A commit for which there is no room; for the next one there would be."""
    db = batch._link._db
    pages = db.execute("pragma page_count").get
    db.execute(f"pragma max_page_count = {pages + 3}")
    with pytest.raises(errors.StorageFull):
        batch.commit([], [Put("c", f"half{n}", b"x" * 1000) for n in range(8)])
    db.execute("pragma max_page_count = 1000000")


@pytest.mark.covers("S4")
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_batch_in_which_a_write_failed_leaves_nothing(
    path: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_MOST_HELD", 0)  # each commit goes to SQLite at once
    store, other = Sqlite(path), Sqlite(path)
    put(store, "c", "before")
    before = contents(store)
    batch = store.exclusive().__enter__()
    put(batch, "c", "first")
    snapshot = batch.snapshot()
    fill_up(batch)
    assert snapshot.is_over
    for _ in range(2 if goes_on else 0):
        with pytest.raises(errors.StorageFull):
            put(batch, "c", "later")
        with pytest.raises(errors.StorageFull):
            batch.snapshot()
    with pytest.raises(errors.StorageFull):
        batch.__exit__(None, None, None)
    with other.watch([""], 1) as watch:
        assert is_quiet(watch)
    assert contents(store) == contents(other) == before
    assert put(store, "c", "after").revision == 2


@pytest.mark.covers("S4")
def test_a_batch_that_finds_no_room_at_its_end_leaves_nothing(path: str) -> None:
    store, other = Sqlite(path), Sqlite(path)
    put(store, "c", "before")
    before = contents(store)
    batch = store.exclusive().__enter__()
    db = batch._link._db
    db.execute(f"pragma max_page_count = {db.execute('pragma page_count').get}")
    for n in range(40):
        put(batch, "c", f"held{n}", b"x" * 1000)
    with pytest.raises(errors.StorageFull):
        batch.__exit__(None, None, None)
    db.execute("pragma max_page_count = 1000000")
    assert contents(store) == contents(other) == before
    assert put(store, "c", "after").revision == 2


def test_a_batch_whose_transaction_sqlite_gave_up_leaves_nothing(path: str) -> None:
    store = Sqlite(path)
    batch = store.exclusive().__enter__()
    put(batch, "c", "first")
    batch._link._db.execute("rollback")
    with pytest.raises(errors.StorageFailing):
        put(batch, "c", "later")
    with pytest.raises(errors.StorageFailing, match="gave up"):
        batch.__exit__(None, None, None)
    assert contents(Sqlite(path)).items == {}


def test_a_load_that_failed_half_way_is_not_committed_by_its_batch(path: str) -> None:
    store = Sqlite(path)
    batch = store.exclusive().__enter__()
    with pytest.raises(errors.InvalidKey):
        batch.load([("c", 0, [Item("a", b"", 1)]), ("c", 0, [])])
    with pytest.raises(errors.InvalidKey):
        batch.__exit__(None, None, None)
    assert contents(store).items == {}


# What fails on the way out.


def break_rollback(link: Link) -> None:
    execute = link._execute

    def broken(sql: str, *values: Any) -> Any:
        if sql == "rollback":
            raise apsw.IOError("on purpose")
        return execute(sql, *values)

    link._execute = broken  # type: ignore[assignment]


def commit_refused(store: Sqlite) -> None:
    with store.snapshot() as snapshot:
        put(Sqlite(store._path), "c", "a", b"other")  # so that the checks are looked at
        break_rollback(snapshot.link)
        store.commit([ItemIs("c", "a", 7)], [Put("c", "a", b"mine")], snapshot)


def leave_a_batch(store: Sqlite) -> None:
    with store.exclusive() as batch:
        put(batch, "c", "a", b"mine")
        break_rollback(batch._link)
        raise KeyError


def leave_a_snapshot(store: Sqlite) -> None:
    with store.snapshot() as snapshot:
        break_rollback(snapshot.link)


@pytest.mark.parametrize("use", [commit_refused, leave_a_batch, leave_a_snapshot])
def test_a_rollback_that_fails_holds_up_nobody(path: str, use: Callable[[Sqlite], None]) -> None:
    store, other = Sqlite(path), Sqlite(path)
    with pytest.raises(errors.StorageFailing, match="on purpose"):
        use(store)
    assert not any(link.is_broken for link in store._idle)
    for handle in (other, store):
        handle.commit([], [Put("c", "a", b"after")], timeout_s=1.0)
    assert value_of(store, "c", "a") == b"after"


@pytest.mark.covers("S4")
def test_a_mark_that_fails_too_is_a_failing_disk(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Sqlite(path)
    put(store, "c", "a", b"old")
    with monkeypatch.context() as broken:
        broken.setattr(platform, "flush", failing)
        broken.setattr(os, "pwrite", failing)
        with pytest.raises(errors.OutcomeUnknown, match="on purpose"):
            put(store, "c", "a", b"new")
        with pytest.raises(errors.StorageFailing, match="on purpose"):
            store.sync()
    assert store.gate.marked(), "this process knows what it could not write down"
    put(store, "c", "b")
    assert not store.gate.marked()


def test_a_connection_that_is_broken_stays_so(path: str) -> None:
    store = Sqlite(path)
    link = store.borrow()
    link._failed(apsw.IOError("on purpose"))
    link._failed(apsw.FullError("on purpose"))
    assert link.is_broken
    store.give_back(link)
    assert link not in store._idle


def test_a_load_gives_its_connection_back(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Sqlite(path)
    row = Link.row

    def broken(link: Link, sql: str, values: Any = ()) -> Any:
        if "checkpoint" in sql:
            raise errors.StorageFull(path=path)
        return row(link, sql, values)

    monkeypatch.setattr(Link, "row", broken)
    with pytest.raises(errors.StorageFull):
        store.load([("c", 0, [])])
    assert len(store._idle) == 1


# Threads that meet.


def test_a_connection_that_is_given_back_while_the_store_is_closed_is_closed(path: str) -> None:
    store = Sqlite(path)

    class Late(list[Link]):
        def append(self, link: Link) -> None:
            store.close()
            super().append(link)

    link = store.borrow()
    store._idle = Late()
    store.give_back(link)
    assert store._idle == []
    with pytest.raises(apsw.ConnectionClosedError):
        link._db.execute("select 1")


def test_the_last_idle_connection_may_be_taken_by_another_thread(path: str) -> None:
    store = Sqlite(path)

    class Emptied(list[Link]):
        def __bool__(self) -> bool:
            return True

    store._idle = Emptied()
    store.borrow().close()


# Opening.


@pytest.mark.parametrize("make", [lambda path: path.write_text("dear diary\n" * 50), Path.touch, Path.mkdir])
def test_nothing_is_left_beside_what_is_no_store(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "notes")
    gc.collect()  # stores of other tests that nobody closed
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        with pytest.raises(errors.NotAStore):
            Sqlite(str(tmp_path / "notes"))
    assert os.listdir(tmp_path) == ["notes"]
    assert len(os.listdir("/dev/fd")) == before


def test_a_store_without_its_gate_and_bell_is_opened(path: str) -> None:
    store = Sqlite(path)
    put(store, "c", "a", b"1")
    store.close()
    os.unlink(path + "-gate")
    os.unlink(path + "-bell")
    assert value_of(Sqlite(path), "c", "a") == b"1"


@pytest.mark.parametrize("url", ["sqlite:{}/store.db", "files:{}/store"])
def test_two_who_open_a_restored_store_agree_on_its_epoch(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    store = open_store(url.format(home))
    put(store, "c", "a", b"1")
    shutil.copytree(home, tmp_path / "copy")
    old = epoch_of(store)
    put(store, "c", "a", b"2")
    store.close()
    bell = next(path for path in home.rglob("*bell"))
    rung = bell.read_bytes()
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "copy", home)
    bell.write_bytes(rung)

    epochs: list[str] = []
    is_ahead_of = Bell.is_ahead_of

    def overtaken(self: Bell, ledger: Ledger) -> bool:
        ahead = is_ahead_of(self, ledger)
        if not epochs:
            epochs.append("")
            epochs.append(epoch_of(open_store(url.format(home))))
        return ahead

    monkeypatch.setattr(Bell, "is_ahead_of", overtaken)
    assert epoch_of(open_store(url.format(home))) == epochs[1] != old


def epoch_of(ledger: Ledger) -> str:
    with ledger.snapshot() as snapshot:
        return snapshot.epoch


def test_a_conflict_with_a_snapshot_that_was_used_before_writes_nothing(path: str) -> None:
    store, other = Sqlite(path), Sqlite(path)
    put(store, "c", "a", b"0")
    with store.snapshot() as snapshot:
        put(other, "c", "a", b"rival")
        for _ in range(2):
            with pytest.raises(Conflict):
                store.commit([ItemIs("c", "a", 1)], [Put("c", "a", b"mine")], snapshot)
    assert value_of(store, "c", "a") == b"rival"
