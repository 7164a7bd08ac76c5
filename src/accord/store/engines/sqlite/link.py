"""One connection to the database, and the snapshot that its transaction is."""

import errno
import os

import apsw

from accord import errors, platform
from accord.store.contract import (
    KEPT_REVISIONS,
    MAX_PAGE,
    TRIM_EVERY,
    Change,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    Item,
    Moved,
    assign_numbers,
    check_page,
    new_epoch,
    resolve,
)
from accord.store.engines.sqlite.recent import PLACES, Recent
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from accord.store.contract import Check, Opened, Write
    from accord.store.engines.sqlite import Sqlite
    from accord.store.engines.sqlite.recent import Row

    Values = tuple[apsw.SQLiteValue, ...]

FORMAT = 2
BUSY_MS = 10_000  # how long a reader waits for other programs, which may lock the database without asking at the gate
_MOST_BUSY_MS = 1_000_000_000  # and a writer, however late its deadline is
CHECKPOINT_PAGES = 500  # in the WAL; with more, who opens the store first has more to read

# Otherwise SQLite flushes inside each commit, with what the platform has for it.
FLUSH_BY_HAND = platform.FLUSHES_WITH_FDATASYNC

# The recent commits are spread after so many, and at once after one that is large.
SPREAD_EVERY = 16
_LARGE_ROWS = 8
_LARGE_BYTES = 16_384
_MOST_HELD = 16 << 20  # bytes
_SMALL = 4096  # bytes of an item that is worth remembering in a batch
_MOST_KNOWN = 1_000

_META = "select format, epoch, floor, (select max(revision) from changes), (select max(place) from recent) from meta"
_GET = "select value, revision from items where collection = ? and id = ?"
_UP = "select id, value, revision from items where collection = ? and id > ? order by id limit ?"
_DOWN = "select id, value, revision from items where collection = ? and id < ? order by id desc limit ?"
_HEAD = "select revision, last from heads where collection = ?"
_NAMES = "select collection from heads where collection >= ? and collection > ? and collection < ? order by 1 limit ?"
_CHANGES = "select revision, keys from changes where revision > ? order by revision limit ?"
_RECENT = "select place, collection, id, last, value from recent where place > ? order by place"

_ADD = "insert into recent values (?, ?, ?, ?, ?)"

_AFTER_ALL = "~"  # sorts after every character of a key


