"""Waiting for files to become readable, however many the tests of this process have open (`select` ends at 1,024)."""

import select
from collections.abc import Sequence
from typing import Protocol, TypeVar


class HasFileno(Protocol):
    def fileno(self) -> int: ...


File = TypeVar("File", bound=HasFileno | int)


def readable(files: Sequence[File], timeout_s: float | None = None) -> list[File]:
    """Those that can be read, once there is one or the time is over."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
    return [file for file in files if (file if isinstance(file, int) else file.fileno()) in ready]
