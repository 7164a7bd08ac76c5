"""Showing that one has the operator's token without showing it: whoever sits at a socket may not be the hub.

A proof is for one thing that is asked, and for a short time: a random name with the moment it was made, and a keyed
hash of that and of what is asked.
"""

import os
import time
from _blake2 import blake2b
from _operator import _compare_digest

GOOD_FOR_S = 60.0

_START = "proof:"


def make(token: str, what: str) -> str:
    """What to show for a token; "" where there is none."""
    if not token:
        return ""
    name = f"{int(time.time() * 1000):012x}{os.urandom(10).hex()}"
    return f"{_START}{name}:{_mac(token, name, what)}"


def of_command(nonce: str, argv: list[str]) -> str:
    """What a proof is for that a command shows: these words, and one question of the hub's."""
    return "\0".join(["cli.run", nonce, *argv])


def holds(shown: str, token: str, what: str) -> bool:
    """Whether somebody has shown the token, or a proof of it that is for this; "": only the token itself will do."""
    if not token or not shown:
        return False
    if not shown.startswith(_START):
        return _compare_digest(shown.encode(), token.encode())
    if not what:
        return False
    name, _, mac = shown.removeprefix(_START).partition(":")
    if not _compare_digest(mac.encode(), _mac(token, name, what).encode()):
        return False
    return abs(time.time() - int(name[:12], 16) / 1000) < GOOD_FOR_S


def _mac(token: str, name: str, what: str) -> str:
    text = f"{name}\0{what}".encode("utf-8", "surrogateescape")
    return blake2b(text, key=token.encode()[:64], digest_size=32).hexdigest()
