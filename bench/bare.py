"""What others do on a server, to compare a send with: one XADD, one put; and one append, which is less than a send."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import redis

from accord.store.contract import Append
from accord.store.engines.etcd.requests import encoded
from accord.store.open import open_store

XADD = "a bare XADD"
PUT = "a bare put"
APPEND = "an append"

INBOX = "mail/bob"

_BODY = b"x" * 300
_TIMEOUT_S = 60.0


def _open_xadd(url: str, name: str) -> Callable[[int], None]:
    """By the client that accord's connections are made of."""
    where = urlsplit(url)
    client = redis.Redis(host=str(where.hostname), port=where.port or 6379)
    client.ping()

    def add(n: int) -> None:
        client.xadd("bare", {"body": _BODY})

    return add


def _open_put(url: str, name: str) -> Callable[[int], None]:
    """By the client that accord's engine asks."""
    store: Any = open_store(url)
    store.now()
    value = encoded(_BODY)

    def put(n: int) -> None:
        store.gateway.ask("kv/put", {"key": encoded(f"bare/{name}/{n}".encode()), "value": value}, _TIMEOUT_S, True)

    return put


def _open_append(url: str, name: str) -> Callable[[int], None]:
    """What says whose it is, and which of these."""
    store = open_store(url)
    store.now()

    def append(n: int) -> None:
        store.commit((), [Append(INBOX, f"{name} {n}".encode())], timeout_s=_TIMEOUT_S)

    return append


WAYS = {XADD: _open_xadd, PUT: _open_put, APPEND: _open_append}
