"""Filling an empty store, in many txns: until the last of them says so, nothing is there."""

from accord import errors
from accord.store.contract import MAX_BYTES, check_contents, new_epoch
from accord.store.engines.etcd import home, requests
from accord.store.engines.etcd.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.store.contract import Content
    from accord.store.engines.etcd import Etcd
    from accord.store.engines.etcd.home import Home
    from accord.store.engines.etcd.requests import Keys, Message

_MOST_BYTES = MAX_BYTES // 2  # of values in one txn, or else one value


def load(store: "Etcd", contents: "Iterable[Content]") -> None:
    begun = _begin(store)
    try:
        for made in _parts(store.keys, contents):
            answer = store.gateway.txn([begun.is_same], made)
            if not answer.get("succeeded"):
                raise errors.StoreNotEmpty(path=store.path)
        if not _changed(store, begun, [], home.LOADED, begun.by):
            raise errors.StoreNotEmpty(path=store.path)
    except BaseException:
        store.clear(begun)
        raise


def clear(store: "Etcd", begun: "Home") -> None:
    """Take away what a load has put, unless it went on or somebody has done so already."""
    everything = [requests.delete(*store.keys.all_items), requests.delete(*store.keys.all_heads)]
    changed = home.change(store.keys, begun.raw_epoch, home.FRESH)
    store.gateway.txn([begun.is_same], [*everything, *changed])
    store.forget_home()


def remove(store: "Etcd") -> None:
    """All keys of a store that nobody uses any more."""
    store.gateway.txn([], [requests.delete(*store.keys.everything)])


def _begin(store: "Etcd") -> "Home":
    store.forget_home()
    with Snapshot(store) as now:
        found, log = now.home, store.keys.log
        if found.state == home.LOADING:
            store.clear(found)
            return _begin(store)
        if now.revision:
            raise errors.StoreNotEmpty(path=store.path)
        unmoved = requests.is_of(log, now.log_mod) if now.log_mod else requests.is_absent(log)
    if not _changed(store, found, [unmoved], home.LOADING, new_epoch()):
        raise errors.StoreNotEmpty(path=store.path)
    return store.home()


def _changed(store: "Etcd", known: "Home", compare: "list[Message]", state: str, by: str) -> bool:
    """Whether the home says so now; the answer of a try before may have been lost."""
    store.gateway.txn([known.is_same, *compare], home.change(store.keys, known.raw_epoch, state, by))
    store.forget_home()
    now = store.home()
    return (now.state, now.by) == (state, by)


def _parts(keys: "Keys", contents: "Iterable[Content]") -> "Iterator[list[Message]]":
    """The puts, as many at once as one txn may hold."""
    part: list[Message] = []
    size = 0
    for collection, last, items in check_contents(contents):
        head = (
            requests.put(keys.last(collection), b"%d" % last) if last else requests.put(keys.touched(collection), b"")
        )
        part.append(head)
        for item in items:
            if part and (len(part) >= requests.MOST - 1 or size + len(item.value) > _MOST_BYTES):
                yield part
                part, size = [], 0
            part.append(requests.put(keys.item(collection, item.id), item.value))
            size += len(item.value)
        if len(part) >= requests.MOST - 1:
            yield part
            part, size = [], 0
    if part:
        yield part
