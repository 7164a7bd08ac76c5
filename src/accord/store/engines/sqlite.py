"""The default engine: one SQLite database in WAL mode, its `-gate` and its `-bell` beside it.

A commit is made at synchronous=NORMAL under the gate; then the gate is opened, the WAL is flushed, and only
then is the commit acknowledged: writers in one queue share their flushes, and nobody is starved as by SQLite's
own busy-wait. docs/design/store.md has the reasons, and what was measured.
"""

import os

import apsw

from accord import errors, platform
from accord.store.contract import (
    KEPT_REVISIONS,
    LOCK_WAIT_S,
    MAX_PAGE,
    TRIM_EVERY,
    Change,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    Instant,
    Item,
    assign_numbers,
    check_commit,
    check_contents,
    check_page,
    new_epoch,
    resolve,
)
from accord.store.local import folder
from accord.store.local.bell import Bell
from accord.store.local.gate import Gate
from accord.store.opened import Opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from accord.store.contract import Check, Content, Snapshot, Store, Write
    from accord.store.local.watch import FileWatch, Log

FORMAT = 1
PAGE_BYTES = 2048  # half of SQLite's own: a commit touches some eight pages, and each is written whole
CHECKPOINT_PAGES = 1_000  # in the WAL; with more, who opens the store first has more to read
BUSY_MS = 10_000  # other programs may lock the database without asking at the gate

# Otherwise SQLite flushes inside each commit, with what the platform has for it.
FLUSH_BY_HAND = platform.FLUSHES_WITH_FDATASYNC

_SCHEMA = """
create table meta(one integer primary key check (one = 1), format integer, epoch text, floor integer) strict;
create table heads(collection text primary key, revision integer, last integer) strict, without rowid;
create table items(collection text, id text, revision integer, value blob, unique (collection, id)) strict;
create table changes(revision integer primary key, keys text) strict;
"""

_META = "select format, epoch, (select max(revision) from changes), floor from meta"
_GET = "select value, revision from items where collection = ? and id = ?"
_HEAD = "select revision, last from heads where collection = ?"
_REVISION = "select revision from items where collection = ? and id = ?"
_UP = "select id, value, revision from items where collection = ? and id > ? order by id limit ?"
_DOWN = "select id, value, revision from items where collection = ? and id < ? order by id desc limit ?"
_NAMES = "select collection from heads where collection >= ? and collection > ? and collection < ? order by 1 limit ?"
_PUT = (
    "insert into items (collection, id, revision, value) values (?, ?, ?, ?)"
    " on conflict do update set revision = excluded.revision, value = excluded.value"
)
_DELETE = "delete from items where collection = ? and id = ?"
_TOUCH = (
    "insert into heads values (?, ?, ?)"
    " on conflict do update set revision = excluded.revision, last = max(last, excluded.last)"
)
_LOG = "insert into changes values (?, ?)"
_CHANGES = "select revision, keys from changes where revision > ? order by revision limit ?"

_HEAL_BYTES = 1 << 20
_AFTER_ALL = "~"  # sorts after every character of a key


def open_store(place: str) -> "Store":
    return Sqlite(place)


