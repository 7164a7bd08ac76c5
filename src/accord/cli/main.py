"""Where the command `accord` starts. It imports next to nothing: most commands are over in milliseconds."""

import _collections_abc
import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum
import gc
import os
import sys

from accord.cli.io import LocalIo
from accord.cli.run import run


def main() -> None:
    gc.disable()  # a command ends before collecting would gain anything
    _import_driver()
    # The script let Ctrl-C end the imports without a word; from here on it is reported.
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    # Without closing the store, which would cost more than the command did; everything is durable by now.
    os._exit(run(sys.argv[1:], LocalIo()))


def _import_driver() -> None:
    """Import apsw without `collections`, of which it wants only the abstract classes; it takes longer than a send.

    Whoever imports `collections` afterwards gets the real one.
    """
    if "collections" in sys.modules:
        return
    sys.modules["collections"] = sys.modules["collections.abc"] = _collections_abc
    import apsw  # noqa: F401

    del sys.modules["collections"], sys.modules["collections.abc"]
