"""Comparing a collection with its copy, item by item, and making the copy the same."""

from accord import errors
from accord.services.migrate import reading
from accord.services.migrate.copy import is_beyond

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.services.migrate.copy import Copy
    from accord.services.migrate.reading import Sum
    from accord.store.contract import Item
    from accord.store.protocols import Snapshot

_WALKS = 3  # over one collection: one that mends, one that finds nothing left


class Known:
    """The collections that were compared, each as of a revision."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int, Sum]] = {}

    def follow(self, view: "Snapshot", copy: "Copy", collection: str, step: "Callable[[], None]") -> None:
        """Compare it, unless it has not changed since it was."""
        head = view.head(collection)
        if collection in self._found and self._found[collection][0] == head.revision:
            return
        for _ in range(_WALKS):
            before = copy.written
            sum = _walk(view, copy, collection, step)
            copy.flush()
            if copy.written == before:
                self._found[collection] = head.revision, head.last, sum
                return
        raise errors.CopyDiffers(path=copy.name, what=collection)

    def has_all(self, collections: "Iterable[str]") -> bool:
        return all(collection in self._found for collection in collections)

    def amount(self) -> reading.Amount:
        found = reading.Amount()
        for collection, (_, last, sum) in sorted(self._found.items()):
            found.add(collection, last, sum)
        return found


def _walk(view: "Snapshot", copy: "Copy", collection: str, step: "Callable[[], None]") -> "Sum":
    """Write what is not the same, in the order of the ids: numbers must be given in theirs."""
    last = view.head(collection).last
    there = copy.head(collection)
    given = there.last
    if given > last:
        raise errors.CopyDiffers(path=copy.name, what=collection)
    if not there.revision and not last:
        copy.touch(collection)
    sum = reading.Sum()
    theirs = reading.items_of(copy.store, collection)
    other = next(theirs, None)
    for item in reading.items(view, collection):
        sum.add(item)
        step()
        while other is not None and other.id < item.id:
            copy.delete(collection, other.id)
            other = next(theirs, None)
        same = other if other is not None and other.id == item.id else None
        if same is None and is_beyond(item.id, given):
            given = _append(copy, collection, given, item)
        elif same is None or same.value != item.value:
            copy.put(collection, item.id, item.value)
        if same is not None:
            other = next(theirs, None)
    while other is not None:
        copy.delete(collection, other.id)
        other = next(theirs, None)
    _skip(copy, collection, given, last)
    return sum


def _append(copy: "Copy", collection: str, given: int, item: "Item") -> int:
    number = int(item.id)
    _skip(copy, collection, given, number - 1)
    copy.append(collection, item.value)
    return number


def _skip(copy: "Copy", collection: str, given: int, upto: int) -> None:
    for _ in range(given, upto):
        copy.skip(collection)