class Sqlite:
    durability = "power"

    def __init__(self, place: str) -> None:
        place = os.path.abspath(os.path.expanduser(place))
        if os.path.islink(place) and not os.path.exists(place):
            raise errors.NotAStore(path=place, reason="it is a link to nothing")
        # SQLite names the WAL by the file that a link leads to, and so must the gate be named.
        self._path = os.path.realpath(place)
        self._opened = Opened(self._path)
        self._idle: list[_Link] = []  # connections that no snapshot uses
        folder.make_folder(os.path.dirname(self._path))
        self._gate = Gate(self._path + "-gate")
        self._bell = Bell(self._path + "-bell")
        if not os.path.exists(self._path):
            self._create()
        self._recognise()

    def snapshot(self) -> "_Snapshot":
        link = self._borrow()
        try:
            link.begin()
        except BaseException:
            self._give_back(link)
            raise
        return _Snapshot(link, self)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        self._opened.check()
        if not isinstance(snapshot, _Snapshot):
            with self.snapshot() as newest:
                newest.link.check(checks)
                return self.commit(checks, writes, newest, timeout_s)
        link = snapshot.link
        if not writes:
            link.restart("begin")
            link.check(checks)
            return Committed(link.revision, ())
        at_once = self._gate.try_acquire()
        if not at_once:
            # A reader that waits in the queue would keep the WAL from ever starting anew.
            link.end()
            self._gate.acquire(timeout_s)
        try:
            done = self._write(link, checks, writes, stale=not at_once)
            link.commit()
        finally:
            link.end()
            self._gate.release()
        self._settle(link)
        return done

    def exclusive(self, timeout_s: float = LOCK_WAIT_S) -> "_Batch":
        return _Batch(self, timeout_s)

    def watch(self, prefixes: "Sequence[str]", since: int, epoch: str = "") -> "FileWatch":
        from accord.store.local.watch import FileWatch

        return FileWatch(self, self._bell, prefixes, since, epoch)

    def changes(self, since: int) -> "Log":
        """A page of the change log, for the watch."""
        from accord.store.local.watch import Log

        with self.snapshot() as snapshot:
            link = snapshot.link
            rows = link.rows(_CHANGES, (since, MAX_PAGE))
            newest = rows[-1][0] if len(rows) == MAX_PAGE else link.revision
            return Log(link.epoch, link.floor, newest, [Change(row[0], _keys(row[1])) for row in rows])

    def now(self) -> Instant:
        return Instant(platform.boot_id(), platform.boot_seconds())

    def sync(self) -> None:
        self._opened.check()
        if self._gate.marked():
            with self.exclusive():
                pass
        with self.snapshot() as snapshot:
            self._flush(snapshot.link)

    def load(self, contents: "Iterable[Content]") -> None:
        with self.exclusive() as batch:
            batch.load(contents)
        link = self._borrow()
        link.rows("pragma wal_checkpoint(truncate)", ())  # the next one to open would have to read it all
        self._give_back(link)

    def close(self) -> None:
        if self._opened.closed:
            return
        self._opened.closed = True
        while self._idle:
            self._idle.pop().close()
        self._gate.close()
        self._bell.close()

    # What snapshots and batches need of their store.

    def _borrow(self) -> "_Link":
        self._opened.check()
        return self._idle.pop() if self._idle else _Link(self._path)

    def _give_back(self, link: "_Link") -> None:
        link.end()
        if self._opened.closed or link.is_broken:
            link.close()
        else:
            self._idle.append(link)

    def _write(self, link: "_Link", checks: "Sequence[Check]", writes: "Sequence[Write]", stale: bool) -> Committed:
        """Write inside the gate, in the snapshot's own transaction if that still sees the newest state."""
        if self._gate.was_marked:
            link.end()
            self._heal(link)
            stale = True
        if not stale:
            done = link.try_write(writes)
            if done is not None:
                return done
        link.restart("begin immediate")
        link.check(checks)
        return link.write(writes)

    def _settle(self, link: "_Link") -> None:
        """Make a commit durable and tell those who watch."""
        try:
            self._flush(link)
        except errors.StorageFailing as failure:
            raise errors.OutcomeUnknown(path=self._path, reason=failure.details["reason"]) from None
        self._bell.ring(link.epoch, link.revision)

    def _flush(self, link: "_Link") -> None:
        if not FLUSH_BY_HAND:
            return  # every commit was flushed by SQLite
        try:
            platform.flush(link.wal)
        except OSError as error:
            # The kernel may have dropped what it could not write, and tells each descriptor only once.
            self._gate.mark(True)
            raise errors.StorageFailing(path=self._path, reason=error.strerror) from None
        if self._gate.marked():
            raise errors.StorageFailing(path=self._path, reason="a flush of another process failed")

    def _heal(self, link: "_Link") -> None:
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
        self._gate.mark(False)

    def _create(self) -> None:
        """Make the database under another name, so that nobody ever meets half a store."""
        self._gate.acquire(LOCK_WAIT_S)
        try:
            if not os.path.exists(self._path):
                _build(self._path + "-new")
                os.rename(self._path + "-new", self._path)
                folder.flush_folder(os.path.dirname(self._path))
        except OSError as error:
            raise folder.refusal(error, self._path) from None
        finally:
            self._gate.release()

    def _recognise(self) -> None:
        """Open the first connection, and see whether this is a store of ours with all that was said of it."""
        if not os.path.isfile(self._path):
            raise errors.NotAStore(path=self._path, reason="it is not a file")
        ahead = self._bell.is_ahead_of(self)
        link = self._borrow()
        mode = link.rows("pragma journal_mode = wal", ())[0][0]  # another program may have changed it
        self._give_back(link)
        if mode != "wal":
            raise errors.NotAStore(path=self._path, reason=f"its journal mode is {mode}, and cannot be made wal")
        if ahead:
            with self.exclusive() as batch:
                batch.renew_epoch()


