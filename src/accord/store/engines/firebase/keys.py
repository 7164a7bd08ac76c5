"""How collections, ids, values and revisions are written in the tree.

Every key begins with a letter, so that no key is a number: those sort by their value, and come back as lists.
"""

from binascii import a2b_base64, b2a_base64

from accord.store.contract import TRIM_EVERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Node = dict[str, object]

# Keys can hold no slash. Shifted by one sign, so that their order stays that of the names.
_THERE = str.maketrans("-/", ",-")
_BACK = str.maketrans(",-", "-/")
LOWEST = ","  # of all that a name may go on with
HIGHEST = "~"

# A key has at most 768 bytes, and a collection's name may have 807: what is more becomes a key below.
_LONGEST = 700

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789_-/"

_CONTROL = bytes([byte for byte in range(32) if byte not in b"\t\n\r"]) + b"\x7f"
_NO_CHARACTERS = ("\ufffe".encode(), "\uffff".encode())


def collection_path(name: str) -> str:
    text = name.translate(_THERE)
    return f"k{text}" if len(text) <= _LONGEST else f"k{text[:_LONGEST]}{HIGHEST}/k{text[_LONGEST:]}"


def collection_bound(name: str) -> str:
    """Where a name stands among the keys beside it; a part of it if it is long, or no name."""
    legal = name[: len(name) - len(name.lstrip(_ALPHABET))]
    return f"k{legal.translate(_THERE)[:_LONGEST]}"


def collections_in(children: "Node") -> "Iterator[tuple[str, Node]]":
    """The names under these keys, in order, with what stands there."""
    for key in sorted(children):
        node = children[key]
        if not isinstance(node, dict):
            continue
        if not key.endswith(HIGHEST):
            yield key[1:].translate(_BACK), node
            continue
        for rest in sorted(node):
            yield (key[1:-1] + rest[1:]).translate(_BACK), node[rest]


def item_path(collection: str, id: str) -> str:
    return f"{collection_path(collection)}/k{id}"


def change_path(revision: int) -> str:
    return f"b{revision // TRIM_EVERY:013d}/r{revision:016d}"


def encode(value: bytes) -> str:
    """Text as it is, for whoever looks at the console; all else in Base64."""
    if value.translate(None, _CONTROL) == value and not any(bad in value for bad in _NO_CHARACTERS):
        try:
            return "t" + value.decode()
        except UnicodeDecodeError:
            pass
    return "b" + b2a_base64(value, newline=False).decode()


def decode(text: str) -> bytes:
    return text[1:].encode() if text[:1] == "t" else a2b_base64(text[1:])
