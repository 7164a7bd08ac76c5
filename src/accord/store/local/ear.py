"""Waiting for the bell. Apart from it, since those who only write need not load this."""

import _thread
import os
import select

from accord import platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.local.bell import Bell

LOOK_ANYWAY_S = 1.0
LOOK_OFTEN_S = 0.05


class Ear:
    """Waits for the bell, in one thread; `close` may come from another."""

    def __init__(self, bell: "Bell") -> None:
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