class _Link:
    """One connection, and where the store stood when its transaction began."""

    __slots__ = ("_db", "_execute", "_execute_many", "_path", "epoch", "floor", "is_broken", "revision", "wal")

    def __init__(self, path: str) -> None:
        self._path = path
        self.is_broken = False  # a connection that found no WAL to write to stays so
        self.wal = -1  # to flush by; of its own, since a failed flush is told to each descriptor, and to it only once
        try:
            self._db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
            cursor = self._db.cursor()
            self._execute, self._execute_many = cursor.execute, cursor.executemany
            self._db.set_busy_timeout(BUSY_MS)
            self._db.wal_autocheckpoint(CHECKPOINT_PAGES)
            # The last one to close would copy the WAL into the database: ten times the cost of a commit.
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._execute("pragma synchronous = normal" if FLUSH_BY_HAND else "pragma synchronous = full")
            if not FLUSH_BY_HAND:
                self._execute("pragma fullfsync = 1")
        except apsw.Error as error:
            raise _failure(error, path) from None

    def begin(self, how: str = "begin") -> None:
        try:
            self._execute(how)
            row = self._execute(_META).fetchone()
        except apsw.Error as error:
            raise self._failed(error) from None
        if row is None:
            raise errors.NotAStore(path=self._path, reason="it holds no store")
        if row[0] != FORMAT:
            raise errors.StoreTooNew(path=self._path, found=row[0], known=FORMAT)
        if self.wal < 0 and FLUSH_BY_HAND:
            self._open_wal()
        self.epoch: str = row[1]
        self.revision: int = row[2] or 0
        self.floor: int = row[3]

    def _open_wal(self) -> None:
        """There is one, now that something was read, for as long as this connection lives."""
        try:
            self.wal = os.open(self._path + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            pass  # another program took the database out of WAL mode; who opens the store puts it back
        except OSError as error:
            raise folder.refusal(error, self._path) from None

    def restart(self, how: str) -> None:
        self.end()
        self.begin(how)

    def commit(self) -> None:
        try:
            self._execute("commit")
        except apsw.Error as error:
            raise self._failed(error) from None

    def end(self) -> None:
        if self._db.in_transaction:
            self._execute("rollback")

    def close(self) -> None:
        self._db.close()
        if self.wal >= 0:
            os.close(self.wal)

    def row(self, sql: str, args: "tuple[apsw.SQLiteValue, ...]") -> "tuple[Any, ...] | None":
        try:
            return self._execute(sql, args).fetchone()
        except apsw.Error as error:
            raise self._failed(error) from None

    def rows(self, sql: str, args: "tuple[apsw.SQLiteValue, ...]") -> "list[tuple[Any, ...]]":
        try:
            return self._execute(sql, args).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: apsw.Error) -> errors.AccordError:
        self.is_broken = not isinstance(error, apsw.FullError | apsw.BusyError)
        return _failure(error, self._path)

    def check(self, checks: "Sequence[Check]") -> None:
        for check in checks:
            if isinstance(check, CollectionIs):
                row = self.row(_HEAD, (check.collection,))
            else:
                row = self.row(_REVISION, (check.collection, check.id))
            if (row[0] if row else 0) != check.revision:
                raise Conflict

    def try_write(self, writes: "Sequence[Write]") -> Committed | None:
        """Write in the transaction that was begun for reading; None when others have committed since."""
        try:
            return self._write(writes)
        except (apsw.BusyError, errors.InvalidKey):
            return None  # a number that is not there may be by now
        except apsw.Error as error:
            raise self._failed(error) from None

    def write(self, writes: "Sequence[Write]") -> Committed:
        try:
            return self._write(writes)
        except apsw.Error as error:
            raise self._failed(error) from None

    def _write(self, writes: "Sequence[Write]") -> Committed:
        execute, execute_many = self._execute, self._execute_many
        revision = self.revision + 1
        numbers, lasts = assign_numbers(writes, self._last)
        values = {(collection, id): value for collection, id, value in resolve(writes, numbers)}
        execute(_LOG, (revision, "\n".join([" ".join(key) for key in values])))
        touched = {collection: (collection, revision, lasts.get(collection, 0)) for collection, _ in values}
        execute_many(_TOUCH, touched.values())
        execute_many(_PUT, [(*key, revision, value) for key, value in values.items() if value is not None])
        execute_many(_DELETE, [key for key, value in values.items() if value is None])
        if revision % TRIM_EVERY == 0:
            self._trim(revision - KEPT_REVISIONS)
        self.revision = revision
        return Committed(revision, tuple(numbers))

    def _last(self, collection: str) -> int:
        row = self._execute(_HEAD, (collection,)).fetchone()
        return row[1] if row else 0

    def _trim(self, floor: int) -> None:
        if floor > self.floor:
            self._execute("delete from changes where revision <= ?", (floor,))
            self._execute("update meta set floor = ?", (floor,))
            self.floor = floor

    def load(self, contents: "Iterable[Content]") -> None:
        if self.revision:
            raise errors.StoreNotEmpty(path=self._path)
        try:
            for collection, last, items in check_contents(contents):
                self._execute("insert into heads values (?, 1, ?)", (collection, last))
                rows = ((collection, item.id, item.value) for item in items)
                self._db.executemany("insert into items (collection, id, revision, value) values (?, ?, 1, ?)", rows)
            self._execute(_LOG, (1, ""))
            self._execute("update meta set floor = 1")
        except apsw.Error as error:
            raise self._failed(error) from None
        self.revision = self.floor = 1

    def renew_epoch(self) -> None:
        self.epoch = new_epoch()
        self.rows("update meta set epoch = ?", (self.epoch,))


