"""What is recent in sqlite, before it is spread, and the moment at which it is."""

from pathlib import Path

import apsw
import pytest

from accord.store.contract import MAX_WRITES, Append, Conflict, Delete, Head, ItemIs, Put
from accord.store.engines.sqlite import Sqlite
from accord.store.engines.sqlite.link import SPREAD_EVERY
from accord.store.engines.sqlite.recent import PLACES


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def rows(path: str, table: str) -> int:
    return int(apsw.Connection(path).execute(f"select count(*) from {table}").get)


def test_every_write_of_a_commit_has_a_place() -> None:
    assert MAX_WRITES <= PLACES


def test_commits_are_spread_together(path: str) -> None:
    store = Sqlite(path)
    for n in range(1, SPREAD_EVERY):
        store.commit((), [Put("c", f"k{n}", b"v"), Append("log", b"x")])
        assert (rows(path, "recent"), rows(path, "items"), rows(path, "changes")) == (2 * n, 0, 0)
    store.commit((), [Delete("c", "k1")])
    assert (rows(path, "recent"), rows(path, "changes")) == (0, SPREAD_EVERY)
    assert rows(path, "items") == 2 * (SPREAD_EVERY - 1) - 1


@pytest.mark.parametrize("writes", [[Put("c", f"k{n}", b"") for n in range(9)], [Put("c", "k", bytes(20_000))]])
def test_a_large_commit_is_spread_at_once(path: str, writes: list[Put]) -> None:
    store = Sqlite(path)
    store.commit((), [Put("c", "before", b"")])
    store.commit((), writes)
    assert (rows(path, "recent"), rows(path, "items")) == (0, len(writes) + 1)


def test_what_is_rolled_back_is_not_remembered(path: str) -> None:
    store = Sqlite(path)
    store.commit((), [Put("c", "kept", b"1"), Append("log", b"x")])
    batch = store.exclusive()
    batch.__enter__()
    batch.commit((), [Put("c", "kept", b"2"), Append("log", b"y"), Put("c", "new", b"")])
    batch.__exit__(RuntimeError, RuntimeError(), None)
    with store.snapshot() as snapshot:
        kept = snapshot.get("c", "kept")
        assert kept is not None
        assert kept.value == b"1"
        assert [item.id for item in snapshot.list("c")] == ["kept"]
        assert snapshot.head("log") == Head(1, 1)


@pytest.mark.parametrize("is_noticed", [False, True])
def test_what_is_known_does_not_survive_a_database_that_went_back(path: str, is_noticed: bool) -> None:
    """Somebody restored a copy under a live process, and others may have opened it and gone on since."""
    store = Sqlite(path)
    store.commit((), [Put("c", "k", b"old")])
    db, copy = apsw.Connection(path), apsw.Connection(f"{path}-copy")
    with copy.backup("main", db, "main") as backup:
        backup.step()
    store.commit((), [Put("c", "k", b"future"), Put("c", "lost", b"")])
    with db.backup("main", copy, "main") as backup:
        backup.step()
    if is_noticed:  # by the one who opens it, and changes the epoch
        other = Sqlite(path)
        for _ in range(3):
            other.commit((), [Put("c", "k", b"other")])
    for _ in range(2):
        with store.snapshot() as snapshot:
            item = snapshot.get("c", "k")
            assert item is not None
            assert item.value == (b"other" if is_noticed else b"old")
            assert [found.id for found in snapshot.list("c")] == ["k"]
        for _ in range(SPREAD_EVERY):
            store.commit((), [Put("d", "k", b"")])


def test_a_connection_learns_what_others_wrote_and_spread(path: str) -> None:
    one, other = Sqlite(path), Sqlite(path)
    for n in range(1, 3 * SPREAD_EVERY + 2):
        (one if n % 3 else other).commit((), [Put("c", "k", b"%d" % n), Put("c", f"k{n % 5}", b"x")])
        for store in (one, other):
            with store.snapshot() as snapshot:
                item = snapshot.get("c", "k")
                assert item is not None
                assert (item.value, item.revision, snapshot.head("c").revision) == (b"%d" % n, n, n)
                assert [found.id for found in snapshot.list("c", reverse=True)][-1] == "k"
    with pytest.raises(Conflict):
        one.commit([ItemIs("c", "k", 1)], [Put("c", "k", b"")])
