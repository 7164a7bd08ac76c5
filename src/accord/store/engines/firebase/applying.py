"""What a commit wrote, from `head` to where it is read: by its writer, and by whoever finds it undone.

Several may be at it at once, and any of them may sleep for a week between two requests. So nothing is ever put but over
a value that was seen, and each value is seen once in the life of a store:

- `{r, v}` of an item is put over an older revision, or over a mark.
- What is not there has no value to be put over. So a mark with a random name is put there first, under the ETag of
  nothing; if `head` is still the same commit after the mark was seen, the item was not deleted since, and the value may
  be put over that mark. Whoever finds that `head` went on takes the mark away.
- An item is deleted after its collection was told: who finds it gone looks whether the collection moved.
- `changes` is told last, and says that all is done.
"""

from os import urandom
from time import monotonic

from accord.store.contract import TRIM_EVERY
from accord.store.engines.firebase import keys
from accord.store.engines.firebase.rest import NULL_ETAG, Ask, json_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from accord.store.engines.firebase.record import Head
    from accord.store.engines.firebase.rest import Reply, Rest


class Overtaken(Exception):
    """`head` is another commit: this one is done."""


class _Place:
    """One node of the tree, and what is known of it."""

    def __init__(self, path: str, revision: int) -> None:
        self.path = path
        self.revision = revision
        self.node: Any = None
        self.etag = ""  # of the node; "" when it must be looked at
        self.is_done = False

    def ask(self) -> "Ask | None":
        return self.write() if self.etag else Ask(self.path, None, "?")

    def write(self) -> "Ask | None":
        raise NotImplementedError

    def take(self, asked: Ask, reply: "Reply") -> None:
        if reply.is_lost:
            self.etag = ""
        elif asked.method == "GET" or (reply.status == 412 and reply.etag and reply.text):
            self.node = reply.value
            self.etag = reply.etag
            self.look()
        elif reply.status == 412:
            self.etag = ""
        else:
            self.written()

    def look(self) -> None:
        self.is_done = isinstance(self.node, dict) and self.node.get("r", 0) >= self.revision

    def written(self) -> None:
        self.is_done = True


class _Collection(_Place):
    def __init__(self, path: str, revision: int, last: int | None) -> None:
        super().__init__(path, revision)
        self._last = last  # None: as it was

    def write(self) -> Ask:
        last = self._last if self._last is not None else (self.node or {}).get("n", 0)
        return Ask(self.path, json_bytes({"r": self.revision, "n": last}), self.etag)


class _Deleted(_Place):
    may_write = False

    def write(self) -> "Ask | None":
        return Ask(self.path, b"null", self.etag) if self.may_write else None

    def look(self) -> None:
        self.is_done = not isinstance(self.node, dict) or self.node.get("r", self.revision) >= self.revision


class _Item(_Place):
    def __init__(self, path: str, revision: int, text: str, is_new: bool) -> None:
        super().__init__(path, revision)
        self._text = text
        self._mark = ""
        self._is_sure = False  # the mark there was seen before `head` was found to be the same
        if is_new:
            self.etag = NULL_ETAG  # most likely

    @property
    def is_marked(self) -> bool:
        return self.node is not None and "r" not in self.node

    @property
    def own_mark(self) -> bool:
        return bool(self._mark) and self.node == {"p": self._mark}

    def write(self) -> "Ask | None":
        if self.node is None:
            self._mark = urandom(10).hex()  # another one each time it is sent: an old one may come late
            return Ask(self.path, json_bytes({"p": self._mark}), NULL_ETAG)
        if self.is_marked and not self._is_sure:
            return None
        return Ask(self.path, json_bytes({"r": self.revision, "v": self._text}), self.etag)

    def take(self, asked: Ask, reply: "Reply") -> None:
        before = self.node
        super().take(asked, reply)
        if self.node != before:
            self._is_sure = False

    def written(self) -> None:
        if self.node is None:
            self.node = {"p": self._mark}
            self.etag = ""
            self._is_sure = False
        else:
            self.is_done = True

    def is_still_the_same_commit(self, seen: object) -> None:
        """As of a moment after `seen` was there."""
        self._is_sure = self.is_marked and self.node == seen


def apply(rest: "Rest", head: "Head", deadline: float) -> None:
    """Returns when all that the commit wrote is in its place; raises `Overtaken` when `head` has gone on."""
    root = f"data/{head.data}"
    collections = [
        _Collection(f"{root}/colls/{keys.collection_path(name)}", head.revision, head.lasts.get(name))
        for name in sorted(head.collections)
    ]
    items = [_Item(f"{root}/items/{keys.item_path(*key)}", head.revision, keys.encode(value), _is_new(head, key))
             for key, value in head.values.items() if value is not None]  # fmt: skip
    deleted = [
        _Deleted(f"{root}/items/{keys.item_path(*key)}", head.revision)
        for key, value in head.values.items()
        if value is None
    ]
    places = [*collections, *items, *deleted]
    try:
        while left := [place for place in places if not place.is_done]:
            _go_on(rest, head, left, items, deadline)
            if all(place.is_done for place in collections):
                for place in deleted:
                    place.may_write = True
    except Overtaken:
        _take_back(rest, items, deadline)
        raise
    change = {"i": head.id, "k": head.node["s"]["k"]}  # type: ignore[index]
    reply = rest.put(f"{root}/changes/{keys.change_path(head.revision)}", change, NULL_ETAG, deadline)
    while reply.is_lost and monotonic() < deadline:
        reply = rest.put(f"{root}/changes/{keys.change_path(head.revision)}", change, NULL_ETAG, deadline)


def _is_new(head: "Head", key: "tuple[str, str]") -> bool:
    """Whether it is most likely not there yet."""
    return key[0] in head.lasts and len(key[1]) == 16 and key[1].isdigit()


def _go_on(rest: "Rest", head: "Head", left: "Sequence[_Place]", items: "Sequence[_Item]", deadline: float) -> None:
    """One more request for each place, all together, and a look at `head` where somebody waits for that."""
    asked = [(place, ask) for place in left if (ask := place.ask()) is not None]
    marked = [(item, item.node) for item in items if item.is_marked and not item.is_done]
    asks = [ask for _, ask in asked] + [Ask("head/s/i")] * bool(marked)
    replies = rest.ask(asks, deadline)
    for (place, ask), reply in zip(asked, replies, strict=False):
        place.take(ask, reply)
    if marked:
        if replies[-1].value != head.id:
            raise Overtaken
        for item, seen in marked:
            item.is_still_the_same_commit(seen)


def _take_back(rest: "Rest", items: "Sequence[_Item]", deadline: float) -> None:
    """Marks of our own that came too late: nobody reads them as anything, but there they would stay."""
    for item in items:
        if item.own_mark:
            reply = rest.get(item.path, "?", deadline=deadline)
            if reply.value == item.node:
                rest.ask([Ask(item.path, b"null", reply.etag)], deadline)


def trim(rest: "Rest", head: "Head", deadline: float) -> None:
    """Forget the changes that nobody may ask for any more, by the thousand. Nobody writes there ever again."""
    found = rest.get(f"data/{head.data}/changes", query="shallow=true", deadline=deadline).value or {}
    for bucket in sorted(found):
        if (int(bucket[1:]) + 1) * TRIM_EVERY <= head.floor:
            rest.ask([Ask(f"data/{head.data}/changes/{bucket}", b"null")], deadline)
