"""The engines under test, the homes they live in, and what must be in a store after a given list of changes."""

import os
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import apsw

from accord.store.contract import Change, Head, Item
from accord.store.open import open_store
from accord.store.protocols import Exclusive, Store, Watch
from accord.store.transaction import transact
from tests.robustness.worker import change

# Each with the place of its store in a home.
PLACES = {"sqlite": "store.db", "files": "store", "files-mkdir": "store?lock=mkdir"}
ENGINES = list(PLACES)

ROOT = Path(__file__).parent.parent.parent

# A worker runs as this, with arguments of its own behind. It never writes bytecode: that would be more
# system calls, in the first run only.
PYTHON = [sys.executable, "-S", "-c"]
WORKER = [*PYTHON, "from tests.robustness.worker import main; main()"]
WORKER_ENV = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), str(Path(apsw.__file__).parent.parent)]),
    "PYTHONDONTWRITEBYTECODE": "1",
}

NEXT = 1000  # the change that `check_store` makes

if TYPE_CHECKING:

    class LockableStore(Store, Exclusive, Protocol):
        pass


Contents = dict[str, tuple[Head, list[Item]]]


def url_in(engine: str, home: Path) -> str:
    return f"{engine.partition('-')[0]}:{home / PLACES[engine]}"


def open_lockable(engine: str, home: Path) -> "LockableStore":
    return open_store(url_in(engine, home))  # type: ignore[return-value]  # all engines on a disk can be locked


def prepare(engine: str, home: Path, applied: tuple[int, ...]) -> str:
    """Make a home whose store holds these changes; its epoch."""
    with closing(open_store(url_in(engine, home))) as store:
        for n in applied:
            transact(store, change(n))
        with store.snapshot() as snapshot:
            return snapshot.epoch


def applied(store: Store) -> tuple[int, ...]:
    """The changes that the store holds, by the letters they appended."""
    numbers = [int(item.value) for item in all_items(store, "mail/ada")]
    return tuple(number for number in numbers if number > 0)


def contents(store: Store) -> Contents:
    with store.snapshot() as snapshot:
        return {
            collection: (snapshot.head(collection), list(snapshot.list(collection, limit=1000)))
            for collection in snapshot.collections(limit=1000)
        }


def all_items(store: Store, collection: str) -> list[Item]:
    with store.snapshot() as snapshot:
        found: list[Item] = []
        while page := snapshot.list(collection, after=found[-1].id if found else "", limit=1000):
            found += page
        return found


def history(store: Store) -> list[Change]:
    """Everything that a watch from the beginning gives out by now."""
    with store.watch([""], 0) as watch:
        return news(watch)


def news(watch: Watch) -> list[Change]:
    found = []
    while change := watch.next(0):
        found.append(change)
    return found


@cache
def expected(changes: tuple[int, ...]) -> tuple[Contents, list[Change]]:
    """What the memory engine holds after these changes."""
    store = open_store("memory:")
    for n in changes:
        transact(store, change(n))
    return contents(store), history(store)


def check_store(engine: str, home: Path, epoch: str = "") -> tuple[int, ...]:
    """Open the store as its next user: every change is whole, the history has no gap, and it takes another.

    Returns the changes that it held. Those that were never acknowledged may come to light only with the next one,
    behind all others. `epoch` is the one that the store must still have, if that is known.
    """
    with closing(open_store(url_in(engine, home))) as store, store.watch([""], 0, epoch) as watch:
        first = applied(store)
        told = news(watch)
        assert (contents(store), told) == expected(first)
        transact(store, change(NEXT))
        *found, last = applied(store)
        assert (contents(store), told + news(watch)) == expected((*found, last))
        assert last == NEXT
        assert tuple(found[: len(first)]) == first
    INTEGRITY[engine](home)
    return tuple(found)


def acknowledged(said: str) -> tuple[int, ...]:
    """The changes that a worker acknowledged, from what it said."""
    return tuple(int(line.split()[1]) for line in said.splitlines() if line.startswith("acknowledged "))


def failures(said: str) -> dict[int, str]:
    """The changes that failed, with the code of the error; 0 stands for opening the store."""
    lines = [line.split() for line in said.splitlines() if line.startswith("failed ")]
    return {int(line[1]): line[2] for line in lines}


def _sqlite_integrity(home: Path) -> None:
    with closing(apsw.Connection(str(home / PLACES["sqlite"]))) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]


def _files_integrity(home: Path) -> None:
    """Each value was checked as it was read; no older version of a document lies about."""
    assert [path for path in home.rglob("*") if path.suffix == ".old"] == []


# What there is to say of an engine's files beyond what a store can tell.
INTEGRITY: dict[str, Callable[[Path], None]] = {
    "sqlite": _sqlite_integrity,
    "files": _files_integrity,
    "files-mkdir": _files_integrity,
}
