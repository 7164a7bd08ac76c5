"""The engines that every test of this folder runs on."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from accord.store.open import open_store
from accord.testing.conformance.tools import Opener


@dataclass(frozen=True)
class Engine:
    name: str
    exclusive: bool = True  # it has a write lock
    shared: bool = True  # several processes can open one place

    def at(self, folder: Path) -> Opener:
        return partial(open_store, f"{self.name}:{folder / 'store'}")


ENGINES = [
    Engine("memory", exclusive=False, shared=False),
    Engine("sqlite"),
    Engine("files"),
]
