"""The copy: what it says of itself, and the commits that make it the same as its source."""

from accord import errors, jsontext
from accord.store.contract import (
    LOCK_WAIT_S,
    MAX_BYTES,
    MAX_WRITES,
    UNFINISHED,
    Append,
    Conflict,
    Delete,
    Item,
    ItemIs,
    Number,
    Put,
    is_number,
)
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.contract import Content, Head, Write
    from accord.store.protocols import Store

FROM = (UNFINISHED[0], "from")


class Overtaken(Exception):
    """Something was committed to the copy that is not known here: by others, or by one who died before they knew."""


class Origin:
    """What a copy is of."""

    def __init__(self, name: str, epoch: str, revision: int) -> None:
        self.name = name
        self.epoch = epoch
        self.revision = revision  # when the migration began


class Copy:
    def __init__(self, store: "Store", name: str, source: "Origin") -> None:
        """Refuses a place that holds anything but a copy of this source, as a migration left it."""
        self.store = store
        self.name = name
        self._source = source
        self.written = 0
        self._claimed = False
        self._writes: list[Write] = []
        self._bytes = 0
        self._appends = 0
        mark, unfinished, place = transact(store, lambda tx: (tx.get(*FROM), tx.get(*UNFINISHED), tx.revision))
        self.epoch, _, revision = place.rpartition(".")
        self.revision = int(revision)  # 0: nothing is there yet
        self.is_whole = mark is not None and unfinished is None
        self._mark_revision = mark.revision if mark is not None else 0
        if self.revision:
            self._check(mark)

    @property
    def place(self) -> str:
        return f"{self.epoch}.{self.revision}"

    def mark(self) -> "Content":
        """What a load brings along, so that nothing is ever there without it."""
        return (FROM[0], 0, [Item(FROM[1], self._from(0), 1), Item(UNFINISHED[1], self._source.name.encode(), 1)])

    def put(self, collection: str, id: str, value: bytes) -> None:
        self._add(len(value), Put(collection, id, value))

    def delete(self, collection: str, id: str) -> None:
        self._add(0, Delete(collection, id))

    def touch(self, collection: str) -> None:
        """Have a collection be there in which nothing is."""
        self.delete(collection, "nothing")

    def head(self, collection: str) -> "Head":
        with self.store.snapshot() as view:
            return view.head(collection)

    def append(self, collection: str, value: bytes) -> None:
        self._add(len(value), Append(collection, value))

    def skip(self, collection: str) -> None:
        """Have the collection's next number be one that is given to nothing."""
        self._make_room(2, 0)
        number = Number(self._appends)
        self._add(0, Append(collection, b""))
        self._add(0, Delete(collection, number))

    def flush(self) -> None:
        if self._writes:
            self._claim()
            writes, self._writes = self._writes, []
            self._bytes = self._appends = 0
            self._commit(writes)
            self.written += len(writes)

    def finish(self, revision: int) -> None:
        """It is whole now, as of this revision of its source."""
        self.flush()
        if not self.is_whole:
            self._mark_revision = self._commit([Put(*FROM, self._from(revision)), Delete(*UNFINISHED)])
            self.is_whole = True
        with self.store.snapshot() as view:
            if view.revision != self.revision:
                raise Overtaken
        self.store.sync()

    def _add(self, size: int, write: "Write") -> None:
        self._make_room(1, size)
        self._writes.append(write)
        self._bytes += size
        self._appends += isinstance(write, Append)

    def _make_room(self, writes: int, size: int) -> None:
        if len(self._writes) + writes > MAX_WRITES or self._bytes + size > MAX_BYTES:
            self.flush()

    def _claim(self) -> None:
        """Before the first change: whoever else is at it fails with their next commit, and no home opens it."""
        if not self._claimed:
            writes: list[Write] = [Put(*FROM, self._from(0)), Put(*UNFINISHED, self._source.name.encode())]
            self._mark_revision = self._commit(writes)
            self._claimed = True
            self.is_whole = False

    def _commit(self, writes: "list[Write]") -> int:
        try:
            done = self.store.commit([ItemIs(*FROM, self._mark_revision)], writes)
        except (Conflict, errors.OutcomeUnknown):
            raise Overtaken from None
        if done.revision != self.revision + 1:
            self._check_first(done.revision)
        self.revision = done.revision
        return done.revision

    def _check_first(self, revision: int) -> None:
        """Where stores share a server, others' commits may have taken the revisions between; in this one are none."""
        try:
            with self.store.watch([""], self.revision, self.epoch) as watch:
                change = watch.next(LOCK_WAIT_S)
        except errors.HistoryGone:
            raise Overtaken from None
        if change is None or change.revision != revision:
            raise Overtaken

    def _check(self, mark: "Item | None") -> None:
        record: Any = jsontext.loads_own(mark.value) if mark is not None else {}
        if record.get("epoch") != self._source.epoch:
            raise errors.StoreNotEmpty(path=self.name)
        if self.is_whole and self._mark_revision != self.revision:
            raise errors.MigratedBefore(
                path=self.name, source=self._source.name, revision=record["revision"], now=self._source.revision
            )

    def _from(self, revision: int) -> bytes:
        return jsontext.dumps({"epoch": self._source.epoch, "revision": revision, "store": self._source.name}).encode()


def is_beyond(id: str, last: int) -> bool:
    """Whether this is a number that was not given yet."""
    return is_number(id) and int(id) > last
