"""init, config, trust, doctor, demo."""

import os
import sys
import time

from accord import errors
from accord.cli.run import as_json
from accord.cli.show import one_line, table
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def init(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("home.init", words)
    line.answer(result, lambda: _ready(result))


def _ready(result: "dict[str, Any]") -> str:
    text = f"{result['home']} is ready"
    if result["group"] is not None:
        text += f", for the group {result['group']}"
    if result["closed_above"] is not None:
        text += f"; its members cannot get there before you let them through {result['closed_above']} (chmod o+x)"
    return f"{one_line(text)}\n"


def config(line: "Line", words: "dict[str, Any]") -> None:
    from accord.errors.table import from_json

    result = line.call("config.show", words)
    rows = [row for found in result["settings"] for row in _of_setting(found)]
    rows += [(found["name"], found["value"], f"{found['source']}, without effect") for found in result["unused"]]
    wrong = [from_json(error) for error in result.pop("wrong")]
    if wrong and line.json:
        wrong[0].details.update(result)
    else:
        text = f"home  {one_line(result['home'])}\n\n" + table(line, ("setting", "value", "from"), rows)
        line.answer(result, lambda: text, styled=True)
    if wrong:
        raise wrong[0]


def _of_setting(found: "dict[str, Any]") -> "list[tuple[str, Any, str]]":
    """One line, and below it one for each part that it was put together from."""
    parts = [(f"  {part['name']}", part["value"], part["source"]) for part in found.get("parts", ())]
    return [(found["name"], found["value"], found["source"]), *parts]


def trust(line: "Line", words: "dict[str, Any]") -> None:
    if "path" in words:
        words["path"] = os.path.join(line.io.cwd, words["path"])
    result = line.call("config.trust", words)
    line.answer(result, lambda: f"{result['path']} is trusted as it is now\n")


def doctor(line: "Line", words: "dict[str, Any]") -> int:
    """Once, or again and again until somebody ends it."""
    every_s = line.value(words, "watch", "Seconds", 0)
    log = os.path.join(line.io.cwd, words["log"]) if "log" in words else ""
    while True:
        code = _look(line, log)
        if not every_s:
            return code
        time.sleep(every_s)


def _look(line: "Line", log: str) -> int:
    result = line.call("home.doctor", {})
    if log:
        _note(log, {"at": line.context.now(), **result})
    rows = [row for found in result["checks"] for row in _rows(found)]
    line.answer(result, lambda: table(line, ("", "what", "found"), rows), styled=True)
    return 0 if result["healthy"] else 1


def _rows(found: "dict[str, Any]") -> "list[tuple[str, str, str]]":
    """What was looked at, and below it each lock with those who wait for it."""
    first = ("ok" if found["ok"] else "WRONG", found["check"], found["found"])
    return [first, *[("", "", _lock(lock)) for lock in found.get("locks", ())]]


def _lock(lock: "dict[str, Any]") -> str:
    held = (
        f"{lock['name']}: {lock['owner']} has held it for {lock['held_s']:g} s"
        if lock["left_s"]
        else f"{lock['name']}: free"
    )
    return ", ".join([held, *[f"{one['owner']} has waited {one['waited_s']:g} s" for one in lock["waiting"]]])


def _note(path: str, record: "dict[str, Any]") -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(fd, as_json(record).encode())
        os.close(fd)
    except OSError as error:
        raise errors.FileUnwritable(path=path, reason=error.strerror) from None


def demo(line: "Line", words: "dict[str, Any]") -> None:
    from contextlib import redirect_stdout
    from io import StringIO

    from accord.demo import main

    try:
        if line.json:
            with redirect_stdout(StringIO()):
                found = main()
            line.answer(found, str)
            return
        main()
        sys.stdout.flush()  # the command ends without
    except BrokenPipeError as error:
        raise errors.OutputClosed(reason=error.strerror) from None


VERBS = {
    "init": Verb(init, "home.init"),
    "doctor": Verb(
        doctor,
        "home.doctor",
        extra={"watch": "Seconds", "log": "Path"},
        notes={"watch": "look again after so many seconds, until it is ended", "log": "add each look to this file"},
    ),
    "demo": Verb(demo, help="Show agents at work, in a home of their own that is removed afterwards."),
    "config": Verb(config, "config.show"),
    "trust": Verb(trust, "config.trust", positional=("path",)),
}