class _Snapshot:
    __slots__ = ("_store", "epoch", "link", "revision")

    def __init__(self, link: _Link, store: "Sqlite | None") -> None:
        self.link = link
        self.epoch = link.epoch
        self.revision = link.revision
        self._store = store  # whom the connection goes back to; None: it is a batch's

    def __enter__(self) -> "_Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._store is not None:
            self._store._give_back(self.link)
            self._store = None

    def get(self, collection: str, id: str) -> Item | None:
        row = self.link.row(_GET, (collection, id))
        return Item(id, row[0], row[1]) if row else None

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        if reverse:
            rows = self.link.rows(_DOWN, (collection, after or _AFTER_ALL, limit))
        else:
            rows = self.link.rows(_UP, (collection, after, limit))
        return [Item(*row) for row in rows]

    def head(self, collection: str) -> Head:
        row = self.link.row(_HEAD, (collection,))
        return Head(*row) if row else Head(0, 0)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        return [row[0] for row in self.link.rows(_NAMES, (prefix, after, prefix + _AFTER_ALL, limit))]


class _Batch:
    """The gate held, and one write transaction of the database for all that is committed inside."""

    def __init__(self, store: Sqlite, timeout_s: float) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._wrote = False
        self._must_sync = False

    def __enter__(self) -> "_Batch":
        store = self._store
        self._link = link = store._borrow()
        try:
            store._gate.acquire(self._timeout_s)
        except BaseException:
            store._give_back(link)
            raise
        try:
            if store._gate.was_marked:
                store._heal(link)
            link.begin("begin immediate")
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        store, link = self._store, self._link
        try:
            if self._wrote and kind is None:
                link.commit()
        except BaseException:
            self._leave()
            raise
        link.end()
        store._gate.release()
        try:
            if self._wrote and kind is None:
                store._settle(link)
        finally:
            store._give_back(link)
        if self._must_sync and not self._wrote and kind is None:
            store.sync()

    def snapshot(self) -> _Snapshot:
        return _Snapshot(self._link, None)

    def commit(
        self,
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None" = None,
        timeout_s: float = LOCK_WAIT_S,
    ) -> Committed:
        check_commit(checks, writes)
        if snapshot is None or snapshot.revision != self._link.revision:
            self._link.check(checks)
        if not writes:
            return Committed(self._link.revision, ())
        self._wrote = True
        return self._link.write(writes)

    def now(self) -> Instant:
        return self._store.now()

    def sync(self) -> None:
        self._must_sync = True  # when the block is left

    def load(self, contents: "Iterable[Content]") -> None:
        self._wrote = True
        self._link.load(contents)

    def renew_epoch(self) -> None:
        self._wrote = True
        self._link.renew_epoch()

    def _leave(self) -> None:
        self._store._give_back(self._link)
        self._store._gate.release()


