"""Snapshots: the first read fixes what they show, and brings all that was expected with it."""

from accord.store.contract import Head, Instant, Item, Moved, Opened, check_page
from accord.store.engines.redis import scripts
from accord.store.engines.redis.server import Keys, Script, Server, Stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.store.engines.redis.wire import Reply

    Wanted = Sequence[tuple[str, str]]  # collections and ids; id "": the head

GET = Script(scripts.GET)
LIST = Script(scripts.LIST)
NAMES = Script(scripts.NAMES)

_NEVER = Head(0, 0)
_NO_ID = "!"  # in place of what no id can be
_TO_THE_END = b"+"
_TO_THE_START = b"-"


class Snapshot:
    def __init__(self, server: Server, opened: Opened) -> None:
        self._server = server
        self._opened = opened
        self._expected: Wanted = ()
        self._known: dict[tuple[str, str], Item | Head | None] = {}
        self._epoch = b""  # until the first read
        self._revision = 0
        self._now = 0.0

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    @property
    def epoch(self) -> str:
        self._fix()
        return self._epoch.decode()

    @property
    def revision(self) -> int:
        self._fix()
        return self._revision

    @property
    def fixed_epoch(self) -> bytes:
        """Of the history that was read from, if anything was."""
        return self._epoch

    def now(self) -> Instant:
        """On the server's clock, as of the first read."""
        self._fix()
        return Instant(self._epoch.decode(), self._now)

    def expect(self, wanted: "Wanted") -> None:
        """The first read brings these with it."""
        if not self._epoch:
            self._expected = [*self._expected, *wanted]

    def get(self, collection: str, id: str) -> Item | None:
        found = self._one(collection, id or _NO_ID)
        return found if isinstance(found, Item) else None

    def head(self, collection: str) -> Head:
        found = self._one(collection, "")
        return found if isinstance(found, Head) else _NEVER

    def list(self, collection: str, after: str = "", limit: int = 100, reverse: bool = False) -> "Sequence[Item]":
        check_page(limit)
        self._fix()
        name = _bytes(collection)
        if reverse:
            first, last = (b"(" + _bytes(after) if after else _TO_THE_END), _TO_THE_START
        else:
            first, last = (b"(" + _bytes(after) if after else _TO_THE_START), _TO_THE_END
        found = self._read(
            LIST,
            lambda keys: (keys.meta, keys.heads, keys.ids + name, keys.items + name),
            (name, first, last, b"%d" % limit, b"%d" % reverse),
        )
        self._known[collection, ""] = self._head(found[1])
        return [self._item(id.decode(), stored) for id, stored in zip(found[2], found[3], strict=True)]

    def collections(self, prefix: str = "", after: str = "", limit: int = 100) -> "Sequence[str]":
        check_page(limit)
        self._fix()
        begin, over = _bytes(prefix), _bytes(after)
        first = b"(" + over if over >= begin and after else b"[" + begin if begin else _TO_THE_START
        last = b"(" + begin + b"\xff" if begin else _TO_THE_END
        found = self._read(NAMES, lambda keys: (keys.meta, keys.names), (first, last, b"%d" % limit))
        if int(found[1]) > self._revision:
            raise Moved
        return [name.decode() for name in found[2]]

    def _fix(self) -> None:
        """Have a view, if only of what was expected."""
        self._opened.check_process()
        if not self._epoch:
            self._fetch(())

    def _one(self, collection: str, id: str) -> Item | Head | None:
        self._opened.check_process()
        if (collection, id) not in self._known:
            self._fetch(((collection, id),))
        return self._known[collection, id]

    def _fetch(self, wanted: "Wanted") -> None:
        if not self._epoch:
            wanted = [*dict.fromkeys((*self._expected, *wanted))]
        names = [(_bytes(collection), _bytes(id)) for collection, id in wanted]

        def keys_of(keys: Keys) -> "list[bytes]":
            return [keys.meta, keys.heads, *[keys.items + name if id else keys.heads for name, id in names]]

        found = self._read(GET, keys_of, [part for pair in names for part in pair])
        for place, key in enumerate(wanted, start=1):
            self._learn(key, found[place])

    def _learn(self, key: tuple[str, str], answer: "Reply") -> None:
        """Nothing of an answer that is newer than the view, or a second read would be given it."""
        if isinstance(answer, bytes):
            self._known[key] = self._item(key[1], answer)
        else:
            head = self._head(answer[0])
            self._known[key] = None
            self._known[key[0], ""] = head

    def _read(self, script: Script, keys: "Callable[[Keys], Sequence[bytes]]", arguments: "Sequence[bytes]") -> "Reply":
        while True:
            try:
                found = self._server.read(script, keys, arguments)
                break
            except Stale:
                if self._epoch:
                    raise Moved from None
        epoch, number, place, seconds, micros = found[0].split(b" ")
        revision = int(number)
        self._server.saw(epoch, revision, place)
        if not self._epoch:
            self._epoch, self._revision = epoch, revision
            self._now = int(seconds) + int(micros) / 1e6
        elif epoch != self._epoch or revision < self._revision:
            raise Moved
        return found

    def _item(self, id: str, stored: bytes) -> Item:
        revision, _, value = stored.partition(b" ")
        return Item(id, value, self._unmoved(int(revision)))

    def _head(self, stored: "bytes | None") -> Head:
        if stored is None:
            return _NEVER
        revision, _, last = stored.partition(b" ")
        return Head(self._unmoved(int(revision)), int(last))

    def _unmoved(self, revision: int) -> int:
        if revision > self._revision:
            raise Moved
        return revision


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
