"""The thread that makes many changes one commit."""

import queue
import time
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.hub.writer import Writer
from accord.store.contract import Put
from accord.store.engines.sqlite import Sqlite
from accord.testing.conformance.tools import value_of

MANY = 5


class Job:
    """Puts an item, or fails."""

    def __init__(self, writer: Writer, id: str, failure: Exception | None = None) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._writer = writer
        self._id = id
        self._failure = failure

    def work(self) -> int:
        if self._failure is not None:
            raise self._failure
        return self._writer.ledger.commit([], [Put("c", self._id, b"x")]).revision


@pytest.fixture
def store(tmp_path: Path) -> Sqlite:
    return Sqlite(str(tmp_path / "store.db"))


def done_by(store: Sqlite) -> tuple[Writer, "queue.SimpleQueue[list[Job]]"]:
    told: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
    return Writer(store, told.put, lambda: None), told


def all_of(told: "queue.SimpleQueue[list[Job]]", count: int) -> list[Job]:
    found: list[Job] = []
    while len(found) < count:
        found += told.get(timeout=20)
    return found


def test_one_that_fails_leaves_its_neighbours_alone(store: Sqlite) -> None:
    writer, told = done_by(store)
    for n in range(MANY):
        writer.submit(Job(writer, f"i{n}", errors.EmptyMessageNotAllowed() if n == 2 else None))
    jobs = all_of(told, MANY)
    assert [type(job.error) for job in jobs].count(errors.EmptyMessageNotAllowed) == 1
    assert [value_of(store, "c", f"i{n}") for n in range(MANY)] == [b"x", b"x", None, b"x", b"x"]
    writer.close(5.0)


def test_a_gate_that_stays_shut_is_waited_for_once(store: Sqlite, tmp_path: Path) -> None:
    """Not once for each of those who wait: the last would be answered when nobody asks any more."""
    store.patience_s = 0.5
    other = Sqlite(str(tmp_path / "store.db"))
    writer, told = done_by(store)
    with other.exclusive():
        start = time.monotonic()
        for n in range(MANY):
            writer.submit(Job(writer, f"i{n}"))
        jobs = all_of(told, MANY)
        took_s = time.monotonic() - start
    assert [type(job.error) for job in jobs] == [errors.LockTimeout] * MANY
    assert took_s < 0.5 * MANY, "the first may have come alone, and all others together"
    writer.submit(Job(writer, "after"))
    assert all_of(told, 1)[0].error is None
    writer.close(5.0)
