"""Written by accord install. Finds the command `accord`, and becomes it."""

import importlib.util
import json
import os
import shutil
import sys

INSTALLED: list[str] = []  # the command that installed this, and its options


def become(*words: str) -> None:
    """Run `accord --json WORDS` in place of this script."""
    command = [*_found(), "--json", *words]
    try:
        os.execv(command[0], command)  # noqa: S606 - a shell would only be in the way
    except OSError as error:
        raise _failure(
            f"{command[0]} cannot be run: {error.strerror}. Nothing was done. Run: accord install skill"
        ) from None


def _found() -> list[str]:
    if INSTALLED and os.access(INSTALLED[0], os.X_OK):
        return INSTALLED
    path = shutil.which("accord")
    if path:
        return [path]
    if importlib.util.find_spec("accord"):
        return [sys.executable, "-m", "accord"]
    raise _failure(
        "accord is not on the PATH, and this Python has no module accord. Nothing was done. Put its folder on the "
        "PATH, or have a person run, where accord is: accord install skill"
    )


def _failure(text: str) -> SystemExit:
    """As accord itself says that a command was not found."""
    shown = {"status": "error", "error_code": "COMMAND_NOT_FOUND", "error_message": text, "details": {}}
    print(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
    return SystemExit(127)
