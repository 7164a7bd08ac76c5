"""The data of a Realtime Database: a JSON tree without empty places, with ETags of values and queries by key."""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

NULL_ETAG = "null_etag"

MOST_KEY_BYTES = 768
MOST_DEPTH = 32
MOST_STRING_BYTES = 10 * 1024 * 1024
MOST_ANSWER_BYTES = 256 * 1024 * 1024

_FORBIDDEN = re.compile(r"[.$#\[\]/\x00-\x1f\x7f]")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,9}")
_BIGGEST_INTEGER = 2**31 - 1


class Wrong(Exception):
    """A request that the database refuses, with its status."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


def check_key(key: str) -> str:
    if not key or _FORBIDDEN.search(key) or len(key.encode()) > MOST_KEY_BYTES:
        raise Wrong(
            "Invalid data; couldn't parse JSON object, array, or value. "
            "Perhaps you're using invalid characters in your key names."
        )
    return key


def split_path(path: str) -> tuple[str, ...]:
    return tuple(check_key(part) for part in path.split("/") if part)


def as_stored(value: Any, now: Callable[[], float], old: Any = None, depth: int = 0) -> Any:
    """`value` as the tree holds it: lists as objects, server values filled in, and None for all that is empty."""
    if depth > MOST_DEPTH:
        raise Wrong("Invalid data; the data is nested too deep.")
    if isinstance(value, list):
        value = {str(place): part for place, part in enumerate(value)}
    if isinstance(value, dict):
        if ".sv" in value:
            return _server_value(value, now, old)
        parts = {
            check_key(key): as_stored(part, now, old.get(key) if isinstance(old, dict) else None, depth + 1)
            for key, part in value.items()
        }
        return {key: part for key, part in parts.items() if part is not None} or None
    if isinstance(value, str) and len(value.encode()) > MOST_STRING_BYTES:
        raise Wrong("Invalid data; a string is greater than 10485760 bytes.")
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong("Invalid data; couldn't parse JSON object, array, or value.")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return int(float(value))  # numbers are doubles
    return value


def _server_value(value: dict[str, Any], now: Callable[[], float], old: Any) -> Any:
    wanted = value[".sv"]
    if len(value) == 1 and wanted == "timestamp":
        return int(now() * 1000)
    if len(value) == 1 and isinstance(wanted, dict) and set(wanted) == {"increment"}:
        return wanted["increment"] + (old if isinstance(old, int | float) and not isinstance(old, bool) else 0)
    raise Wrong("Invalid data; unknown server value.")


def as_shown(value: Any) -> Any:
    """What a client is told: objects whose keys are numbers, more than half of them there, become lists."""
    if not isinstance(value, dict):
        return value
    shown = {key: as_shown(value[key]) for key in sorted(value, key=key_order)}
    if all(key.isdigit() and _is_integer(key) for key in shown):
        most = max(int(key) for key in shown)
        if len(shown) * 2 > most + 1:
            return [shown.get(str(place)) for place in range(most + 1)]
    return shown


def key_order(key: str) -> tuple[int, int, str]:
    """Numbers come first, by their value; then all else, letter by letter."""
    return (0, int(key), "") if _is_integer(key) else (1, 0, key)


def _is_integer(key: str) -> bool:
    return bool(_INTEGER.fullmatch(key)) and abs(int(key)) <= _BIGGEST_INTEGER


def etag_of(value: Any) -> str:
    """By the value alone, so that one which comes back brings its ETag back too."""
    if value is None:
        return NULL_ETAG
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:27] + "="


class Tree:
    def __init__(self) -> None:
        self.root: Any = None
        self.now: Callable[[], float] = time.time

    def get(self, path: tuple[str, ...]) -> Any:
        node = self.root
        for key in path:
            if not isinstance(node, dict):
                return None
            node = node.get(key)
        return node

    def prepared(self, path: tuple[str, ...], value: Any) -> Any:
        """The value as it would be stored there, or the reason why it cannot."""
        return as_stored(value, self.now, self.get(path), len(path))


def changed(node: Any, path: tuple[str, ...], value: Any) -> Any:
    """The node with another value below it; what was empty vanishes upwards. The old one stays as it was."""
    if not path:
        return value
    children = dict(node) if isinstance(node, dict) else {}
    child = changed(children.get(path[0]), path[1:], value)
    if child is not None:
        children[path[0]] = child
    elif not isinstance(node, dict):
        return node  # nothing was removed below a plain value
    else:
        children.pop(path[0], None)
    return children or None


ORDER = {"orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast"}


def query(value: Any, options: dict[str, str]) -> Any:
    """What a query by key selects of the children of `value`."""
    if json_of(options.get("orderBy", "null"), "orderBy") != "$key":
        raise Wrong('orderBy must be defined, and this server knows "$key" alone')
    if not isinstance(value, dict):
        return None
    keys = [key for key in sorted(value, key=key_order) if all(_admits(key, options))]
    if "limitToFirst" in options and "limitToLast" in options:
        raise Wrong("only one of limitToFirst and limitToLast can be given")
    if "limitToFirst" in options:
        keys = keys[: _positive(options["limitToFirst"])]
    if "limitToLast" in options:
        keys = keys[-_positive(options["limitToLast"]) :]
    return {key: value[key] for key in keys} or None


def _admits(key: str, options: dict[str, str]) -> Iterator[bool]:
    place = key_order(key)
    for name in ORDER & options.keys() - {"orderBy", "limitToFirst", "limitToLast"}:
        bound = json_of(options[name], name)
        if not isinstance(bound, str):
            raise Wrong(f"{name} must be a string when ordering by key")
        end = key_order(bound)
        yield {
            "startAt": place >= end,
            "startAfter": place > end,
            "endAt": place <= end,
            "endBefore": place < end,
            "equalTo": place == end,
        }[name]


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise Wrong("limitToFirst must be a positive integer")
    return int(text)


def json_of(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Wrong(f"{name} must be a valid JSON encoded path") from None
