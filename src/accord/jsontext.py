"""JSON text without the `json` package, whose imports cost more than a whole durable send."""

from _json import encode_basestring, make_encoder, make_scanner

from accord import errors

MAX_BYTES = 1_310_720  # the store contract's, which lies above: what one commit may hold
MAX_DEPTH = 64

_INFINITE = float("inf")


def dumps(value: object) -> str:
    """`value` as compact JSON."""
    try:
        text = "".join(_encoder(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidJson(reason=str(error)) from None
    _count_bytes(text)
    return text


def loads(text: str | bytes, most: int = MAX_BYTES) -> object:
    """The value of `text`, refusing what other readers would read otherwise or could not store."""
    size = len(text) if isinstance(text, bytes) else _count_bytes(text)
    if size > most:
        raise errors.InvalidJson(reason=f"{size} bytes, more than {most}")
    if isinstance(text, bytes):
        text = _decode(text)
    _check_depth(text)
    text = text.strip(" \t\r\n")
    value, end = _scan(text)
    if end != len(text):
        raise errors.InvalidJson(reason=f"something follows the value at character {end}")
    if "\\u" in text:
        dumps(value)  # an escape can name half a character, which could be neither stored nor printed
    return value


def loads_quickly(text: bytes) -> object:
    """The value of text that `dumps` made elsewhere: what it refuses need not be looked for."""
    return _scan(_decode(text))[0]


def loads_own(text: bytes) -> object:
    """The same of a record that `dumps` made, and that nobody should have changed in the store."""
    try:
        return loads_quickly(text)
    except errors.InvalidJson as error:
        raise errors.StoreDamaged(path="a record of the store", reason=str(error)) from None


def _count_bytes(text: str) -> int:
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise errors.InvalidJson(reason="half a surrogate pair") from None


def _scan(text: str) -> tuple[object, int]:
    try:
        return _scanner(text, 0)
    except SystemError:
        # The scanner takes its exception from a module that only `json` loads.
        import json.decoder  # noqa: F401

        return _scan(text)
    except StopIteration as stop:
        raise errors.InvalidJson(reason=f"a value is missing at character {stop.value}") from None
    except (ValueError, RecursionError) as error:
        raise errors.InvalidJson(reason=str(error)) from None


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidJson(reason=f"byte {error.start} is not UTF-8") from None


def _check_depth(text: str) -> None:
    """Refuse deep nesting before the scanner recurses into it. Brackets inside strings do not count."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    import re

    depth = 0
    for bracket in re.findall(r"[][{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise errors.InvalidJson(reason=f"nested deeper than {MAX_DEPTH}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a key twice")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (_INFINITE, -_INFINITE):
        raise ValueError(f"{digits} is too large")
    return number


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _unknown(value: object) -> object:
    raise TypeError(f"{type(value).__name__} has no JSON form")


class _Rules:
    """What `make_scanner` asks for."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_object)
    parse_float = staticmethod(_finite)
    parse_int = int
    parse_constant = staticmethod(_refuse)


_scanner = make_scanner(_Rules())  # type: ignore[arg-type]
_encoder = make_encoder(None, _unknown, encode_basestring, None, ":", ",", False, False, False)
