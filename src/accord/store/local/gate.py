"""A fair lock between processes with a deadline: `flock`, which the kernel frees when its holder dies.

Each gate has one descriptor, behind a lock of the process: two threads on one descriptor would both hold a
flock. A child that is forked while the gate is held shares the flock too, and could give it back for its parent: in
it `release` does nothing. The file holds the pid of the last holder, for the message of those who waited in vain, and
a mark.
"""

import _thread
import fcntl
import os
import time

from accord import errors
from accord.store.local import folder

_PID_BYTES = 16
_MARK_AT = _PID_BYTES


class Gate:
    def __init__(self, path: str) -> None:
        self._path = path
        self._inside = _thread.allocate_lock()  # held with the gate by one thread of this process
        self._fd = folder.open_private(path)
        self._waiter: _Waiter | None = None
        self.was_marked = False  # when the one inside came in
        self._owes_mark = False  # it could not be written: at least this process knows
        self._pid = os.getpid()
        self._name = b"%-*d" % (_PID_BYTES, self._pid)

    def fileno(self) -> int:
        return self._fd

    def try_acquire(self) -> bool:
        """Go in, alone, if that needs no waiting."""
        if not self._inside.acquire(False):
            return False
        try:
            if self._try():
                self._sign()
                return True
        except BaseException:
            self.release()
            raise
        self._inside.release()
        return False

    def acquire(self, timeout_s: float) -> None:
        """Go in, alone."""
        deadline = time.monotonic() + timeout_s
        if not self._inside.acquire(True, max(0.0, timeout_s)):
            raise self._timeout(timeout_s)
        try:
            if not self._try():
                self._wait(deadline, timeout_s)
            self._sign()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if os.getpid() != self._pid:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._inside.release()

    def mark(self, on: bool) -> None:
        """Leave a word to the holders after this one, in whatever process, until the machine restarts."""
        self._owes_mark = on
        os.pwrite(self._fd, b"!" if on else b".", _MARK_AT)
        self._owes_mark = False

    def marked(self) -> bool:
        return self._owes_mark or os.pread(self._fd, 1, _MARK_AT) == b"!"

    def close(self) -> None:
        os.close(self._fd)

    def _sign(self) -> None:
        seen = os.pread(self._fd, _PID_BYTES + 1, 0)
        self.was_marked = self._owes_mark or seen[_MARK_AT:] == b"!"
        if seen[:_PID_BYTES] != self._name:
            try:
                os.pwrite(self._fd, self._name, 0)
            except OSError:
                pass  # the name of the holder is a courtesy, and a full disk no reason to fail

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(self, deadline: float, timeout_s: float) -> None:
        # flock knows no deadline: another thread blocks in it, and this one waits for that thread.
        if self._waiter is None:
            self._waiter = _Waiter()
        got = False
        try:
            got = self._waiter.wait(self._fd, deadline - time.monotonic())
        finally:
            if not got:
                # The descriptor goes with that thread, which gives the gate back should it ever get it.
                self._waiter.abandon()
                self._waiter = None
                self._fd = folder.open_private(self._path)
        if not got:
            raise self._timeout(timeout_s)

    def _timeout(self, timeout_s: float) -> "errors.LockTimeout":
        pid = os.pread(self._fd, _PID_BYTES, 0).decode("ascii", "replace").strip()
        holder = f"process {pid}" if pid else "another process"
        return errors.LockTimeout(path=self._path, timeout_seconds=timeout_s, holder=holder, pid=int(pid or 0))


class _Waiter:
    """A thread that blocks in flock. It is kept for the next wait: starting one costs more than a short wait."""

    def __init__(self) -> None:
        self._asked = _thread.allocate_lock()
        self._asked.acquire()
        self._done = _thread.allocate_lock()
        self._done.acquire()
        self._verdict = _thread.allocate_lock()  # guards what follows
        self._got = False
        self._abandoned = False
        self._fd = -1
        _thread.start_new_thread(self._serve, ())

    def wait(self, fd: int, timeout_s: float) -> bool:
        """Whether the lock was got in time; if not, `abandon` the waiter, and `fd` with it."""
        self._fd = fd
        self._got = False
        self._asked.release()
        return self._done.acquire(True, max(0.0, timeout_s))

    def abandon(self) -> None:
        with self._verdict:
            self._abandoned = True
            if self._got:
                os.close(self._fd)  # which gives the lock back
                self._asked.release()

    def _serve(self) -> None:
        while True:
            self._asked.acquire()
            if self._abandoned:
                return
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            with self._verdict:
                if self._abandoned:
                    os.close(self._fd)
                    return
                self._got = True
                self._done.release()
