"""One connection to the database, and the snapshot that its transaction is."""

import os

import apsw

from accord import errors, platform
from accord.store.contract import (
    KEPT_REVISIONS,
    TRIM_EVERY,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    Item,
    assign_numbers,
    check_page,
    new_epoch,
    resolve,
)
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from accord.store.contract import Check, Write
    from accord.store.engines.sqlite import Sqlite

    Values = tuple[apsw.SQLiteValue, ...]

FORMAT = 1
BUSY_MS = 10_000  # other programs may lock the database without asking at the gate
CHECKPOINT_PAGES = 1_000  # in the WAL; with more, who opens the store first has more to read

# Otherwise SQLite flushes inside each commit, with what the platform has for it.
FLUSH_BY_HAND = platform.FLUSHES_WITH_FDATASYNC

_HEAD = "select revision, last from heads where collection = ?"
_META = "select format, epoch, (select max(revision) from changes), floor from meta"
_REVISION = "select revision from items where collection = ? and id = ?"
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
_GET = "select value, revision from items where collection = ? and id = ?"
_UP = "select id, value, revision from items where collection = ? and id > ? order by id limit ?"
_DOWN = "select id, value, revision from items where collection = ? and id < ? order by id desc limit ?"
_NAMES = "select collection from heads where collection >= ? and collection > ? and collection < ? order by 1 limit ?"

_AFTER_ALL = "~"  # sorts after every character of a key


class Link:
    """A connection, and where the store stood when its transaction began."""

    __slots__ = ("_db", "_execute", "_execute_many", "epoch", "floor", "is_broken", "path", "revision", "wal")

    def __init__(self, path: str) -> None:
        self.path = path
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
            raise self._failed(error) from None

    def begin(self, how: str = "begin") -> None:
        try:
            self._execute(how)
            row = self._execute(_META).fetchone()
        except apsw.Error as error:
            raise self._failed(error) from None
        if row is None:
            raise errors.NotAStore(path=self.path, reason="it holds no store")
        if row[0] != FORMAT:
            raise errors.StoreTooNew(path=self.path, found=row[0], known=FORMAT)
        if self.wal < 0:
            self._open_wal()
        self.epoch: str = row[1]
        self.revision: int = row[2] or 0
        self.floor: int = row[3]

    def _open_wal(self) -> None:
        """There is one, now that something was read, for as long as this connection lives."""
        try:
            self.wal = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            pass  # another program took the database out of WAL mode; who opens the store puts it back
        except OSError as error:
            raise folder.refusal(error, self.path) from None

    def restart(self, how: str) -> None:
        self.end()
        self.begin(how)

    def commit(self) -> None:
        self.row("commit")

    def flush(self) -> None:
        """Make all that was committed durable, unless SQLite did with each commit."""
        if FLUSH_BY_HAND:
            platform.flush(self.wal)

    def end(self) -> None:
        if self._db.in_transaction:
            self._execute("rollback")

    def close(self) -> None:
        self._db.close()
        if self.wal >= 0:
            os.close(self.wal)

    def row(self, sql: str, values: "Values" = ()) -> "tuple[Any, ...] | None":
        try:
            return self._execute(sql, values).fetchone()
        except apsw.Error as error:
            raise self._failed(error) from None

    def rows(self, sql: str, values: "Values" = ()) -> "list[tuple[Any, ...]]":
        try:
            return self._execute(sql, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from None

    def insert(self, sql: str, rows: "Iterable[Values]") -> None:
        try:
            self._execute_many(sql, rows)
        except apsw.Error as error:
            raise self._failed(error) from None

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
        execute_many = self._execute_many
        revision = self.revision + 1
        numbers, lasts = assign_numbers(writes, self._last)
        values = resolve(writes, numbers)
        self._execute(_LOG, (revision, "\n".join([" ".join(key) for key in values])))
        touched = {collection: (collection, revision, lasts.get(collection, 0)) for collection, _ in values}
        execute_many(_TOUCH, touched.values())
        puts = [(*key, revision, value) for key, value in values.items() if value is not None]
        execute_many(_PUT, puts)
        if len(puts) < len(values):
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

    def renew_epoch(self) -> None:
        self.epoch = new_epoch()
        self.row("update meta set epoch = ?", (self.epoch,))

    def _failed(self, error: apsw.Error) -> errors.AccordError:
        from accord.store.engines.sqlite.failure import meaning

        self.is_broken = not isinstance(error, apsw.FullError | apsw.BusyError)
        return meaning(error, self.path)


class Snapshot:
    """Reads inside one transaction: SQLite sees to it that they are of one revision."""

    __slots__ = ("_store", "epoch", "link", "revision")

    def __init__(self, link: Link, store: "Sqlite | None") -> None:
        self.link = link
        self.epoch = link.epoch
        self.revision = link.revision
        self._store = store  # whom the connection goes back to; None: it is a batch's

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._store is not None:
            self._store.give_back(self.link)
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
