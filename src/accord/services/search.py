"""Finding messages by their words: an index in the cache, derived from the store and caught up by whoever searches.

Sending writes nothing for it, and it is the same on every engine. Removing the file costs the next search the time to
read all messages again.
"""

import os

import apsw

from accord import errors
from accord.services import mail
from accord.store.contract import MAX_PAGE
from accord.store.local import folder
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from accord.store.contract import Change, Item
    from accord.store.protocols import Store
    from accord.store.transaction import Transaction

    Progress = Callable[[int, int], None]  # how many are done, of how many

_FORMAT = 1
_DAMAGED = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
_BUSY_MS = 10_000
_SCHEMA = f"""
create table if not exists place(one integer primary key check (one = 1), epoch text, revision integer);
create table if not exists known(number integer primary key, id text unique);
create virtual table if not exists words using fts5(sender, body, content='', tokenize='unicode61');
pragma user_version = {_FORMAT};
"""


def search(store: "Store", cache: str, query: str, limit: int, progress: "Progress") -> "list[dict[str, Any]]":
    """The messages with all these words, the best first; the last word may be the start of one.

    Of an encrypted store no index is kept that others could read: it is made in memory, each time.
    """
    terms = _terms(query)
    if not terms:
        return []
    if getattr(store, "key_name", ""):
        ids = _find_in_memory(store, terms, limit, progress)
    else:
        ids = _find_kept(store, cache, terms, limit, progress)
    return transact(store, lambda tx: [mail.shown(tx, id) for id in ids])


def _find_kept(store: "Store", cache: str, terms: str, limit: int, progress: "Progress") -> list[str]:
    """By the index in the cache. One that is damaged is made anew, and where there is no room one in memory will do."""
    try:
        try:
            return _find(store, cache, terms, limit, progress)
        except _DAMAGED:
            _remove(f"{cache}/search.db")
            return _find(store, cache, terms, limit, progress)
    except (apsw.Error, errors.StorageFull):
        return _find_in_memory(store, terms, limit, progress)


def _find_in_memory(store: "Store", terms: str, limit: int, progress: "Progress") -> list[str]:
    try:
        return _find(store, "", terms, limit, progress)
    except apsw.Error as error:
        raise errors.StorageFailing(path="memory", reason=str(error)) from None


def _find(store: "Store", cache: str, terms: str, limit: int, progress: "Progress") -> list[str]:
    index = _Index(cache)
    try:
        index.catch_up(store, progress)
        return index.find(terms, limit)
    finally:
        index.close()


def _remove(path: str) -> None:
    for leftover in (path, f"{path}-wal", f"{path}-shm"):
        folder.unlink_if_there(leftover)


def _terms(query: str) -> str:
    """The words as FTS5 has them: each in quotes, so that none is an operator of its language."""
    words = [f'"{word}"' for word in query.replace('"', " ").replace("\0", " ").split()]
    return " ".join(words) + "*" if words else ""


def _place(store: "Store") -> tuple[str, int]:
    with store.snapshot() as snapshot:
        return snapshot.epoch, snapshot.revision


def _messages(store: "Store", after: str) -> "Sequence[Item]":
    return transact(store, lambda tx: tx.list(mail.MESSAGES, after, MAX_PAGE, check=False))


def _items(store: "Store", change: "Change") -> "list[Item]":
    """What a commit wrote; messages never change, so that it does not matter when they are read."""
    found = transact(store, lambda tx: [tx.get(*key, check=False) for key in change.keys])
    return [item for item in found if item is not None]


def _count(tx: "Transaction") -> int:
    """How many messages there are: each is in the list of one who sent it."""
    count, after = 0, ""
    while page := tx.collections("sent", after, MAX_PAGE):
        count += sum(tx.head(name, check=False).last for name in page)
        after = page[-1]
    return count


class _Index:
    def __init__(self, cache: str) -> None:
        self._path = f"{cache}/search.db" if cache else ":memory:"
        if cache:
            folder.make_folder(cache)
            os.close(folder.open_private(self._path))
        self._open()

    def close(self) -> None:
        self._db.close()

    def catch_up(self, store: "Store", progress: "Progress") -> None:
        """Take in what was sent since somebody last did."""
        with self._db:
            self._db.execute("insert or ignore into place values (1, '', 0)")  # the write lock, from here on
            epoch, revision = self._db.execute("select epoch, revision from place").get
            if not epoch or not self._follow(store, epoch, revision):
                self._read_all(store, progress)

    def find(self, terms: str, limit: int) -> list[str]:
        sql = "select id from words join known on number = words.rowid where words match ? order by rank limit ?"
        return [str(row[0]) for row in self._db.execute(sql, (terms, limit))]

    def _open(self) -> None:
        self._db = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE)
        self._db.set_busy_timeout(_BUSY_MS)
        if self._db.execute("pragma user_version").get != _FORMAT:
            self._db.execute("pragma journal_mode = wal")
            self._db.execute(_SCHEMA)
        self._db.execute("pragma synchronous = normal")

    def _follow(self, store: "Store", epoch: str, revision: int) -> bool:
        """Take in the changes since a revision; False when they are no longer kept."""
        try:
            with store.watch([mail.MESSAGES], revision, epoch) as watch:
                now = _place(store)[1]
                while watch.revision < now and (change := watch.next(0)) is not None:
                    self._add(_items(store, change))
                self._stand_at(epoch, watch.revision)
        except errors.HistoryGone:
            return False
        return True

    def _read_all(self, store: "Store", progress: "Progress") -> None:
        self._db.execute("insert into words(words) values ('delete-all')")
        self._db.execute("delete from known")
        epoch, revision = _place(store)  # what comes meanwhile is taken in again, and known by then
        after, done, total = "", 0, transact(store, _count)
        while page := _messages(store, after):
            self._add(page)
            after, done = page[-1].id, done + len(page)
            if total > MAX_PAGE:  # else it is over before anybody could look
                progress(done, total)
        self._stand_at(epoch, revision)

    def _add(self, items: "Iterable[Item]") -> None:
        for item in items:
            record = mail.decode(item.value)
            self._db.execute("insert or ignore into known(id) values (?)", (item.id,))
            if self._db.changes():
                row = (self._db.last_insert_rowid(), record["from"], record["message"])
                self._db.execute("insert into words(rowid, sender, body) values (?, ?, ?)", row)

    def _stand_at(self, epoch: str, revision: int) -> None:
        self._db.execute("update place set epoch = ?, revision = ?", (epoch, revision))
