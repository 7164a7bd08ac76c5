"""A store filled at once: under keys of another name, which become the store's in one step at the end."""

from accord import errors
from accord.store.contract import check_contents, new_epoch
from accord.store.engines.redis import scripts
from accord.store.engines.redis.server import Keys, Script, Server
from accord.store.engines.redis.wire import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from accord.store.contract import Content, Item
    from accord.store.engines.redis.wire import Reply

BEGIN_LOAD = Script(scripts.BEGIN_LOAD)
LOAD = Script(scripts.LOAD)
END_LOAD = Script(scripts.END_LOAD)
GIVE_UP = Script(scripts.GIVE_UP)
FORGET = Script(scripts.FORGET)

# Of one script: it holds the server up for as long as it runs.
_MOST_ITEMS = 500
_MOST_BYTES = 1_310_720

_LITTER = b"litter:"


def load(server: Server, contents: "Iterable[Content]") -> None:
    gen = new_epoch().encode()
    keys = Keys(server.address.root, gen)
    fields = _run(server, BEGIN_LOAD, (keys.meta,), (gen,))
    for field in fields:
        if field.startswith(_LITTER):
            _forget(server, field.removeprefix(_LITTER))
    try:
        for collection, last, items in check_contents(contents):
            name = collection.encode()
            to = (keys.meta, keys.heads, keys.names, keys.items + name, keys.ids + name)
            for chunk in _chunks(items):
                _run(server, LOAD, to, (gen, name, b"%d" % last, *chunk))
        _run(server, END_LOAD, (keys.meta, keys.log), (gen,))
    except errors.EngineUnreachable:
        raise  # that was waited for long enough; the next load takes away what is left
    except BaseException:
        _give_up(server, keys)
        raise


def remove(server: Server) -> None:
    """All keys of a store that nobody uses any more."""
    server.patiently(lambda wire, left_s: None)  # which learns their names
    keys = server.keys
    _forget(server, keys.gen)
    server.patiently(lambda wire, left_s: wire.ask(pack(b"UNLINK", keys.meta, keys.log), timeout_s=left_s))


def _give_up(server: Server, keys: Keys) -> None:
    try:
        _run(server, GIVE_UP, (keys.meta,), (keys.gen,))
        _forget(server, keys.gen)
    except errors.AccordError:
        pass  # the next load does it


def _forget(server: Server, gen: bytes) -> None:
    keys = Keys(server.address.root, gen)
    names: list[bytes] = []
    while True:
        of_names = [key + name for name in names for key in (keys.items, keys.ids)]
        names = _run(server, FORGET, (keys.meta, keys.names, keys.heads, *of_names), (gen, *names))
        if not names:
            return


def _run(server: Server, script: Script, keys: "Sequence[bytes]", arguments: "Sequence[bytes]") -> "Reply":
    found = server.patiently(lambda wire, left_s: server.run(wire, script, keys, arguments, left_s)[0])
    if found == b"full":
        raise errors.StoreNotEmpty(path=server.address.shown)
    return found


def _chunks(items: "Iterable[Item]") -> "Iterator[list[bytes]]":
    """Ids and values by turns; at least one chunk, which may be empty."""
    chunk: list[bytes] = []
    size = 0
    for item in items:
        if chunk and (len(chunk) >= 2 * _MOST_ITEMS or size + len(item.value) > _MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk += (item.id.encode(), item.value)
        size += len(item.value)
    yield chunk
