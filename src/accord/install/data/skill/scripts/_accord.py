"""Written by accord install. Finds the command `accord`, and becomes it."""

import importlib.util
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
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


def _found() -> list[str]:
    if INSTALLED and os.access(INSTALLED[0], os.X_OK):
        return INSTALLED
    path = shutil.which("accord")
    if path:
        return [path]
    if importlib.util.find_spec("accord"):
        return [sys.executable, "-m", "accord"]
    sys.exit(
        "accord is not on the PATH, and this Python has no module accord. Install it, or run: accord install skill"
    )
