"""`load`: into a place of its own, which nobody knows until `head` names it."""

from os import urandom
from time import monotonic

from accord import errors, jsontext
from accord.store.contract import check_contents
from accord.store.engines.firebase import keys
from accord.store.engines.firebase.committing import put_head
from accord.store.engines.firebase.rest import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.store.contract import Content
    from accord.store.engines.firebase import Firebase
    from accord.store.engines.firebase.rest import Rest

_PIECE = 1 << 20  # bytes in one request
_PLACES = 500
_TIMEOUT_S = 60.0


def load(store: "Firebase", contents: "Iterable[Content]") -> None:
    head = store.current()
    if head.revision:
        raise errors.StoreNotEmpty(path=store.rest.shown)
    data = urandom(8).hex()
    pieces = _Pieces(store, f"data/{data}")
    for collection, last, items in check_contents(contents):
        where = keys.collection_path(collection)
        for item in items:
            pieces.add(f"items/{where}/k{item.id}", {"r": 1, "v": keys.encode(item.value)}, len(item.value))
        pieces.add(f"colls/{where}", {"r": 1, "n": last}, 0)
    pieces.send()
    if put_head(store, head, head.loaded(data), monotonic() + _TIMEOUT_S) is not None:
        raise errors.StoreNotEmpty(path=store.rest.shown)


def remove(rest: "Rest") -> None:
    """All of a store that nobody uses any more."""
    replies = rest.ask([Ask(part, b"null") for part in ("head", "data", "clocks")])
    if not all(reply.is_done for reply in replies):
        raise errors.EngineUnreachable(path=rest.shown, reason="no answer came when a store was to be removed")


class _Pieces:
    """Several places in one request: nothing is there yet that could be overwritten.

    Once its answer is lost, a piece may come when all is in use. So all of it is given up then.
    """

    def __init__(self, store: "Firebase", root: str) -> None:
        self._store = store
        self._root = root
        self._places: dict[str, object] = {}
        self._size = 0

    def add(self, path: str, node: object, size: int) -> None:
        self._places[path] = node
        self._size += size + len(path) + 40
        if self._size >= _PIECE or len(self._places) >= _PLACES:
            self.send()

    def send(self) -> None:
        if not self._places:
            return
        text = jsontext.dumps(self._places).encode()
        if not self._store.rest.patch(self._root, text, monotonic() + _TIMEOUT_S):
            raise errors.EngineUnreachable(
                path=self._store.rest.shown, reason="no answer came to a piece of what is loaded"
            )
        self._places = {}
        self._size = 0