def _build(path: str) -> None:
    """An empty store at `path`, durable, and without a WAL beside it."""
    for leftover in (path, path + "-wal", path + "-shm", path + "-journal"):
        if os.path.lexists(leftover):
            os.unlink(leftover)
    fd = folder.open_private(path)
    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        db.execute(f"pragma page_size = {PAGE_BYTES}; pragma synchronous = full")
        db.execute("begin")
        db.execute(_SCHEMA)
        db.execute("insert into meta values (1, ?, ?, 0)", (FORMAT, new_epoch()))
        db.execute("commit")
        # Last, so that nothing of the store is in a WAL, which would not come along.
        mode = db.execute("pragma journal_mode = wal").get
        db.close()
        os.fsync(fd)
        if mode != "wal":
            raise errors.StorageFailing(path=path, reason="the database cannot be put into WAL mode")
    except apsw.Error as error:
        raise _failure(error, path) from None
    finally:
        os.close(fd)


def _keys(text: str) -> tuple[tuple[str, str], ...]:
    return tuple([(collection, id) for collection, _, id in [line.partition(" ") for line in text.split("\n")]])


def _failure(error: apsw.Error, path: str) -> errors.AccordError:
    """What SQLite's error means to a person."""
    reason = str(error)
    # Room for its shared memory SQLite misses as an I/O error.
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and folder.is_full(os.path.dirname(path))):
        return errors.StorageFull(path=path)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return errors.LockTimeout(path=path, timeout_seconds=BUSY_MS / 1000, holder="another program", pid=0)
    if isinstance(error, apsw.NotADBError):
        return errors.NotAStore(path=path, reason="it is no SQLite database")
    if isinstance(error, apsw.SQLError):
        return errors.NotAStore(path=path, reason=f"it is a database of something else ({reason})")
    if isinstance(error, apsw.CorruptError):
        return errors.StoreDamaged(path=path, reason=reason)
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return errors.DataDirError(path=path, errno=0, reason=reason)
    return errors.StorageFailing(path=path, reason=reason)
