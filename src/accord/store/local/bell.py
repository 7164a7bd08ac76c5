"""How a commit wakes those who watch, in whatever process: the writer writes its revision into a file.

The file is written after the commit is durable, so what it names cannot be lost any more. Watchers wait for
it to change (inotify, kqueue, else a look each 50 ms) and look once a second anyway. Waiting on a database's
own files instead wakes too early and misses the last commit.
"""

import _thread
import os
import select

from accord import platform
from accord.store.local import folder

LOOK_ANYWAY_S = 1.0
LOOK_OFTEN_S = 0.05

_FORMAT = b"%-16s %016d\n"
_BYTES = 34


class Bell:
    """The file, for ringing and reading."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = folder.open_private(path)

    def ring(self, epoch: str, revision: int) -> None:
        """Say that everything up to `revision` is durable; a later ring of another writer stays."""
        if self.heard(epoch) < revision:
            try:
                os.pwrite(self._fd, _FORMAT % (epoch.encode(), revision), 0)
            except OSError:
                pass  # the commit stands; watchers find it at their next look

    def heard(self, epoch: str) -> int:
        """The last revision rung in this epoch; 0: none."""
        found, revision = self.read()
        return revision if found == epoch else 0

    def read(self) -> tuple[str, int]:
        """The epoch and revision of the last ring."""
        words = os.pread(self._fd, _BYTES, 0).split()
        return (words[0].decode(), int(words[1])) if len(words) == 2 else ("", 0)

    def close(self) -> None:
        os.close(self._fd)


class Ear:
    """Waits for the bell, in one thread; `close` may come from another."""

    def __init__(self, bell: Bell) -> None:
        self._wake_out, self._wake_in = os.pipe()
        self._lock = _thread.allocate_lock()  # guards the descriptors against use after close
        self._closed = False
        self._poll = select.poll()
        self._poll.register(self._wake_out, select.POLLIN)
        self._source = platform.watch_file(bell.path)
        if self._source is not None:
            self._poll.register(self._source.fileno(), select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Return at a ring or after `timeout_s`, and not long after a second; whether it was a ring."""
        longest = LOOK_ANYWAY_S if self._source is not None else LOOK_OFTEN_S
        ready = self._poll.poll(max(0.0, min(timeout_s, longest)) * 1000)
        if self._source is not None and any(fd == self._source.fileno() for fd, _ in ready):
            self._source.drain()
            return True
        return False

    def wake(self) -> None:
        """End a wait in another thread."""
        with self._lock:
            if not self._closed:
                os.write(self._wake_in, b"!")

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._source is not None:
                    self._source.close()
                os.close(self._wake_in)
                os.close(self._wake_out)
