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
_OWNER_WORDS = 5
_MOST_TURNS = 100


class Claim:
    """Used as a `Gate` is."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._inside = _thread.allocate_lock()  # held with the claim by one thread of this process
        self._pid = pid = os.getpid()
        self._me = f"{_host()} {platform.boot_id()} {pid} {platform.process_started(pid)}"
        self._mine = f"{path}.{pid}.{os.urandom(4).hex()}"  # the folder while it is not in place
        self._token = ""
        self._sweep()

    def acquire(self, timeout_s: float) -> None:
        """Go in, alone."""
        deadline = time.monotonic() + timeout_s
        if not self._inside.acquire(True, max(0.0, timeout_s)):
            raise self._timeout(timeout_s)
        try:
            self._wait(deadline, timeout_s)
        except BaseException:
            self._inside.release()
            raise

    def release(self) -> None:
        if os.getpid() != self._pid:
            return  # a child that was forked inside; the lock is its parent's
        # Should a person have broken the lock, it is another's now.
        if self._owner_has(self._token):
            os.rename(self._path, self._mine)
        self._inside.release()

    def close(self) -> None:
        if os.getpid() == self._pid:
            _remove(self._mine)

    def _wait(self, deadline: float, timeout_s: float) -> None:
        self._prepare()
        pause_s = _FIRST_PAUSE_S
        while not self._try():
            self._break_stale()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self._timeout(timeout_s)
            time.sleep(min(left_s, pause_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

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
        except OSError:
            pass
        # On a network the answer may have been lost and the deed done.
        return self._owner_has(self._token)

    def _break_stale(self) -> None:
        """Remove a lock whose owner is gone, if that can be known and nobody else is about to."""
        owner = _read(f"{self._path}/owner")
        if not _is_gone(owner):
            return
        token = owner.rpartition(" ")[2]
        claim = self._claim_to_break(token)
        if not claim:
            return
        if self._owner_has(token):
            os.rename(self._path, f"{self._mine}.stale")
            _remove(f"{self._mine}.stale")
        folder.unlink_if_there(claim)

    def _claim_to_break(self, token: str) -> str:
        """The file that lets this process alone break what has this token; "" when another has made it.

        Should its maker die before it is done, the next file after it counts.
        """
        for turn in range(_MOST_TURNS):
            path = f"{self._path}.broken.{token}.{turn}"
            try:
                # A link, so that the file has its maker's name in it from the start.
                os.link(f"{self._mine}/owner", path)
            except FileExistsError:
                if not _is_gone(_read(path)):
                    return ""
                continue
            return path
        return ""

    def _owner_has(self, token: str) -> bool:
        return _read(f"{self._path}/owner").rpartition(" ")[2] == token

    def _sweep(self) -> None:
        """Remove what processes left that died while they waited, or while they broke a lock that is broken now."""
        parent, name = os.path.split(self._path)
        for entry in os.listdir(parent):
            path = f"{parent}/{entry}"
            if entry.startswith(f"{name}.broken."):
                if _is_gone(_read(path)) and not self._owner_has(entry.split(".")[-2]):
                    folder.unlink_if_there(path)
            elif entry.startswith(f"{name}.") and _is_gone(_read(f"{path}/owner")):
                _remove(path)

    def _timeout(self, timeout_s: float) -> "errors.LockTimeout":
        words = _read(f"{self._path}/owner").split(" ")
        host, pid = (words[0], words[2]) if len(words) == _OWNER_WORDS else ("", "0")
        holder = f"process {pid} on {host} (if that is gone for good, remove the folder)" if host else "another process"
        return errors.LockTimeout(path=self._path, timeout_seconds=timeout_s, holder=holder, pid=int(pid))


def _is_gone(owner: str) -> bool:
    """Whether the owner was a process of this host and boot, and is no more."""
    words = owner.split(" ")
    if len(words) != _OWNER_WORDS or words[:2] != [_host(), platform.boot_id()]:
        return False
    return platform.process_started(int(words[2])) not in (words[3], platform.HIDDEN)


def _host() -> str:
    return os.uname().nodename.replace(" ", "-") or "localhost"


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _remove(path: str) -> None:
    folder.unlink_if_there(f"{path}/owner")
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
