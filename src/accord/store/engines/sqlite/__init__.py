"""The default engine: one SQLite database in WAL mode, its `-gate` and its `-bell` beside it.

A commit is made at synchronous=NORMAL under the gate; then the gate is opened, the WAL is flushed, and only
then is the commit acknowledged: writers in one queue share their flushes, and nobody is starved as by SQLite's
own busy-wait. docs/design/store.md has the reasons, and what was measured.
"""

import os
import time

from accord import errors, platform
from accord.store.contract import LOCK_WAIT_S, MAX_PAGE, Committed, Instant, Opened, check_commit
from accord.store.engines.sqlite.link import Link, Snapshot
from accord.store.local import folder
from accord.store.local.bell import Bell
from accord.store.local.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.store import protocols
    from accord.store.contract import Check, Content, Write
    from accord.store.engines.sqlite.batch import Batch
    from accord.store.local.watch import FileWatch, Log
    from accord.store.protocols import Store

_HEAL_BYTES = 1 << 20


def open_store(place: str) -> "Store":
    return Sqlite(place)


def is_there(place: str) -> bool:
    return folder.is_there(folder.place_of(place))


class Sqlite:
    durability = "power"
    patience_s = LOCK_WAIT_S

    def __init__(self, place: str) -> None:
        place = folder.place_of(place)
        if os.path.islink(place) and not os.path.exists(place):
            raise errors.NotAStore(path=place, reason="it is a link to nothing")
        # SQLite names the WAL by the file that a link leads to, and so must the gate be named.
        self._path = os.path.realpath(place)
        self._opened = Opened(self._path)
        self._idle: list[Link] = []  # connections that no snapshot uses
        self._beside: list[Gate | Bell] = []
        folder.make_folder(os.path.dirname(self._path))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def snapshot(self) -> Snapshot:
        link = self.borrow()
        try:
            link.begin()
        except BaseException:
            self.give_back(link)
            raise
        return Snapshot(link, self)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "protocols.Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        self._opened.check()
        if not isinstance(snapshot, Snapshot) or snapshot.is_over:
            with self.snapshot() as newest:
                newest.link.check(checks)
                return self.commit(checks, writes, newest, timeout_s)
        link = snapshot.link
        snapshot.is_over = True
        if not writes:
            link.end()
            link.begin()
            link.check(checks)
            return Committed(link.revision, ())
        deadline = time.monotonic() + timeout_s
        at_once = self.gate.try_acquire()
        if not at_once:
            # A reader that waits in the queue would keep the WAL from ever starting anew.
            link.end()
            self.gate.acquire(timeout_s)
        try:
            done = self._write(link, checks, writes, deadline, stale=not at_once)
            link.commit()
        finally:
            try:
                link.end()
            finally:
                self.gate.release()
        self.settle(link)
        return done

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "Batch":
        from accord.store.engines.sqlite.batch import Batch

        return Batch(self, timeout_s)

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "FileWatch":
        from accord.store.local.watch import FileWatch

        return FileWatch(self, self._opened, self._bell, prefixes, since, epoch)

    def changes(self, since: int) -> "Log":
        """A page of the change log, for the watch."""
        from accord.store.local.watch import Log

        with self.snapshot() as snapshot:
            link = snapshot.link
            changes = link.changes(since)
            newest = changes[-1].revision if len(changes) == MAX_PAGE else link.revision
            return Log(link.epoch, link.floor, newest, changes)

    def now(self) -> Instant:
        return Instant(platform.boot_id(), platform.boot_seconds())

    def sync(self) -> None:
        self._opened.check()
        if self.gate.marked():
            with self.exclusive():
                pass
        with self.snapshot() as snapshot:
            self._flush(snapshot.link)

    def load(self, contents: "Iterable[Content]") -> None:
        with self.exclusive() as batch:
            batch.load(contents)
        link = self.borrow()
        try:
            link.row("pragma wal_checkpoint(truncate)")  # the next one to open would have to read it all
        finally:
            self.give_back(link)

    def close(self) -> None:
        if self._opened.closed:
            return
        self._opened.closed = True
        self._close_idle()
        while self._beside:
            self._beside.pop().close()

    # What snapshots and batches need of their store.

    def borrow(self) -> Link:
        self._opened.check()
        try:
            return self._idle.pop()
        except IndexError:  # not asked for before: another thread may take the last one
            return Link(self._opened)

    def give_back(self, link: Link) -> None:
        try:
            link.end()
        finally:
            if link.is_broken:
                link.close()
            else:
                self._idle.append(link)
            if self._opened.closed:  # asked for only now: another thread may be closing
                self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                link = self._idle.pop()
            except IndexError:
                return
            link.close()

    def _write(
        self, link: Link, checks: "Sequence[Check]", writes: "Sequence[Write]", deadline: float, stale: bool
    ) -> Committed:
        """Write inside the gate, in the snapshot's own transaction if that still sees the newest state."""
        if self.gate.was_marked:
            link.end()
            self.heal(link)
            stale = True
        if not stale:
            done = link.try_write(writes)
            if done is not None:
                return done
        link.end()
        link.begin_to_write(deadline - time.monotonic())
        link.check(checks)
        return link.write(writes)

    def settle(self, link: Link) -> None:
        """Make a commit durable and tell those who watch."""
        try:
            self._flush(link)
        except errors.StorageFailing as failure:
            raise errors.OutcomeUnknown(path=self._path, reason=failure.details["reason"]) from None
        self._bell.ring(link.epoch, link.revision)

    def _flush(self, link: Link) -> None:
        try:
            link.flush()
        except OSError as error:
            # The kernel may have dropped what it could not write, and tells each descriptor only once.
            self._mark(True)
            raise errors.StorageFailing(path=self._path, reason=error.strerror) from None
        if self.gate.marked():
            raise errors.StorageFailing(path=self._path, reason="a flush of another process failed")

    def heal(self, link: Link) -> None:
        """After a failed flush: write the WAL anew, over itself, and flush it before anything is acknowledged.

        The kernel takes the pages that it could not write for written, and no later flush would write them. A
        checkpoint cannot help: until the WAL is on the disk it must not touch the database.
        """
        link.begin()  # now it has a WAL
        link.end()
        at = 0
        try:
            while piece := os.pread(link.wal, _HEAL_BYTES, at):
                at += os.pwrite(link.wal, piece, at)
            platform.flush(link.wal)
        except OSError as error:
            raise errors.StorageFailing(path=self._path, reason=error.strerror) from None
        self._mark(False)

    def _mark(self, on: bool) -> None:
        try:
            self.gate.mark(on)
        except OSError as error:
            reason = f"the gate could not be marked: {error.strerror}"
            raise errors.StorageFailing(path=self._path, reason=reason) from None

    def _open(self) -> None:
        """What there is, or a new store; beside a file that is no store nothing is made."""
        is_there = os.path.lexists(self._path)
        if is_there and not os.path.isfile(self._path):
            raise errors.NotAStore(path=self._path, reason="it is not a file")
        if is_there and not os.path.exists(self._path + "-gate"):
            with self.snapshot():
                pass
        self.gate = Gate(self._path + "-gate")
        self._beside.append(self.gate)
        self._bell = Bell(self._path + "-bell")
        self._beside.append(self._bell)
        if not is_there:
            self._create()
        self._recognise()

    def _create(self) -> None:
        """Make the database under another name, so that nobody ever meets half a store."""
        from accord.store.engines.sqlite.making import build, make_beside

        self.gate.acquire(LOCK_WAIT_S)
        try:
            if not os.path.exists(self._path):
                build(self._path + "-new")
                make_beside(self._path)
                os.rename(self._path + "-new", self._path)
                folder.flush_folder(os.path.dirname(self._path))
        except OSError as error:
            raise folder.refusal(error, self._path) from None
        finally:
            self.gate.release()

    def _recognise(self) -> None:
        """Open the first connection, and see whether this is a store of ours with all that was said of it."""
        ahead = self._bell.is_ahead_of(self)
        link = self.borrow()
        try:
            if link.wal < 0:  # another program may have changed the journal mode
                self._put_into_wal_mode(link)
        finally:
            self.give_back(link)
        if ahead:
            with self.exclusive() as batch:
                if self._bell.is_ahead_of(batch):  # else another who opened it was faster
                    batch.renew_epoch()

    def _put_into_wal_mode(self, link: Link) -> None:
        mode = link.rows("pragma journal_mode = wal")[0][0]
        if mode != "wal":
            raise errors.NotAStore(path=self._path, reason=f"its journal mode is {mode}, and cannot be made wal")
