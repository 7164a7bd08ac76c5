"""The gate held, and one write transaction of the database for all that is committed inside."""

import time

from accord import errors
from accord.store.contract import LOCK_WAIT_S, Committed, Instant, check_commit
from accord.store.engines.sqlite.link import Snapshot
from accord.store.engines.sqlite.making import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from accord.store import protocols
    from accord.store.contract import Check, Content, Write
    from accord.store.engines.sqlite import Sqlite

    T = TypeVar("T")


class Batch:
    def __init__(self, store: "Sqlite", timeout_s: float) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._wrote = False
        self._must_sync = False
        self._failure: BaseException | None = None  # of a write, after which not all of the block is there
        self._snapshots: list[Snapshot] = []  # since the last write

    def __enter__(self) -> "Batch":
        store = self._store
        self._link = link = store.borrow()
        deadline = time.monotonic() + self._timeout_s
        try:
            store.gate.acquire(self._timeout_s)
            try:
                if store.gate.was_marked:
                    store.heal(link)
                link.begin_to_write(deadline - time.monotonic())
                link.holds = True
            except BaseException:
                self._leave_gate()
                raise
        except BaseException:
            store.give_back(link)
            raise
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if self._link.opened.is_inherited():
            if kind is None:
                self._link.opened.check_process()
            return  # the transaction and the gate are the parent's
        self._end_snapshots()
        is_done = self._wrote and kind is None
        store, link = self._store, self._link
        try:
            try:
                if kind is None:
                    self._check_whole()
                if is_done:
                    link.put_down()
                    link.commit()
            finally:
                self._leave_gate()
            if is_done:
                store.settle(link)
        finally:
            store.give_back(link)
        if self._must_sync and kind is None and not self._wrote:
            store.sync()

    def snapshot(self) -> Snapshot:
        self._check_whole()
        self._snapshots.append(Snapshot(self._link, None))
        return self._snapshots[-1]

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "protocols.Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        self._check_whole()
        if snapshot is None or snapshot.revision != self._link.revision:
            self._link.check(checks)
        if not writes:
            return Committed(self._link.revision, ())
        return self._write(lambda: self._link.write(writes), checks_first=True)

    def now(self) -> Instant:
        return self._store.now()

    def sync(self) -> None:
        self._must_sync = True  # when the block is left

    def load(self, contents: "Iterable[Content]") -> None:
        self._check_whole()
        self._link.put_down()
        self._write(lambda: fill(self._link, contents))

    def renew_epoch(self) -> None:
        self._link.put_down()
        self._write(self._link.renew_epoch)

    def _write(self, write: "Callable[[], T]", checks_first: bool = False) -> "T":
        """Write something, and remember should that fail half-way: then nothing of the block may be committed.

        With `checks_first` a wrong key is found before anything was written.
        """
        try:
            done = write()
        except BaseException as failure:
            if not (checks_first and isinstance(failure, errors.InvalidKey)):
                self._failure = failure
                self._end_snapshots()
            raise
        self._wrote = True
        self._end_snapshots()
        return done

    def _check_whole(self) -> None:
        """Refuse to go on where SQLite has undone everything: what follows would be committed by itself."""
        self._link.opened.check_process()
        if self._failure is None and not self._link.in_transaction:
            self._failure = errors.StorageFailing(path=self._link.path, reason="SQLite gave up the transaction")
        if self._failure is not None:
            raise self._failure

    def _end_snapshots(self) -> None:
        """They would show what is written from now on."""
        for snapshot in self._snapshots:
            snapshot.is_over = True
        self._snapshots.clear()

    def _leave_gate(self) -> None:
        try:
            self._link.end()
        finally:
            self._store.gate.release()
