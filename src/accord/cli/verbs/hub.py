"""hub start, hub stop, hub restart, hub status, hub logs."""

import os
import sys

from accord import errors
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

    from accord.cli.run import Line

NOT_RUNNING = 3  # what `hub status` ends with when there is none
SILENT = 69  # and when there is one that does not answer


def start(line: "Line", words: "dict[str, Any]") -> None:
    if words.pop("foreground", False):
        _become(line, words)
    _take_port(line, words)
    result = line.call("hub.start", words)
    line.answer(result, lambda: f"{'started' if result['started'] else 'runs already'}: {where(result)}\n")


def stop(line: "Line", words: "dict[str, Any]") -> None:
    try:
        result = line.call("hub.stop", words)
    except errors.StorageFull:  # for the operator's token, which is not there yet
        if line.context.hub.status()["running"]:
            raise
        result = {"stopped": False}
    line.answer(result, lambda: "stopped\n" if result["stopped"] else "no hub was running\n")


def restart(line: "Line", words: "dict[str, Any]") -> None:
    _take_port(line, words)
    result = line.call("hub.restart", words)
    line.answer(result, lambda: f"started: {where(result)}\n")


def status(line: "Line", words: "dict[str, Any]") -> int:
    result = line.call("hub.status", words)
    line.answer(result, lambda: _state(result))
    if not result["running"]:
        return NOT_RUNNING
    return SILENT if _is_silent(result) else 0


def logs(line: "Line", words: "dict[str, Any]") -> int:
    from accord.cli.run import safe
    from accord.services.hub import HubFiles

    path = HubFiles(line.context.home.path).log
    follow = bool(words.get("follow"))
    try:
        for text in _lines(path, follow):
            line.io.out(safe(text))
    except KeyboardInterrupt:
        if not follow:
            raise
        return errors.Interrupted.exit  # without a word: there is no other way to end it
    return 0


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
    port = line.hub_port
    if port and str(words.setdefault("port", port)) != str(port):
        raise line.words.wrong("--port and --hub-port differ")


def where(hub: "dict[str, Any]") -> str:
    return f"process {hub['pid']}, port {hub['port']}, http {hub['http_port']}, {hub['socket']}"


def _state(hub: "dict[str, Any]") -> str:
    if not hub["running"]:
        return "no hub runs\n"
    if not hub["pid"]:
        return "just starting\n"
    if _is_silent(hub):
        return f"does not answer (end it with: accord hub stop): {where(hub)}\n"
    return f"{'stopping' if hub.get('stopping') else 'running'}: {where(hub)}\n"


def _is_silent(hub: "dict[str, Any]") -> bool:
    """Whether it should answer, and does not."""
    return bool(hub["pid"]) and not hub["answers"] and not hub.get("stopping")


def _become(line: "Line", words: "dict[str, Any]") -> None:
    """Be the hub from here on."""
    from accord.operations import find, read

    _take_port(line, words)
    try:
        ports = read("hub.start", find("hub.start"), words)
    except errors.Usage as error:
        raise line.words.wrong(str(error.details["reason"])) from None
    options = [f"--{name.replace('_', '-')}={port}" for name, port in ports.items()]
    options += ["--json=1"] if line.json else []
    line.context.home.make()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "accord.daemon", line.context.home.path, *options])  # noqa: S606


def _lines(path: str, follow: bool) -> "Iterator[str]":
    while (file := _opened(path)) is None:
        if not follow:
            return
        _pause()  # until there is a first hub
    with file:
        while True:
            while text := file.readline():
                yield text
            if not follow:
                return
            file = _wait_for_more(path, file)


def _opened(path: str) -> "TextIO | None":
    try:
        return open(path, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=error.strerror) from None


def _pause() -> None:
    import time

    time.sleep(0.2)


def _wait_for_more(path: str, file: "Any") -> "Any":
    """The file, or the one that took its place when it was put aside."""
    _pause()
    try:
        if os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
            return open(path, encoding="utf-8", errors="replace")
    except OSError:
        pass  # between the two
    return file
