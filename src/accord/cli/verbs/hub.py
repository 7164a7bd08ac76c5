"""hub start, hub stop, hub restart, hub status, hub logs."""

import os
import sys

from accord import errors
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from accord.cli.run import Line

NOT_RUNNING = 3  # what `hub status` ends with when there is none


def start(line: "Line", words: "dict[str, Any]") -> None:
    if words.pop("foreground", False):
        _become(line, words)
    _take_port(line, words)
    result = line.call("hub.start", words)
    line.answer(result, lambda: f"{'started' if result['started'] else 'runs already'}: {_where(result)}\n")


def stop(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("hub.stop", words)
    line.answer(result, lambda: "stopped\n" if result["stopped"] else "no hub was running\n")


def restart(line: "Line", words: "dict[str, Any]") -> None:
    _take_port(line, words)
    result = line.call("hub.restart", words)
    line.answer(result, lambda: f"started: {_where(result)}\n")


def status(line: "Line", words: "dict[str, Any]") -> int:
    result = line.call("hub.status", words)
    port = line.words.globals.get("--hub-port")
    if port:
        from accord.services.hub import check_port

        check_port(result, _number(line, port))
    line.answer(result, lambda: f"running: {_where(result)}\n" if result["running"] else "no hub runs\n")
    return 0 if result["running"] else NOT_RUNNING


def logs(line: "Line", words: "dict[str, Any]") -> None:
    from accord.cli.run import safe
    from accord.services.hub import HubFiles

    path = HubFiles(line.context.home.path).log
    for text in _lines(path, bool(words.get("follow"))):
        line.io.out(safe(text))


VERBS = {
    "hub start": Verb(
        start,
        "hub.start",
        extra={"foreground": "Flag"},
        notes={"foreground": "stay in this terminal, and end with it"},
    ),
    "hub stop": Verb(stop, "hub.stop"),
    "hub restart": Verb(restart, "hub.restart"),
    "hub status": Verb(status, "hub.status"),
    "hub logs": Verb(
        logs,
        extra={"follow": "Flag"},
        notes={"follow": "go on with what is written from now on"},
        help="Print the hub's log, a JSON object on each line.",
    ),
}


def _take_port(line: "Line", words: "dict[str, Any]") -> None:
    """--hub-port means the same here as --port."""
    port = line.words.globals.get("--hub-port")
    if port and words.setdefault("port", port) != port:
        raise line.words.wrong("--port and --hub-port differ")


def _number(line: "Line", port: str) -> int:
    if not port.isascii() or not port.isdigit():
        raise line.words.wrong(f"--hub-port {port[:20]!r} is no port")
    return int(port)


def _where(hub: "dict[str, Any]") -> str:
    return f"process {hub['pid']}, port {hub['port']}, http {hub['http_port']}, {hub['socket']}"


def _become(line: "Line", words: "dict[str, Any]") -> None:
    """Be the hub from here on."""
    _take_port(line, words)
    options = [f"--{name.replace('_', '-')}={_number(line, str(port))}" for name, port in words.items()]
    line.context.home.make()
    os.execv(sys.executable, [sys.executable, "-m", "accord.daemon", line.context.home.path, *options])  # noqa: S606


def _lines(path: str, follow: bool) -> "Iterator[str]":
    try:
        file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115
    except FileNotFoundError:
        return
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=error.strerror) from None
    with file:
        while True:
            while text := file.readline():
                yield text
            if not follow:
                return
            file = _wait_for_more(path, file)


def _wait_for_more(path: str, file: "Any") -> "Any":
    """The file, or the one that took its place when it was put aside."""
    import time

    time.sleep(0.2)
    try:
        if os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
            return open(path, encoding="utf-8", errors="replace")
    except OSError:
        pass  # between the two
    return file
