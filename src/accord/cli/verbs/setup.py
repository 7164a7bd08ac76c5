"""init, config, trust, doctor, demo."""

import os
import sys

from accord import errors
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
    result = line.call("config.show", words)
    rows = [(found["name"], found["value"], found["source"]) for found in result["settings"]]
    line.answer(
        result,
        lambda: f"home  {one_line(result['home'])}\n\n" + table(line, ("setting", "value", "from"), rows),
        styled=True,
    )


def trust(line: "Line", words: "dict[str, Any]") -> None:
    if "path" in words:
        words["path"] = os.path.join(line.io.cwd, words["path"])
    result = line.call("config.trust", words)
    line.answer(result, lambda: f"{result['path']} is trusted as it is now\n")


def doctor(line: "Line", words: "dict[str, Any]") -> int:
    result = line.call("home.doctor", words)
    rows = [("ok" if found["ok"] else "WRONG", found["check"], found["found"]) for found in result["checks"]]
    line.answer(result, lambda: table(line, ("", "what", "found"), rows), styled=True)
    return 0 if result["healthy"] else 1


def demo(line: "Line", words: "dict[str, Any]") -> None:
    from accord.demo import main

    sys.argv[1:] = []
    try:
        main()
        sys.stdout.flush()  # the command ends without
    except BrokenPipeError as error:
        raise errors.OutputClosed(reason=error.strerror) from None


VERBS = {
    "init": Verb(init, "home.init"),
    "doctor": Verb(doctor, "home.doctor"),
    "demo": Verb(demo, help="Show agents at work, in a home of their own that is removed afterwards."),
    "config": Verb(config, "config.show"),
    "trust": Verb(trust, "config.trust", positional=("path",)),
}
