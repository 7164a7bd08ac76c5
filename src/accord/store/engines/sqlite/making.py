"""How a database comes to be a store, empty or filled."""

import os

import apsw

from accord import errors, place
from accord.store.contract import check_contents, new_epoch
from accord.store.engines.sqlite.failure import meaning
from accord.store.engines.sqlite.link import FORMAT
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.store.contract import Content
    from accord.store.engines.sqlite.link import Link

PAGE_BYTES = 2048  # half of SQLite's own: each page that a commit touches is written whole

_SCHEMA = """
create table meta(one integer primary key check (one = 1), format integer, epoch text, floor integer) strict;
create table heads(collection text primary key, revision integer, last integer) strict, without rowid;
create table items(collection text, id text, revision integer, value blob, unique (collection, id)) strict;
create table changes(revision integer primary key, keys text) strict;
create table recent(place integer primary key, collection text, id text, last integer, value blob) strict;
"""


def build(path: str) -> None:
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
        raise meaning(error, path, 0.0) from None
    finally:
        os.close(fd)


def make_beside(path: str) -> None:
    """In a folder of a group, the files that SQLite would make for its members only a moment after it has made them."""
    if place.is_shared(os.path.dirname(path)):
        for ending in ("-wal", "-shm"):
            os.close(folder.open_private(path + ending))


def fill(link: "Link", contents: "Iterable[Content]") -> None:
    """Everything that an empty store is to hold, in the transaction that was begun."""
    if link.revision:
        raise errors.StoreNotEmpty(path=link.path)
    for collection, last, items in check_contents(contents):
        link.row("insert into heads values (?, 1, ?)", (collection, last))
        rows = ((collection, item.id, item.value) for item in items)
        link.insert("insert into items (collection, id, revision, value) values (?, ?, 1, ?)", rows)
    link.row("insert into changes values (1, '')")
    link.row("update meta set floor = 1")
    link.revision = link.floor = 1
