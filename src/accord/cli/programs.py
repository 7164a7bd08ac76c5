"""Programs that get what comes on their standard input, where nothing in it can be taken for a command."""

import shlex
import shutil
import subprocess

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def program(line: "Line", words: "dict[str, Any]") -> list[str]:
    """The words of --exec; one that is not there is better known now than when the first message comes."""
    if "exec" not in words:
        return []
    try:
        command = shlex.split(words["exec"])
    except ValueError as error:
        raise line.words.wrong(f"--exec cannot be read ({error})") from None
    if not command:
        raise line.words.wrong("--exec names no program")
    if shutil.which(command[0]) is None:
        raise line.words.wrong(f"--exec names {command[0][:100]!r}, which is no program that can be run")
    return command


def feed(command: list[str], data: bytes) -> int:
    """Run it with this; its exit code."""
    try:
        return subprocess.run(command, input=data, check=False).returncode
    except OSError as error:
        raise errors.FileUnreadable(path=command[0], reason=error.strerror) from None
