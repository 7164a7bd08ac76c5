"""Items that people gave names to, all of them."""

from accord.store import names
from accord.store.contract import MAX_PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.store.contract import Item
    from accord.store.transaction import Transaction


def each(tx: "Transaction", base: str, together: int = MAX_PAGE) -> "Iterator[tuple[str, Item]]":
    """Every item that `names.to_key(base, ...)` has a place for, with its name, in no order.

    What was put there by hand under an id that no name has is left alone.
    """
    for collection in {base, *collections(tx, base)}:
        after = ""
        while page := tx.list(collection, after, together, check=False):
            for item in page:
                name = _name(base, collection, item.id)
                if name:
                    yield name, item
            after = page[-1].id


def _name(base: str, collection: str, id: str) -> str:
    """The name of what lies there; "" where it has none."""
    try:
        return names.from_key(base, collection, id)
    except (LookupError, ValueError, OverflowError):
        return ""


def each_collection(tx: "Transaction", base: str) -> "Iterator[str]":
    """The name of every collection that `names.to_collection(base, ...)` gave, emptied ones too, in no order."""
    for collection in collections(tx, base):
        if collection != base:
            yield names.from_collection(base, collection)


def collections(tx: "Transaction", base: str) -> "Iterator[str]":
    """This one, and all that lie below it."""
    yield base
    after = ""
    while page := tx.collections(f"{base}/", after, MAX_PAGE):
        yield from page
        after = page[-1]


def near(name: str, there: "Iterator[str]") -> str:
    """Names much like this one, as the end of a sentence; for the message of an error."""
    from difflib import get_close_matches

    found = get_close_matches(name, [other for other in there if other != name])
    return f" (did you mean {' or '.join(found)}?)" if found else ""
