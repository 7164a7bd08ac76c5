"""Reading all of a store, in pages that need little memory whatever lies in them."""

from _blake2 import blake2b

from accord import errors
from accord.store.contract import MAX_PAGE, UNFINISHED, Moved, is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from accord.store.contract import Item
    from accord.store.protocols import Snapshot, Store

    T = TypeVar("T")

_PAGE_BYTES = 4 << 20
_FIRST_PAGE = 16  # items; a value may have 1.25 MiB
_TRIES = 1000  # of one read, while others change what is read


class Sum:
    """What a collection comes to."""

    def __init__(self) -> None:
        self.items = 0
        self.bytes = 0
        self._hash = blake2b(digest_size=32)

    def add(self, item: "Item") -> None:
        self.items += 1
        self.bytes += len(item.value)
        self._hash.update(b"%s %d " % (item.id.encode(), len(item.value)))
        self._hash.update(item.value)

    def line(self, collection: str, last: int) -> str:
        return f"{collection} {last} {self.items} {self._hash.hexdigest()}\n"


class Amount:
    """What a store comes to, but for what a migration noted in it; the same on every engine."""

    def __init__(self) -> None:
        self.collections = 0
        self.items = 0
        self.bytes = 0
        self._hash = blake2b(digest_size=32)

    def add(self, collection: str, last: int, sum: Sum) -> None:
        """The next collection, in the order of their names."""
        self.collections += 1
        self.items += sum.items
        self.bytes += sum.bytes
        self._hash.update(sum.line(collection, last).encode())

    @property
    def checksum(self) -> str:
        return self._hash.hexdigest()


class Reader:
    """A source while it may be changed: what an engine cannot show any more is read as it is now."""

    def __init__(self, store: "Store", name: str) -> None:
        self._store = store
        self._name = name

    def __enter__(self) -> "Reader":
        self._view = self._store.snapshot()
        return self

    def __exit__(self, *exc: object) -> None:
        self._view.__exit__(*exc)

    def collections(self) -> "list[str]":
        return self._read(lambda view: list(collections(view)))

    def last(self, collection: str) -> int:
        return self._read(lambda view: view.head(collection).last)

    def items(self, collection: str, last: int) -> "Iterator[Item]":
        """Those of the collection when this was its last number; what came later is found when all is compared."""

        def page(after: str, limit: int) -> "Sequence[Item]":
            return self._read(lambda view: view.list(collection, after, limit))

        for item in _paged(page):
            if not is_number(item.id) or int(item.id) <= last:
                yield item

    def _read(self, read: "Callable[[Snapshot], T]") -> "T":
        for _ in range(_TRIES):
            try:
                return read(self._view)
            except Moved:
                self._view.__exit__(None, None, None)
                self._view = self._store.snapshot()
        raise errors.SourceBusy(path=self._name)


def amount(reader: Reader) -> Amount:
    found = Amount()
    for collection in reader.collections():
        last, sum = reader.last(collection), Sum()
        for item in reader.items(collection, last):
            sum.add(item)
        found.add(collection, last, sum)
    return found


def collections(view: "Snapshot") -> "Iterator[str]":
    """All but that of migrations."""
    after = ""
    while page := view.collections("", after, MAX_PAGE):
        yield from [name for name in page if name != UNFINISHED[0]]
        after = page[-1]
        if len(page) < MAX_PAGE:
            break


def items(view: "Snapshot", collection: str) -> "Iterator[Item]":
    return _paged(lambda after, limit: view.list(collection, after, limit))


def collections_of(store: "Store") -> "list[str]":
    with store.snapshot() as view:
        return list(collections(view))


def items_of(store: "Store", collection: str) -> "Iterator[Item]":
    """The same, with each page as of when it is read, while the reader itself writes what lies before it."""

    def page(after: str, limit: int) -> "Sequence[Item]":
        with store.snapshot() as view:
            return view.list(collection, after, limit)

    return _paged(page)


def revision_of(store: "Store") -> int:
    with store.snapshot() as view:
        return view.revision


def _paged(page: "Callable[[str, int], Sequence[Item]]") -> "Iterator[Item]":
    after, limit = "", _FIRST_PAGE
    while found := page(after, limit):
        yield from found
        if len(found) < limit:
            return
        after = found[-1].id
        size = sum(len(item.value) for item in found) // len(found) + 100
        limit = max(1, min(MAX_PAGE, _PAGE_BYTES // size))
