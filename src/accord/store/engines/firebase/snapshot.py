"""A view as of one commit: what lies in the tree, none of it newer, and over it what that commit wrote."""

from accord.store import pages
from accord.store.contract import MAX_PAGE, Head, Item, Moved, check_page, is_collection, is_part
from accord.store.engines.firebase import keys
from accord.store.engines.firebase.rest import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from accord.store.contract import Instant, Opened
    from accord.store.engines.firebase import Firebase
    from accord.store.engines.firebase.record import Head as Last
    from accord.store.engines.firebase.rest import Reply

    Key = tuple[str, str]


class Snapshot:
    """Its view is the commit that its first read found in `head`.

    All commits before that one are in their places, and its own writes are in `head` itself. So a node of a later
    revision says that the view is gone, and so does a collection of a later one where something is not there: that is
    looked at after it was seen missing.
    """

    def __init__(self, store: "Firebase", opened: "Opened") -> None:
        self._store = store
        self._opened = opened
        self._last: Last | None = None
        self._wanted: dict[Key, None] = {}
        self._items: dict[Key, Item | None] = {}
        self._heads: dict[str, Head] = {}
        self._now: Instant | None = None

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    @property
    def epoch(self) -> str:
        return self._view().epoch

    @property
    def revision(self) -> int:
        return self._view().revision

    @property
    def last(self) -> "Last | None":
        """The commit that it is as of, once something was read."""
        return self._last

    def known_last(self, collection: str) -> int | None:
        """The last number of the collection, if it was read."""
        head = self._heads.get(collection)
        return None if head is None else head.last

    def expect(self, wanted: "Sequence[Key]") -> None:
        for collection, id in wanted:
            if is_collection(collection) and (not id or is_part(id)):
                self._wanted[collection, id] = None

    def now(self) -> "Instant":
        self._view()
        if self._now is None:
            self._now = self._store.now()
        return self._now

    def get(self, collection: str, id: str) -> Item | None:
        self._opened.check_process()
        if not (is_collection(collection) and is_part(id)):
            return None
        key = collection, id
        if self._last is not None and key in self._last.values:
            return self._own(self._last, key)
        if key not in self._items:
            self._fetch([key])
        return self._items[key]

    def head(self, collection: str) -> Head:
        self._opened.check_process()
        if not is_collection(collection):
            return Head(0, 0)
        if collection not in self._heads:
            self._fetch([(collection, "")])
        return self._heads[collection]

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        last = self._view()
        if not is_collection(collection):
            return []
        changes = {
            id: None if value is None else Item(id, value, last.revision)
            for (where, id), value in last.values.items()
            if where == collection
        }
        page = pages.merged(lambda *page: self._stored_page(last, collection, *page), changes, after, limit, reverse)
        self._unmoved([collection])
        return page

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        last = self._view()
        found = {name for name in last.collections if name.startswith(prefix) and name > after}
        found.update(self._stored_names(last, prefix, after, limit))
        return sorted(found)[:limit]

    # The tree.

    def _view(self) -> "Last":
        self._opened.check_process()
        return self._fetch([]) if self._last is None else self._last

    def _fetch(self, wanted: "Iterable[Key]") -> "Last":
        """All that is wanted or was expected, in one round trip if `head` is what it was."""
        missing = [key for key in {**self._wanted, **dict.fromkeys(wanted)} if not self._is_known(key)]
        if self._last is None:
            guess = self._store.known_head
            asks = [_ask(guess, key) for key in missing] if guess is not None else []
            self._last, replies = self._store.look(asks)
            if self._last is guess:
                self._take(missing, replies)
                return self._last
        last = self._last
        replies = self._store.rest.ask([_ask(last, key) for key in missing]) if missing else []
        self._take(missing, replies)
        return last

    def _own(self, last: "Last", key: "Key") -> Item | None:
        """What the commit itself wrote there."""
        value = last.values[key]
        return None if value is None else Item(key[1], value, last.revision)

    def _is_known(self, key: "Key") -> bool:
        return key in self._items if key[1] else key[0] in self._heads

    def _take(self, asked: "Sequence[Key]", replies: "Sequence[Reply]") -> None:
        last = self._view()
        items: dict[Key, Item | None] = {}
        absent = set()
        for key, reply in zip(asked, replies, strict=True):
            collection, id = key
            if not id:
                self._take_head(collection, reply.value)
            elif key in last.values:
                items[key] = self._own(last, key)
            elif (item := item_of(id, reply.value)) is not None:
                items[key] = self._unless_newer(item)
            else:
                items[key] = None
                absent.add(collection)
        self._unmoved(absent)
        self._items.update(items)
        self._wanted.clear()

    def _take_head(self, collection: str, node: "Any") -> None:
        last = self._view()
        revision, number = (node["r"], node["n"]) if node else (0, 0)
        if revision > last.revision:
            raise Moved
        if collection in last.collections:
            revision, number = last.revision, last.lasts.get(collection, number)
        self._heads[collection] = Head(revision, number)

    def _unmoved(self, collections: "Iterable[str]") -> None:
        """What is missing in them now was missing then."""
        names = list(collections)
        if names:
            replies = self._store.rest.ask([_ask(self._view(), (name, "")) for name in names])
            for name, reply in zip(names, replies, strict=True):
                self._take_head(name, reply.value)

    def _unless_newer(self, item: Item) -> Item:
        if item.revision > self._view().revision:
            raise Moved
        return item

    def _stored_page(self, last: "Last", collection: str, after: str, limit: int, reverse: bool) -> "Sequence[Item]":
        """Of what is in the tree; full as long as there is more."""
        path = f"data/{last.data}/items/{keys.collection_path(collection)}"
        found: list[Item] = []
        while True:
            size = min(limit + reverse, MAX_PAGE)
            bounds = f'endAt="k{after}"&' if reverse and after else f'startAt="k{after}-"&' if after else ""
            query = f'orderBy="$key"&{bounds}limitTo{"Last" if reverse else "First"}={size}'
            nodes = self._store.rest.get(path, query=query.replace('"', "%22").replace("$", "%24")).value or {}
            names = sorted((key[1:] for key in nodes), reverse=reverse)
            for id in names:
                if not (reverse and after and id >= after):
                    item = item_of(id, nodes[f"k{id}"])
                    if item is not None:
                        found.append(self._unless_newer(item))
            if len(found) >= limit or len(names) < size:
                return found[:limit]
            after = names[-1]

    def _stored_names(self, last: "Last", prefix: str, after: str, limit: int) -> "Sequence[str]":
        path = f"data/{last.data}/colls"
        start = max(keys.collection_bound(prefix), keys.collection_bound(after))
        end = keys.collection_bound(prefix) + keys.HIGHEST * 2
        found: list[str] = []
        while True:
            query = f'orderBy="$key"&startAt="{start}"&endAt="{end}"&limitToFirst={limit}'
            nodes = self._store.rest.get(path, query=query.replace('"', "%22").replace("$", "%24")).value or {}
            for name, node in keys.collections_in(nodes):
                if name.startswith(prefix) and name > after:
                    if node["r"] > last.revision:  # type: ignore[operator]
                        raise Moved
                    found.append(name)
            if len(found) >= limit or len(nodes) < limit:
                return found
            start = max(nodes) + keys.LOWEST


def item_of(id: str, node: "Any") -> Item | None:
    """None of what is not there, or is the mark of somebody about to put it there."""
    if not isinstance(node, dict) or "v" not in node:
        return None
    return Item(id, keys.decode(node["v"]), node["r"])


def ask_item(data: str, collection: str, id: str) -> Ask:
    return Ask(f"data/{data}/items/{keys.item_path(collection, id)}")


def ask_head(data: str, collection: str) -> Ask:
    return Ask(f"data/{data}/colls/{keys.collection_path(collection)}")


def _ask(last: "Last", key: "Key") -> Ask:
    return ask_item(last.data, *key) if key[1] else ask_head(last.data, key[0])
