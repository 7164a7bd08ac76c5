"""Any name a person uses, as a collection and an id, and back. Engines escape nothing.

Lower-case letters, digits and `-` stand for themselves. `_` starts an escape: `__` is `_`, `_d` a dot, `_s` a
slash, `_w` a space, `_u` makes the next letter a capital, and `_x` with a length digit and hexadecimal digits
is any other character. A name too long for one id begins in parts of the collection's name; each of those ends with
the mark `_c`, which tells it apart from names that people gave.
"""

from accord import errors
from accord.store.contract import MAX_PART, MAX_PARTS, is_number

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SHORT = {"_": "__", ".": "_d", "/": "_s", " ": "_w"}
_LONG = {escape[1]: letter for letter, escape in _SHORT.items()}
_EMPTY = "_e"
_CONTINUED = "_c"  # ends a part that the next part, or the id, continues


def to_key(base: str, name: str) -> tuple[str, str]:
    """The collection, `base` or one below it, and the id of `name`."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise errors.InvalidName(length=len(name), reason="it holds half a surrogate pair") from None
    parts = _pack([_escape(letter) for letter in name] or [_EMPTY])
    if is_number(parts[-1]):
        parts[-1] = _by_code(parts[-1][0]) + parts[-1][1:]  # numbers are for what was appended
    if base.count("/") + len(parts) > MAX_PARTS:
        raise errors.InvalidName(length=len(name), reason="it is too long")
    return "/".join([base, *parts[:-1]]), parts[-1]


def to_collection(base: str, name: str) -> str:
    """A collection of its own for `name`, below `base`."""
    collection = "/".join(to_key(base, name))
    if collection.count("/") >= MAX_PARTS:
        raise errors.InvalidName(length=len(name), reason="it is too long")
    return collection


def from_collection(base: str, collection: str) -> str:
    """The name that `to_collection(base, name)` made this of."""
    above, _, id = collection.rpartition("/")
    return from_key(base, above, id)


def from_key(base: str, collection: str, id: str) -> str:
    """The name that `to_key(base, name)` turned into this collection and id."""
    parts = [part.removesuffix(_CONTINUED) for part in collection[len(base) + 1 :].split("/")]
    return _unescape("".join(parts) + id)


def _pack(escapes: list[str]) -> list[str]:
    """Join the escapes into as few parts as hold them, none cut in two."""
    room = MAX_PART - len(_CONTINUED)
    parts = [""]
    for escape in escapes:
        if len(parts[-1]) + len(escape) > room:
            parts[-1] += _CONTINUED
            parts.append("")
        parts[-1] += escape
    return parts


def _escape(letter: str) -> str:
    if letter in _PLAIN:
        return letter
    if letter in _CAPITALS:
        return "_u" + letter.lower()
    if letter in _SHORT:
        return _SHORT[letter]
    return _by_code(letter)


def _by_code(letter: str) -> str:
    digits = f"{ord(letter):x}"
    return f"_x{len(digits)}{digits}"


def _unescape(text: str) -> str:
    letters = []
    at = 0
    while at < len(text):
        letter, at = _next_letter(text, at)
        letters.append(letter)
    return "".join(letters)


def _next_letter(text: str, at: int) -> tuple[str, int]:
    """The letter that starts at `at`, and where the next one starts."""
    if text[at] != "_":
        return text[at], at + 1
    kind = text[at + 1]
    if kind == "u":
        return text[at + 2].upper(), at + 3
    if kind == "x":
        end = at + 3 + int(text[at + 2])
        return chr(int(text[at + 3 : end], 16)), end
    return ("" if kind == "e" else _LONG[kind]), at + 2
