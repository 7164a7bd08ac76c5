"""Where the command `accord` starts. It imports next to nothing: most commands are over in milliseconds."""

import _collections_abc
import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum
import gc
import os
import sys

from accord.cli import forward
from accord.cli.io import LocalIo

_HOOK_S = {"start": 8.0, "stop": 58.0}  # less than the ten and sixty seconds that programs are told to wait


def main() -> None:
    gc.disable()  # a command ends before collecting would gain anything
    argv, io = sys.argv[1:], LocalIo()
    if argv[:1] == ["hook"]:
        _end_within(_HOOK_S.get("".join(argv[1:2]), 2.0))
    connection = forward.reach(argv, io)
    code = None
    if connection is not None:
        _report_interrupts(True)
        code = forward.run(connection, argv, io)
        _report_interrupts(False)
    if code is None:
        code = _run_here(argv, io)
    # Without closing the store, which would cost more than the command did; everything is durable by now.
    os._exit(code)


def _end_within(seconds: float) -> None:
    """An agent waits for its hooks: one that takes too long ends, as if it had nothing to say."""
    _signal.signal(_signal.SIGALRM, lambda *_: os._exit(0))
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _run_here(argv: list[str], io: LocalIo) -> int:
    _import_driver()
    from accord.cli.run import run

    _report_interrupts(True)
    return run(argv, io)


def _report_interrupts(on: bool) -> None:
    """Report Ctrl-C, or let it end the command without a word, as while modules are imported."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler if on else _signal.SIG_DFL)


def _import_driver() -> None:
    """Import apsw without `collections`, of which it wants only the abstract classes; it takes longer than a send.

    Whoever imports `collections` afterwards gets the real one.
    """
    if "collections" in sys.modules:
        return
    sys.modules["collections"] = sys.modules["collections.abc"] = _collections_abc
    import apsw  # noqa: F401

    del sys.modules["collections"], sys.modules["collections.abc"]
