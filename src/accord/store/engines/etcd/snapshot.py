"""Reads as of one revision of etcd, which the first of them fixes."""

from accord.store.contract import Head, Instant, Item, Moved, check_page, is_collection, is_number, is_part, number_id
from accord.store.engines.etcd import home, requests
from accord.store.engines.etcd.requests import found_in, mod_of, range_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.store.engines.etcd import Etcd
    from accord.store.engines.etcd.home import Home
    from accord.store.engines.etcd.requests import Message

    Key = tuple[str, str]
    Wanted = list[Key]
    Items = list[Item]
    Messages = list[Message]

_TRIES = 20  # to read the home and the rest of one revision
_MOST_AT_ONCE = 100  # keys of one request
_SHORT = 1_000  # a collection of so many numbers is listed in one go
_GROWTH = 8  # of the part of a longer one that is asked for next
_LAST_NUMBER = 10**16 - 1


class Snapshot:
    def __init__(self, store: "Etcd") -> None:
        self._store = store
        self._keys = store.keys
        self._view = 0  # the revision of etcd that is read; 0: none yet
        self._home: Home | None = None
        self._revision = 0
        self.log_mod = 0  # the revision of etcd that wrote `log`; 0: none did
        self._wanted: Wanted = []
        self._items: dict[Key, Item | None] = {}
        self._heads: dict[str, Head] = {}

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    @property
    def epoch(self) -> str:
        return self.home.epoch

    @property
    def revision(self) -> int:
        self._fix()
        return self._revision

    @property
    def is_fixed(self) -> bool:
        return self._view != 0

    @property
    def home(self) -> "Home":
        self._fix()
        assert self._home is not None  # noqa: S101 - for the type checker
        return self._home

    def expect(self, wanted: "Sequence[Key]") -> None:
        self._wanted += wanted

    def now(self) -> Instant:
        self._fix()
        return self._store.now_in(self.home.epoch)

    def get(self, collection: str, id: str) -> Item | None:
        self._store.check_process()
        if not (is_collection(collection) and is_part(id)):
            return None
        if (collection, id) not in self._items:
            self._fetch([(collection, id)])
        return self._items[collection, id]

    def head(self, collection: str) -> Head:
        self._store.check_process()
        if not is_collection(collection):
            return Head(0, 0)
        if collection not in self._heads:
            self._fetch([(collection, "")])
        return self._heads[collection]

    def known_head(self, collection: str) -> Head | None:
        """What was read of it, without asking."""
        return self._heads.get(collection)

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        self._store.check_process()
        if not is_collection(collection):
            return []
        last = self.head(collection).last
        if self._is_empty():
            return []
        return self._down(collection, after, limit, last) if reverse else self._up(collection, after, limit, last)

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        self._store.check_process()
        self._fix()
        if self._is_empty():
            return []
        start, end = self._keys.names(prefix, after)
        found = self._range(start, end, limit=2 * limit + 2, keys_only=True)
        names = dict.fromkeys(self._keys.name_of(requests.key_of(head)) for head in found)
        # With a comma in them they may bring one name too many.
        return [name for name in names if name > after and name.startswith(prefix)][:limit]

    def _up(self, collection: str, after: str, limit: int, last: int) -> "Items":
        """etcd walks over all keys of a range, whatever the limit: of a long one it is asked for a part at a time."""
        start, end = self._keys.items(collection)
        if after:
            start = self._keys.item(collection, after) + b"\0"
        found: Items = []
        number = int(after) if is_number(after) else 0
        part = limit
        while len(found) < limit and (after == "" or is_number(after)) and last - number > _SHORT:
            number += part
            part *= _GROWTH
            stop = self._keys.item(collection, number_id(number + 1))
            found += self._page(start, stop, limit - len(found))
            start = stop
        if len(found) < limit:
            found += self._page(start, end, limit - len(found))
        return found

    def _down(self, collection: str, after: str, limit: int, last: int) -> "Items":
        """The same from the end; and etcd reads all of what it is to turn round."""
        first, end = self._keys.items(collection)
        if after:
            end = self._keys.item(collection, after)
        found: Items = []
        number = min(last, int(after) - 1) if is_number(after) else last
        part = limit
        while len(found) < limit and number > _SHORT:
            number -= part
            part *= _GROWTH
            start = self._keys.item(collection, number_id(max(0, number) + 1))
            if start < end:
                found += self._page(start, end, limit - len(found), reverse=True)
                end = start
        if len(found) < limit and first < end:
            found += self._page(first, end, limit - len(found), reverse=True)
        return found

    def _page(self, start: bytes, end: bytes, limit: int, reverse: bool = False) -> "Items":
        turned = {"sort_target": "KEY", "sort_order": "DESCEND"} if reverse else {}
        return [self._item(found) for found in self._range(start, end, limit=limit, **turned)]

    def _range(self, start: bytes, end: bytes, **more: object) -> "Messages":
        (response,) = self._ask([range_of(start, end, self._view, **more)])
        return found_in(response)

    def _fix(self) -> None:
        self._store.check_process()
        if not self._view:
            self._fetch([])

    def _fetch(self, needed: "Wanted") -> None:
        """Read these, and what else is expected, and fix the view if nothing has."""
        wanted = dict.fromkeys([*needed, *self._wanted])
        keys = [key for key in wanted if self._is_unknown(key)][:_MOST_AT_ONCE]
        self._wanted = []
        asked = [
            range_of(self._keys.item(*key), b"", self._view)
            if key[1]
            else range_of(*self._keys.heads(key[0]), self._view)
            for key in keys
        ]
        responses = self._ask(asked) if self._view else self._begin(asked)
        for key, response in zip(keys, responses, strict=True):
            found = [] if self._is_empty() else found_in(response)
            if key[1]:
                self._items[key] = self._item(found[0]) if found else None
            else:
                self._heads[key[0]] = self._head(key[0], found)

    def _is_unknown(self, key: "Key") -> bool:
        collection, id = key
        if not is_collection(collection) or (id and not is_part(id)):
            return False
        return key not in self._items if id else collection not in self._heads

    def _begin(self, asked: "Messages") -> "Messages":
        """The first read: whatever it brings is of one revision, with the home that is known or, else, its own."""
        log = range_of(self._keys.log, keys_only=True)
        learned = home.asked(self._keys)
        for _ in range(_TRIES):
            known = self._store.known_home
            compare = [known.is_same] if known else [requests.is_there(self._keys.home)]
            success = [log, *asked] if known else [*learned, log, *asked]
            answer = self._store.gateway.txn(compare, success)
            if not answer.get("succeeded") or (known and answer["header"]["cluster_id"] != known.cluster):
                self._store.learn_home()
                continue
            responses = answer["responses"]
            if known is None:
                known = home.read(self._keys, self._store.path, responses, answer["header"])
                self._store.known_home = known
                responses = responses[2:]
            if known is not None:
                self._home = known
                self._view = int(answer["header"]["revision"])
                commits = found_in(responses[0])
                self.log_mod = mod_of(commits[0]) if commits else 0
                self._revision = known.revision(self.log_mod)
                return responses[1:]  # type: ignore[no-any-return]
        raise Moved

    def _ask(self, asked: "Messages") -> "Messages":
        """More, as of the view; `Moved` when that is no longer kept, or is no revision of this store any more."""
        assert self._home is not None  # noqa: S101 - for the type checker
        answer = self._store.gateway.txn([self._home.is_same], asked)
        if not answer.get("succeeded") or answer["header"]["cluster_id"] != self._home.cluster:
            self._store.known_home = None
            raise Moved
        return answer["responses"]  # type: ignore[no-any-return]

    def _is_empty(self) -> bool:
        """What a load has put so far is not there yet."""
        return self._home is not None and self._home.state == home.LOADING

    def _item(self, found: "Message") -> Item:
        id = self._keys.id_of(requests.key_of(found))
        return Item(id, value_of(found), self.home.revision(mod_of(found)))

    def _head(self, collection: str, found: "Messages") -> Head:
        last = next((int(value_of(head)) for head in found if requests.key_of(head) == self._keys.last(collection)), 0)
        revision = self.home.revision(max(mod_of(head) for head in found)) if found else 0
        self._store.remember_last(collection, last)
        return Head(revision, last)
