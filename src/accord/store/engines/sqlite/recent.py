"""The commits that are not spread yet.

A commit touches items all over the database, and each page it touches is written whole. So a commit only appends its
writes to the table `recent`, where they lie together; each few commits they are spread to the tables in which they are
found by their keys, all at once. What is recent is few: every connection knows it by heart.
"""

from accord.store.contract import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Row = tuple[int, str, str, int, bytes | None]  # a place; what lies there; the collection's last number; the value

PLACES = 64  # for the writes of one commit, of which there are fewer


class Recent:
    __slots__ = ("heads", "items", "keys", "place", "spread_to")

    def __init__(self) -> None:
        self.forget(-1)

    def forget(self, spread_to: int) -> None:
        self.spread_to = spread_to  # the revision up to which all is spread; -1: not known
        self.place = 0  # of the last write that is known
        self.items: dict[str, dict[str, Item | None]] = {}  # None: it was deleted
        self.heads: dict[str, tuple[int, int]] = {}  # revision and last number; 0: the same as before
        self.keys: dict[int, list[str]] = {}  # collections and ids of each revision

    def learn(self, rows: "Iterable[Row]") -> None:
        """Take in rows of the table, in order."""
        for place, collection, id, last, value in rows:
            revision = place // PLACES
            item = None if value is None else Item(id, value, revision)
            self.items.setdefault(collection, {})[id] = item
            before = self.heads.get(collection)
            self.heads[collection] = revision, last if before is None else max(last, before[1])
            self.keys.setdefault(revision, []).append(f"{collection} {id}")
            self.place = place
