"""A lock for file systems on which `flock` does not work: a folder that only one can move into place.

The folder holds a file that says who owns it: host, boot, pid, when that process was started, and a token of this
one taking. A lock whose owner is gone is broken only on the host and boot that made it, and for one token by one
process: by the first to make a file named after the token. Any other is left to a person.
"""

import _thread
import os
import time

from accord import errors, platform
from accord.store.local import folder

_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.02


class Claim:
    """The same three calls as `Gate`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._inside = _thread.allocate_lock()  # held with the claim by one thread of this process
        pid = os.getpid()
        self._me = f"{_host()} {platform.boot_id()} {pid} {platform.process_started(pid)}"
        self._mine = f"{path}.{pid}.{os.urandom(4).hex()}"  # the folder while it is not in place
        self._token = ""

    def acquire(self, timeout_s: float) -> bool:
        """Go in, alone; whether others were inside meanwhile."""
        deadline = time.monotonic() + timeout_s
        if not self._inside.acquire(True, max(0.0, timeout_s)):
            raise self._timeout(timeout_s)
        try:
            return self._wait(deadline, timeout_s)
        except BaseException:
            self._inside.release()
            raise

    def release(self) -> None:
        # Should a person have broken the lock, it is another's now.
        if self._owner().endswith(self._token):
            os.rename(self._path, self._mine)
        self._inside.release()

    def close(self) -> None:
        try:
            os.unlink(f"{self._mine}/owner")
            os.rmdir(self._mine)
        except FileNotFoundError:
            pass

    def _wait(self, deadline: float, timeout_s: float) -> bool:
        self._prepare()
        pause_s = _FIRST_PAUSE_S
        waited = False
        while not self._try():
            waited = True
            self._break_stale()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self._timeout(timeout_s)
            time.sleep(min(left_s, pause_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return waited

    def _prepare(self) -> None:
        """The folder, with its owner in it, beside the place it is to be moved to."""
        self._token = os.urandom(8).hex()
        try:
            folder.make_folder(self._mine)
            fd = folder.open_private(f"{self._mine}/owner", os.O_RDWR | os.O_CREAT)
            try:
                os.ftruncate(fd, 0)
                os.write(fd, f"{self._me} {self._token}".encode())
            finally:
                os.close(fd)
        except OSError as error:
            raise folder.refusal(error, self._path) from None

    def _try(self) -> bool:
        try:
            os.rename(self._mine, self._path)  # fails on a folder that is not empty
        except (FileExistsError, OSError):
            pass
        # On a network the answer may have been lost and the deed done.
        return self._owner().endswith(self._token)

    def _owner(self) -> str:
        try:
            with open(f"{self._path}/owner", encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def _break_stale(self) -> None:
        owner = self._owner()
        words = owner.split(" ")
        if len(words) != 5:
            return
        host, boot, pid, started, token = words
        if (host, boot) != (_host(), platform.boot_id()) or platform.process_started(int(pid)) == started:
            return
        if self._is_first_to_break(token):
            os.rename(self._path, f"{self._mine}.stale")
            os.unlink(f"{self._mine}.stale/owner")
            os.rmdir(f"{self._mine}.stale")

    def _is_first_to_break(self, token: str) -> bool:
        """One process alone may break what has this token; should it die first, the next one after it."""
        for turn in range(100):
            path = f"{self._path}.broken.{token}.{turn}"
            try:
                fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                with open(path, encoding="ascii") as file:
                    pid, _, started = file.read().partition(" ")
                if not pid or platform.process_started(int(pid)) == started:
                    return False
                continue
            os.fchmod(fd, 0o600)
            os.write(fd, f"{os.getpid()} {platform.process_started(os.getpid())}".encode())
            os.close(fd)
            return self._owner().endswith(token)
        return False

    def _timeout(self, timeout_s: float) -> errors.LockTimeout:
        words = self._owner().split(" ")
        host, pid = (words[0], words[2]) if len(words) == 5 else ("", "0")
        holder = f"process {pid} on {host}" if host else "another process"
        return errors.LockTimeout(path=self._path, timeout_seconds=timeout_s, holder=holder, pid=int(pid))


def _host() -> str:
    return os.uname().nodename.replace(" ", "-") or "localhost"
