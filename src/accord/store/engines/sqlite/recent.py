"""The commits that are not spread yet.

A commit touches items all over the database, and each page it touches is written whole. So a commit only appends its
writes to the table `recent`, where they lie together; each few commits they are spread to the tables in which they are
found by their keys, all at once. What is recent is few: every connection knows it by heart.

What is known of the table stays true because, in one epoch, rows are only added to it, at places never used before,
until all of them are spread. A database that went back shows another epoch, a lower last place or another spread.
"""

from accord.store.contract import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Row = tuple[int, str, str, int, bytes | None]  # a place; what lies there; the collection's last number; the value

PLACES = 64  # for the writes of one commit, of which there are MAX_WRITES at most

_LOG = "insert into changes values (?, ?)"
_TOUCH = (
    "insert into heads values (?, ?, ?)"
    " on conflict do update set revision = excluded.revision, last = max(last, excluded.last)"
)
_PUT = (
    "insert into items (collection, id, revision, value) values (?, ?, ?, ?)"
    " on conflict do update set revision = excluded.revision, value = excluded.value"
)
_DELETE = "delete from items where collection = ? and id = ?"
_EMPTY = "delete from recent"


class Recent:
    __slots__ = ("heads", "items", "keys", "place", "spread_to")

    def __init__(self) -> None:
        self.start_after(-1)

    def start_after(self, spread_to: int) -> None:
        """Know nothing but the revision up to which all is spread; -1: not even that."""
        self.spread_to = spread_to
        self.place = 0  # of the last write that is known
        self.items: dict[str, dict[str, Item | None]] = {}  # None: it was deleted
        # Revision and last number; the number is 0 where no recent write touched it, and the one in `heads` counts.
        self.heads: dict[str, tuple[int, int]] = {}
        self.keys: dict[int, list[str]] = {}  # collections and ids of each revision

    def learn(self, rows: "Iterable[Row]") -> None:
        """Take in rows of the table, in order."""
        items, heads, keys = self.items, self.heads, self.keys
        for place, collection, id, last, value in rows:
            revision = place // PLACES
            items.setdefault(collection, {})[id] = None if value is None else Item(id, value, revision)
            before = heads.get(collection)
            heads[collection] = revision, last if before is None or last > before[1] else before[1]
            keys.setdefault(revision, []).append(f"{collection} {id}")
            self.place = place

    def spread(self, revision: int, execute_many: "Callable[[str, Iterable[tuple[object, ...]]], object]") -> None:
        """Move all, up to `revision`, to where it is found by its key."""
        items = [(collection, id, item) for collection, found in self.items.items() for id, item in found.items()]
        execute_many(_LOG, [(revision, "\n".join(keys)) for revision, keys in self.keys.items()])
        execute_many(_TOUCH, [(collection, *head) for collection, head in self.heads.items()])
        execute_many(_PUT, [(collection, id, item.revision, item.value) for collection, id, item in items if item])
        execute_many(_DELETE, [(collection, id) for collection, id, item in items if not item])
        execute_many(_EMPTY, [()])
        self.start_after(revision)
