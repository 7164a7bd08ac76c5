"""A commit's checks and writes as the arguments of its script."""

from accord import errors
from accord.store.contract import (
    Append,
    CollectionIs,
    Committed,
    Conflict,
    Delete,
    Number,
)
from accord.store.engines.redis import scripts
from accord.store.engines.redis.server import Keys, Script, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.store.contract import Check, Template, Write
    from accord.store.engines.redis.wire import Reply

COMMIT = Script(scripts.COMMIT)


class Order:
    def __init__(self, checks: "Sequence[Check]", writes: "Sequence[Write]") -> None:
        places: dict[str, int] = {}
        arguments: list[bytes] = []
        for check in checks:
            place = places.setdefault(check.collection, len(places) + 1)
            id = b"" if isinstance(check, CollectionIs) else check.id.encode()
            arguments += (b"%d" % place, id, b"%d" % check.revision)
        for write in writes:
            place = places.setdefault(write.collection, len(places) + 1)
            pieces = () if isinstance(write, Delete) else _pieces(write.value)
            arguments += (b"%d" % place, _id(write), b"%d" % len(pieces), *pieces)
        names = [name.encode() for name in places]
        self._names = names
        self._rest = (b"%d" % len(names), *names, b"%d" % len(checks), *arguments)

    def keys(self, keys: Keys) -> "list[bytes]":
        found = [keys.meta, keys.log, keys.heads, keys.names]
        for name in self._names:
            found += (keys.items + name, keys.ids + name)
        return found

    def arguments(self, gen: bytes, epoch: bytes) -> "tuple[bytes, ...]":
        return gen, epoch, *self._rest


def done(answer: "Reply", server: Server) -> Committed:
    if answer == b"conflict":
        raise Conflict
    if answer[0] == b"never given":
        reason = "16 digits are a number, and no append of the collection gave it"
        raise errors.InvalidKey(key=answer[1].decode(), kind="id", reason=reason)
    revision = int(answer[0])
    server.saw(answer[2], revision, answer[1])
    return Committed(revision, tuple(answer[3:]))


def _id(write: "Write") -> bytes:
    if isinstance(write, Append):
        return b"+"
    return b"#%d" % write.id.append if isinstance(write.id, Number) else write.id.encode()


def _pieces(value: "bytes | Template") -> "Sequence[bytes]":
    """Bytes and, between them, which append's number comes there."""
    if isinstance(value, bytes):
        return (value,)
    pieces = [b""]
    for piece in value:
        if isinstance(piece, Number):
            pieces += (b"%d" % piece.append, b"")
        else:
            pieces[-1] += piece
    return pieces