class Link:
    """A connection, and where the store stood when its transaction began."""

    def __init__(self, opened: "Opened") -> None:
        self.opened = opened
        self.path = path = opened.path
        self.epoch = ""
        self.recent = Recent()
        self._wrote = False  # in this transaction
        self.holds = False  # what is written until `put_down`, as in a batch of many commits
        self._held: list[Row] = []
        self._held_bytes = 0
        self._busy_ms = BUSY_MS
        self._known: dict[tuple[str, str], Item] = {}  # read in a batch, where nobody else can change it
        self.is_broken = False  # a connection that found no WAL to write to stays so
        self.wal = -1  # to flush by; of its own, since a failed flush is told to each descriptor, and to it only once
        try:
            self._db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
            if self._db.readonly("main"):  # SQLite opens it so by itself when it may not write
                raise errors.DataDirError(path=path, errno=errno.EACCES, reason="this user may not write to that file")
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
            raise self._strange_format(row[0])
        if self.wal < 0:
            self._open_wal()
        if self.epoch != row[1]:
            self.recent.start_after(-1)
            self.epoch = row[1]
        self.floor: int = row[2]
        self._learn(row[3] or 0, row[4] or 0)

    def _open_wal(self) -> None:
        """There is one, now that something was read, for as long as this connection lives."""
        try:
            self.wal = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            pass  # another program took the database out of WAL mode; who opens the store puts it back
        except OSError as error:
            raise folder.refusal(error, self.path) from None

    def begin_to_write(self, left_s: float) -> None:
        """Wait for another program no longer than that."""
        self._wait_at_most(min(max(0, int(left_s * 1000)), _MOST_BUSY_MS))
        try:
            self.begin("begin immediate")
        finally:
            self._wait_at_most(BUSY_MS)

    def _wait_at_most(self, busy_ms: int) -> None:
        self._busy_ms = busy_ms
        self._db.set_busy_timeout(busy_ms)

    def _learn(self, spread_to: int, place: int) -> None:
        """Know what is recent by now."""
        recent = self.recent
        if recent.spread_to != spread_to or place < recent.place:
            recent.start_after(spread_to)
        if recent.place != place:
            recent.learn(self.rows(_RECENT, (recent.place,)))
        self.revision: int = max(spread_to, place // PLACES)

    def commit(self) -> None:
        self.row("commit")
        self._wrote = False

    def flush(self) -> None:
        """Make all that was committed durable, unless SQLite did with each commit."""
        if FLUSH_BY_HAND:
            platform.flush(self.wal)

    def end(self) -> None:
        if self._wrote:
            self.recent.start_after(-1)
            self._wrote = False
        if self._held:  # by a commit that was cut short
            self._held.clear()
            self._held_bytes = 0
        if self.holds:
            self.holds = False
            self._known.clear()
        if self._db.in_transaction:
            try:
                self._execute("rollback")
            except apsw.Error as error:
                raise self._failed(error) from None

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def close(self) -> None:
        try:
            self._db.close()
        finally:
            if self.wal >= 0:
                os.close(self.wal)
                self.wal = -1

    def row(self, sql: str, values: "Values" = ()) -> "tuple[Any, ...] | None":
        try:
            return self._execute(sql, values).fetchone()
        except apsw.Error as error:
            raise self._failed(error) from None
        except UnicodeEncodeError:
            return None  # a key with half a character in it, under which nothing can be

    def rows(self, sql: str, values: "Values" = ()) -> "list[tuple[Any, ...]]":
        try:
            return self._execute(sql, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from None
        except UnicodeEncodeError:
            return []

    def insert(self, sql: str, rows: "Iterable[Values]") -> None:
        try:
            self._execute_many(sql, rows)
        except apsw.Error as error:
            raise self._failed(error) from None

    def item(self, collection: str, id: str) -> Item | None:
        items = self.recent.items.get(collection)
        if items is not None and id in items:
            return items[id]
        known = self._known.get((collection, id))
        if known is not None:
            return known
        row = self.row(_GET, (collection, id))
        if row is None:
            return None
        item = Item(id, *row)
        if self.holds and len(item.value) < _SMALL and len(self._known) < _MOST_KNOWN:
            self._known[collection, id] = item
        return item

    def head(self, collection: str) -> Head:
        revision, last = self.recent.heads.get(collection) or (0, 0)
        if last:
            return Head(revision, last)  # the last number is known with the newest write that gave one
        row = self.row(_HEAD, (collection,)) or (0, 0)
        return Head(revision or row[0], row[1])

    def page(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[Item]":
        recent = self.recent.items.get(collection)
        if not recent:
            return self._spread_page(collection, after, limit, reverse)
        from accord.store import pages

        return pages.merged(lambda *page: self._spread_page(collection, *page), recent, after, limit, reverse)

    def _spread_page(self, collection: str, after: str, limit: int, reverse: bool) -> "Sequence[Item]":
        if reverse:
            rows = self.rows(_DOWN, (collection, after or _AFTER_ALL, limit))
        else:
            rows = self.rows(_UP, (collection, after, limit))
        return [Item(*row) for row in rows]

    def collections(self, prefix: str, after: str, limit: int) -> "Sequence[str]":
        spread = [row[0] for row in self.rows(_NAMES, (prefix, after, prefix + _AFTER_ALL, limit))]
        recent = [name for name in self.recent.heads if name.startswith(prefix) and name > after]
        return sorted({*spread, *recent})[:limit]

    def changes(self, since: int) -> "list[Change]":
        """Up to a page of them."""
        rows = self.rows(_CHANGES, (since, MAX_PAGE))
        rows += [(revision, "\n".join(keys)) for revision, keys in self.recent.keys.items() if revision > since]
        return [Change(revision, _keys(keys)) for revision, keys in rows[:MAX_PAGE]]

    def check(self, checks: "Sequence[Check]") -> None:
        for check in checks:
            if isinstance(check, CollectionIs):
                revision = self.head(check.collection).revision
            else:
                item = self.item(check.collection, check.id)
                revision = item.revision if item else 0
            if revision != check.revision:
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
        revision = self.revision + 1
        numbers, lasts = assign_numbers(writes, lambda collection: self.head(collection).last)
        values = resolve(writes, numbers)
        place = revision * PLACES
        rows = [(place + n, *key, lasts.get(key[0], 0), value) for n, (key, value) in enumerate(values.items())]
        self._wrote = True
        self.recent.learn(rows)
        self.revision = revision
        self._held += rows
        self._held_bytes += sum([len(row[4]) for row in rows if row[4]])
        if not self.holds or self._held_bytes > _MOST_HELD:
            self._put_down()
        if revision % TRIM_EVERY == 0:
            self._trim(revision - KEPT_REVISIONS)
        return Committed(revision, tuple(numbers))

    def put_down(self) -> None:
        """Hand what is held over to SQLite, so that it can be committed."""
        try:
            self._put_down()
        except apsw.Error as error:
            raise self._failed(error) from None

    def _put_down(self) -> None:
        held, size = self._held, self._held_bytes
        if not held:
            return
        self._held, self._held_bytes = [], 0
        self._known.clear()
        first, last = held[0][0] // PLACES, held[-1][0] // PLACES
        is_time = (first - 1) // SPREAD_EVERY != last // SPREAD_EVERY
        if is_time or len(held) > _LARGE_ROWS or size > _LARGE_BYTES:
            self.recent.spread(last, self._execute_many)
        else:
            self._execute_many(_ADD, held)

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

        self.is_broken = self.is_broken or not isinstance(error, apsw.FullError | apsw.BusyError)
        return meaning(error, self.path, self._busy_ms / 1000)

    def _strange_format(self, found: int) -> errors.AccordError:
        if found > FORMAT:
            return errors.StoreTooNew(path=self.path, found=found, known=FORMAT)
        return errors.NotAStore(path=self.path, reason=f"it has the format {found}, which no released accord wrote")


def _keys(text: str) -> tuple[tuple[str, str], ...]:
    return tuple([(collection, id) for collection, _, id in [line.partition(" ") for line in text.split("\n")]])


class Snapshot:
    """Reads inside one transaction: SQLite sees to it that they are of one revision."""

    __slots__ = ("_store", "epoch", "is_over", "link", "revision")

    def __init__(self, link: Link, store: "Sqlite | None") -> None:
        self.link = link
        self.epoch = link.epoch
        self.revision = link.revision
        self.is_over = False  # the connection went on to another transaction, or to another user
        self._store = store  # whom the connection goes back to; None: it is a batch's

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_over = True
        if self._store is not None:
            store, self._store = self._store, None
            store.give_back(self.link)

    def get(self, collection: str, id: str) -> Item | None:
        return self._usable().item(collection, id)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        return self._usable().page(collection, after, limit, reverse)

    def head(self, collection: str) -> Head:
        return self._usable().head(collection)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        return self._usable().collections(prefix, after, limit)

    def _usable(self) -> Link:
        if self.is_over:
            raise Moved
        self.link.opened.check_process()
        return self.link
