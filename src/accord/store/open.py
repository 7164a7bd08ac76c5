"""A store's URL, such as `sqlite:PATH`, to the store. The engine's name is its file's name."""

import os
import sys

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from accord.store.protocols import Store

ALIASES = {"file": "files"}

_PREFIX = "accord.store.engines."

# What pip calls them, where it is not the name of the module.
_PACKAGES = {"google": "google-auth", "grpc": "grpcio"}


def open_store(url: str) -> "Store":
    """Open the store at `url`, ENGINE:PLACE, and make it if there is none."""
    store: Store = _module(url).open_store(url.partition(":")[2])
    return store


def is_there(url: str) -> bool:
    """Whether a store is there, which `open_store` would not have to make; an engine that makes nothing says yes."""
    found: Callable[[str], bool] | None = getattr(_module(url), "is_there", None)
    return found is None or found(url.partition(":")[2])


def can_be_beside(url: str) -> bool:
    """Whether an engine has places beside each other, which can be taken away again."""
    return hasattr(_module(url), "beside")


def beside(url: str, name: str) -> str:
    """Another place on the same server, which whoever may use this one may use too, as far as that can be."""
    engine, _, place = url.partition(":")
    return f"{engine}:{_module(url).beside(place, name)}"


def remove(url: str) -> None:
    """Take away the store at `url` with all that is in it, which nobody uses any more."""
    _module(url).remove(url.partition(":")[2])


def _module(url: str) -> "Any":
    engine, colon, _ = url.partition(":")
    engine = ALIASES.get(engine, engine)
    if not colon or not engine.isidentifier() or engine.startswith("_"):
        raise unknown(url)
    try:
        __import__(_PREFIX + engine)
    except ModuleNotFoundError as missing:
        if missing.name == _PREFIX + engine:
            raise unknown(url) from None
        raise errors.DriverMissing(engine=engine, package=_package(missing.name or "")) from None
    return sys.modules[_PREFIX + engine]


def engines() -> list[str]:
    """The engines there are."""
    from accord.store.engines import __path__ as folders

    found = {name.partition(".")[0] for folder in folders for name in os.listdir(folder)}
    return sorted(name for name in found if not name.startswith("_"))


def unknown(url: str, where: str = "", there: "Sequence[str]" = ()) -> errors.AccordError:
    """That a URL, or a mere name somewhere, names none of the engines there are; and which ones are much like it."""
    from difflib import get_close_matches

    from accord.store.remote.login import shown

    there = there or engines()
    close = get_close_matches(url.partition(":")[0].lower(), there, cutoff=0.5)
    near = f"; perhaps {' or '.join(close)} is meant" if close else ""
    return errors.UnknownEngine(url=shown(url), where=where, near=near, engines=", ".join(there))


def _package(module: str) -> str:
    top = module.partition(".")[0]
    return _PACKAGES.get(top, top)
