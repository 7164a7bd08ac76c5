"""Where a workload has its store: in a temporary folder, or at a new place on a server, which is removed after."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from accord import errors
from accord.store import open as stores
from accord.store.remote import login

LOCAL = ("sqlite", "files", "memory")


@dataclass(frozen=True)
class Engine:
    """One to be measured."""

    shown: str  # a name, or the URL of a place elsewhere, without its password
    password: str = ""

    @property
    def is_local(self) -> bool:
        return self.shown in LOCAL


@contextmanager
def fresh(engine: Engine, where: str | None) -> Iterator[tuple[str, str]]:
    """A folder for workers' homes, and the URL of a store that nobody else has, without its password."""
    with tempfile.TemporaryDirectory(prefix="accord-bench-", dir=where) as folder:
        if engine.is_local:
            yield folder, f"{engine.shown}:{folder}/store"
            return
        url = stores.beside(engine.shown, f"bench-{os.urandom(6).hex()}")
        whole = login.join(url, engine.password)
        _make(whole)  # what is wrong with the server is told in its own words, and not in a worker's
        try:
            yield folder, url
        except errors.AccordError as error:
            _remove(whole, url, f"{str(error).rstrip('.')}; and ")
            raise
        except BaseException:
            with suppress(errors.AccordError):
                stores.remove(whole)
            raise
        _remove(whole, url, "")


def _remove(whole: str, url: str, why: str) -> None:
    try:
        stores.remove(whole)
    except errors.AccordError as error:
        raise errors.BenchFailed(reason=f"{why}{url} could not be removed: {str(error).rstrip('.')}") from error


def _make(url: str) -> None:
    store = stores.open_store(url)
    try:
        store.now()
    finally:
        store.close()
