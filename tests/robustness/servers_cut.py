"""Servers whose machine loses its power: what they wrote and did not flush is taken away again.

`strace` notes what is written to a server's log, and which of that was flushed. The log is all that is cut: what else a
server writes (etcd's tree) stays, as it would on a machine that is lucky.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.need import lack, need

_CALL = re.compile(r"(\d+) +(write|fdatasync|fsync)\(\d+<([^>]*)>(.*)", re.DOTALL)
_RESUMED = re.compile(r"(\d+) +<\.\.\. (write|fdatasync|fsync) resumed>(.*)", re.DOTALL)
_ANSWER = re.compile(r"= (\d+)$")
_ATTACHED_WITHIN_S = 20


class Log:
    """How far one file was written and how far it was flushed, since somebody looked."""

    def __init__(self, pid: int, suffix: str, folder: Path, *more: str) -> None:
        self._suffix = suffix
        self._lines = folder / "strace"
        self.path, self._start = _open_file(pid, suffix)
        options = ["-f", "-q", "-y", "-s", "0", "-e", "trace=write,fdatasync,fsync", "-o", str(self._lines), *more]
        self._strace = subprocess.Popen([need("strace"), *options, "-p", str(pid)], stderr=subprocess.PIPE)
        self._wait_until_attached(pid)

    def _wait_until_attached(self, pid: int) -> None:
        while f"TracerPid:\t{self._strace.pid}" not in Path(f"/proc/{pid}/status").read_text():
            if self._strace.poll() is not None:
                assert self._strace.stderr is not None
                lack(f"a process could not be traced ({self._strace.stderr.read().decode().strip()})")

    def cut(self) -> int:
        """After the server was killed: take away what was not flushed; how many bytes that are."""
        self._strace.wait(_ATTACHED_WITHIN_S)
        written, flushed = far(self._lines.read_text(errors="replace").splitlines(), self._suffix)
        with open(self.path, "r+b") as file:
            file.seek(0, 2)
            is_longer = file.tell() > self._start + written  # it was made longer before anything was in it
            file.seek(self._start + flushed)
            if is_longer:
                file.write(bytes(written - flushed))
            else:
                file.truncate()
        return written - flushed


def far(lines: Sequence[str], suffix: str) -> tuple[int, int]:
    """How many bytes were written to such a file, and how many of these were flushed."""
    written = flushed = 0
    begun: dict[str, tuple[str, int]] = {}  # what a thread waits for, and what was written before
    for line in lines:
        if call := _CALL.match(line):
            thread, name, path, rest = call.groups()
            if not path.endswith(suffix):
                continue
            begun[thread] = (name, written)
        elif resumed := _RESUMED.match(line):
            thread, name, rest = resumed.groups()
            if begun.get(thread, ("", 0))[0] != name:
                continue
        else:
            continue
        answer = _ANSWER.search(rest)
        if answer is None:
            continue  # it goes on, or failed
        name, before = begun.pop(thread)
        if name == "write":
            written += int(answer[1])
        else:
            flushed = max(flushed, before)
    return written, flushed


def _open_file(pid: int, suffix: str) -> tuple[Path, int]:
    """The one that a process has open, and how far it has come in it."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        path = link.readlink()
        if str(path).endswith(suffix):
            facts = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
            return path, int(facts.split()[1])
    raise AssertionError(f"process {pid} has no file open that ends with {suffix}")
