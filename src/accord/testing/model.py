"""The contract in a few dictionaries, with every revision kept: what an engine is compared with.

It shares no code with the engines beyond the contract's values, so that both can not be wrong in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from accord import errors
from accord.store.contract import Append, Change, CollectionIs, Committed, Conflict, Delete, Head, Item, Number

if TYPE_CHECKING:
    from accord.store.contract import Check, Content, Write

_NEVER = Head(0, 0)


class View:
    """The store as of one revision: a snapshot that never moves."""

    epoch = "model"

    def __init__(self, revision: int, heads: dict[str, Head], items: dict[str, dict[str, Item]]) -> None:
        self.revision = revision
        self.heads = heads
        self.items = items

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def get(self, collection: str, id: str) -> Item | None:
        return self.items.get(collection, {}).get(id)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> Sequence[Item]:
        items = sorted(self.items.get(collection, {}).values(), key=lambda item: item.id, reverse=reverse)
        beyond = [item for item in items if not after or (item.id < after if reverse else item.id > after)]
        return beyond[:limit]

    def head(self, collection: str) -> Head:
        return self.heads.get(collection, _NEVER)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        return sorted(name for name in self.heads if name.startswith(prefix) and name > after)[:limit]


class Model:
    def __init__(self) -> None:
        self.views = [View(0, {}, {})]  # by revision
        self.changes: list[Change | None] = [None]  # by revision; None: there was none, or it is not told
        self.floor = 0  # a watch cannot start before this revision

    @property
    def revision(self) -> int:
        return len(self.views) - 1

    def snapshot(self) -> View:
        return self.views[-1]

    def commit(self, checks: "Sequence[Check]", writes: "Sequence[Write]") -> Committed:
        now = self.views[-1]
        if not all(_holds(now, check) for check in checks):
            raise Conflict
        if not writes:
            return Committed(self.revision, ())
        after = View(now.revision + 1, dict(now.heads), {name: dict(items) for name, items in now.items.items()})
        numbers: list[int] = []
        keys = [(write.collection, _apply(after, write, numbers)) for write in writes]
        self.views.append(after)
        self.changes.append(Change(after.revision, tuple(sorted(set(keys)))))
        return Committed(after.revision, tuple(numbers))

    def load(self, contents: "Iterable[Content]") -> None:
        loaded = View(1, {}, {})
        for name, last, items in contents:
            loaded.heads[name] = Head(1, last)
            loaded.items[name] = {item.id: Item(item.id, item.value, 1) for item in items}
        self.views.append(loaded)
        self.changes.append(None)
        self.floor = 1

    def history(self, prefixes: Sequence[str], since: int) -> Iterator[Change]:
        """What a watch gives, each change with its keys sorted."""
        for change in self.changes[since + 1 :]:
            keys = tuple(key for key in change.keys if key[0].startswith(tuple(prefixes))) if change else ()
            if change and keys:
                yield Change(change.revision, keys)

    def go_back_to(self, revision: int) -> None:
        """As if nothing had been committed since."""
        del self.views[revision + 1 :], self.changes[revision + 1 :]


def _holds(view: View, check: "Check") -> bool:
    if isinstance(check, CollectionIs):
        return view.head(check.collection).revision == check.revision
    item = view.get(check.collection, check.id)
    return (item.revision if item else 0) == check.revision


def _apply(view: View, write: "Write", numbers: list[int]) -> str:
    """Change the view, and the numbers given so far; the id that was written."""
    last = view.head(write.collection).last
    if isinstance(write, Append):
        last += 1
        numbers.append(last)
        id = f"{last:016d}"
    elif isinstance(write.id, Number):
        number = numbers[write.id.append]
        id = f"{number:016d}"
        last = last if isinstance(write, Delete) else max(last, number)
    else:
        id = write.id
        if len(id) == 16 and id.isdigit() and int(id) > last:
            raise errors.InvalidKey(key=id, kind="id", reason="no append gave the number")
    view.heads[write.collection] = Head(view.revision, last)
    items = view.items.setdefault(write.collection, {})
    if isinstance(write, Delete):
        items.pop(id, None)
    else:
        pieces = [write.value] if isinstance(write.value, bytes) else write.value
        value = b"".join(piece if isinstance(piece, bytes) else b"%d" % numbers[piece.append] for piece in pieces)
        items[id] = Item(id, value, view.revision)
    return id
