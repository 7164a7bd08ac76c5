"""The engines that every test of this folder runs on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from accord.store.open import engines, open_store
from accord.testing.conformance.tools import Opener


@dataclass(frozen=True)
class Engine:
    name: str
    exclusive: bool = True  # it has a write lock
    shared: bool = True  # several processes can open one place
    own_clock: bool = True  # nobody can set it
    long_history: bool = True  # 100,000 commits take it seconds
    server: bool = False  # it is a server's, which tests.servers starts

    def url(self, folder: Path) -> str:
        """An empty place, another one for each folder."""
        if not self.server:
            return f"{self.name}:{folder / 'store'}"
        prefix = blake2b(bytes(folder), digest_size=8).hexdigest()
        started: Callable[[], Any] = getattr(import_module(f"tests.servers.{self.name}"), f"{self.name}_server")
        url: str = started().url(prefix)
        return url

    def at(self, folder: Path) -> Opener:
        return partial(open_store, self.url(folder))


ALL = [
    Engine("memory", exclusive=False, shared=False),
    Engine("sqlite"),
    Engine("files"),
    Engine("redis", exclusive=False, long_history=False, server=True),
    Engine("etcd", exclusive=False, own_clock=False, long_history=False, server=True),
    Engine("firebase", exclusive=False, long_history=False, server=True),
]
ENGINES = [engine for engine in ALL if engine.name in engines()]
