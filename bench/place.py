"""Where benchmarks keep their stores: in the checkout, since /tmp may be memory, where a flush costs nothing."""

from pathlib import Path
from tempfile import TemporaryDirectory

CHECKOUT = Path(__file__).parent.parent

_CACHE = CHECKOUT / ".cache"
_kept: dict[str, TemporaryDirectory[str]] = {}


def folder() -> TemporaryDirectory[str]:
    """A folder for the length of a `with` block."""
    _CACHE.mkdir(exist_ok=True)
    return TemporaryDirectory(prefix="bench-", dir=_CACHE)


def kept(name: str) -> str:
    """The folder of that name, which is there for the rest of the run."""
    if name not in _kept:
        _kept[name] = folder()
    return _kept[name].name


def remove_kept() -> None:
    while _kept:
        _kept.popitem()[1].cleanup()
