"""Where the command `accord` starts. It imports next to nothing: most commands are over in milliseconds."""

import _collections_abc
import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum
import _thread
import gc
import os
import sys

from accord.cli import forward
from accord.cli.io import LocalIo

_HOOK_S = {"start": 8.0}  # others two; less than the ten seconds that programs are told to wait

# What is said where not even the errors can be loaded; a test compares it with them.
_INTERNAL = (70, "INTERNAL", "accord failed in a way it does not know. Run again with -v and report what it shows.")
_INTERRUPTED = (130, "INTERRUPTED", "Interrupted. Run it again if that was not meant.")
_TOO_MANY_FILES = (
    71,
    "TOO_MANY_FILES",
    "No more files can be opened. Let accord open more (ulimit -n), or end what has many open, and try again.",
)
_TOO_MANY = (23, 24)  # ENFILE, EMFILE


def main() -> None:
    gc.disable()  # a command ends before collecting would gain anything
    argv = sys.argv[1:]
    is_hook = argv[:1] == ["hook"]
    try:
        if is_hook:
            _end_within(_HOOK_S.get("".join(argv[1:2]), 2.0))
        code = _command(argv, LocalIo())
    except BaseException as failure:
        is_quiet = is_hook and not {"-v", "--verbose"}.intersection(argv)
        code = 0 if is_quiet else _last_words(failure)
    if is_hook:
        code = min(code, 1)  # with a 2 a hook would keep its agent from going on
    # Without closing the store, which would cost more than the command did; everything is durable by now.
    os._exit(code)


def _command(argv: list[str], io: LocalIo) -> int:
    connection = forward.reach(argv, io)
    code = None
    if connection is not None:
        _report_interrupts(True)
        code = forward.run(connection, argv, io)
        _report_interrupts(False)
    return _run_here(argv, io) if code is None else code


def _last_words(failure: BaseException) -> int:
    """Say what went wrong, where saying it as usual failed, too."""
    exit, code, text = _INTERRUPTED if isinstance(failure, KeyboardInterrupt) else _INTERNAL
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _TOO_MANY:
            exit, code, text = _TOO_MANY_FILES
        cause = cause.__context__
    fd, said = 2, f"accord: {text} [{code}]\n"
    if "--json" in sys.argv:
        fd, said = 1, f'{{"status":"error","error_code":"{code}","error_message":"{text}","details":{{}}}}\n'
    try:
        os.write(fd, said.encode())
    except OSError:
        pass  # there is nobody left to tell
    return exit


def _end_within(seconds: float) -> None:
    """An agent waits for its hooks: one that takes too long ends, as if it had nothing to say."""
    _signal.signal(_signal.SIGALRM, lambda *_: os._exit(0))
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _end_even_in_c() -> None:
    """The same by a thread: the handler would run only once SQLite, or what else is not Python, has stopped waiting."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGALRM,))
    _thread.start_new_thread(_end_when_told, ())


def _end_when_told() -> None:
    _signal.sigwait((_signal.SIGALRM,))
    os._exit(0)


def _run_here(argv: list[str], io: LocalIo) -> int:
    if argv[:1] == ["hook"]:
        _end_even_in_c()
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
