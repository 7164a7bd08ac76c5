"""What etcd's JSON gateway is asked and answers: keys, comparisons and operations of one `txn`.

Under the prefix lie `home` and `epoch`; `log`, which every commit puts; `i/COLLECTION,ID` for each item; and of each
collection `h/COLLECTION,n` with its last number, put by commits that append, and `h/COLLECTION,t`, put by the others.
No name holds a comma, which sorts before all that they hold: so ranges are exact and in the order of the names.
"""

from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

MOST = 128  # comparisons, or operations, of one txn: etcd's --max-txn-ops


class Keys:
    """Where things lie below a prefix."""

    def __init__(self, prefix: str) -> None:
        self._root = root = f"{prefix}/".encode()
        self.home = root + b"home"
        self.epoch = root + b"epoch"
        self.log = root + b"log"
        self.everything = root, root[:-1] + b"0"
        self.all_items = root + b"i/", root + b"i0"
        self.all_heads = root + b"h/", root + b"h0"

    def item(self, collection: str, id: str) -> bytes:
        return b"%si/%s,%s" % (self._root, collection.encode(), _utf8(id))

    def items(self, collection: str) -> tuple[bytes, bytes]:
        """From the first, and up to what follows the last."""
        start = self.item(collection, "")
        return start, start[:-1] + b"-"

    def heads(self, collection: str) -> tuple[bytes, bytes]:
        start = b"%sh/%s" % (self._root, collection.encode())
        return start + b",", start + b"-"

    def last(self, collection: str) -> bytes:
        return b"%sh/%s,n" % (self._root, collection.encode())

    def touched(self, collection: str) -> bytes:
        return b"%sh/%s,t" % (self._root, collection.encode())

    def names(self, prefix: str, after: str) -> tuple[bytes, bytes]:
        """The heads of collections whose names start so and come after that one."""
        first = _utf8(prefix)
        past = _utf8(after) + b"-" if after else b""
        start = b"%sh/" % self._root
        return start + max(first, past), start + first + b"\x7f"

    def name_of(self, head: bytes) -> str:
        return head[len(self._root) + 2 : -2].decode()

    def id_of(self, item: bytes) -> str:
        return item[item.rindex(b",") + 1 :].decode()


def _utf8(text: str) -> bytes:
    """Whatever it is: what no key can hold is found nowhere, and still has its place in the order."""
    return text.encode("utf-8", "surrogatepass")


def encoded(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def key_of(found: "Message") -> bytes:
    return a2b_base64(found["key"])


def value_of(found: "Message") -> bytes:
    return a2b_base64(found.get("value", ""))


def mod_of(found: "Message") -> int:
    """The revision of etcd that wrote it last."""
    return int(found["mod_revision"])


def range_of(key: bytes, end: bytes = b"", revision: int = 0, **more: object) -> "Message":
    asked: Message = {"key": encoded(key), **more}
    if end:
        asked["range_end"] = encoded(end)
    if revision:
        asked["revision"] = revision
    return {"request_range": asked}


def found_in(response: "Message") -> "list[Message]":
    """What one range brought."""
    found: list[Message] = response["response_range"].get("kvs", [])
    return found


def put(key: bytes, value: bytes) -> "Message":
    return {"request_put": {"key": encoded(key), "value": encoded(value)}}


def delete(key: bytes, end: bytes = b"") -> "Message":
    return {"request_delete_range": {"key": encoded(key), **({"range_end": encoded(end)} if end else {})}}


def nested(compare: "list[Message]", success: "list[Message]", failure: "list[Message]") -> "Message":
    return {"request_txn": {"compare": compare, "success": success, "failure": failure}}


def is_absent(key: bytes, end: bytes = b"") -> "Message":
    return _compare("CREATE", "EQUAL", "create_revision", 0, key, end)


def is_there(key: bytes) -> "Message":
    return _compare("CREATE", "GREATER", "create_revision", 0, key)


def is_of(key: bytes, mod: int) -> "Message":
    return _compare("MOD", "EQUAL", "mod_revision", mod, key)


def is_before(key: bytes, mod: int, end: bytes = b"") -> "Message":
    """All of them were written before that revision of etcd."""
    return _compare("MOD", "LESS", "mod_revision", mod, key, end)


def has_value(key: bytes, value: bytes) -> "Message":
    return _compare("VALUE", "EQUAL", "value", encoded(value), key)


def has_less(key: bytes, value: bytes) -> "Message":
    """Its value comes before that one, byte by byte; false where there is none."""
    return _compare("VALUE", "LESS", "value", encoded(value), key)


def _compare(target: str, result: str, field: str, wanted: object, key: bytes, end: bytes = b"") -> "Message":
    compare = {"target": target, "result": result, field: wanted, "key": encoded(key)}
    return {**compare, "range_end": encoded(end)} if end else compare
