"""A store's URL, such as `sqlite:PATH`, to the store. The engine's name is its file's name."""

import os
import sys

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.protocols import Store

_PREFIX = "accord.store.engines."


def open_store(url: str) -> "Store":
    """Open the store at `url`, ENGINE:PLACE, and make it if there is none."""
    engine, colon, place = url.partition(":")
    if not colon or not engine.isidentifier() or engine.startswith("_"):
        raise errors.UnknownEngine(url=url, engines=", ".join(engines()))
    try:
        __import__(_PREFIX + engine)
    except ModuleNotFoundError as missing:
        if missing.name == _PREFIX + engine:
            raise errors.UnknownEngine(url=url, engines=", ".join(engines())) from None
        raise errors.DriverMissing(engine=engine, package=missing.name) from None
    store: Store = sys.modules[_PREFIX + engine].open_store(place)
    return store


def engines() -> list[str]:
    """The engines there are."""
    from accord.store.engines import __path__ as folders

    found = {name.partition(".")[0] for folder in folders for name in os.listdir(folder)}
    return sorted(name for name in found if not name.startswith("_"))
