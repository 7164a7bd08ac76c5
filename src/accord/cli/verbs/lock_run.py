"""lock run."""

import os
import shutil
import signal
import threading

from accord import errors, platform
from accord.cli.child import Child, Signals
from accord.cli.verbs.mail import myself
from accord.cli.words import REST, Verb
from accord.services.locks import TTL_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.cli.run import Line

_MOST_OF_HOST = 100  # letters; a label has 128
_STOOD_STILL_S = 0.5  # noticed so late, an end was slept through


def run(line: "Line", words: "dict[str, Any]") -> int:
    command = words.pop("command", [])
    if not command:
        raise line.words.wrong("Write the command after --")
    if shutil.which(command[0]) is None:
        raise errors.CommandNotFound(command=command[0], reason="there is no such program")
    if "owner" not in words:
        words["owner"] = _owner(line)
    lock = line.call("lock.acquire", words)
    lease = _Lease(line, lock, float(words.get("ttl", TTL_S)))
    env = {**line.io.env, "ACCORD_LOCK": lock["name"], "ACCORD_LOCK_TOKEN": str(lock["token"])}
    try:
        code = _run(command, env, lease)
    except BaseException:
        lease.try_to_release()
        raise
    lease.release()
    return code


def _owner(line: "Line") -> str:
    """Who has no name is this process: nobody but `lock run` itself has to give the lock back."""
    if line.io.env.get("ACCORD_AGENT") or line.io.is_terminal(0):
        return myself(line, "--owner")
    host = "".join(
        letter for letter in os.uname().nodename if letter.isascii() and (letter.isalnum() or letter in "_.-")
    )
    return f"{host[:_MOST_OF_HOST] or 'localhost'}.{os.getpid()}"


def _run(command: list[str], env: "dict[str, str]", lease: "_Lease") -> int:
    signals = Signals()
    try:
        child = Child(command, env)
    except OSError as error:
        raise errors.CommandNotFound(command=command[0], reason=error.strerror) from None
    lease.keep(signals.wake)
    while (code := child.look()) is None:
        for number in signals.wait(lease.left_s()):
            if number != signal.SIGCHLD:
                child.send(number)
        if lease.is_over():
            child.end()
            raise lease.lost()
    child.end()  # what it left in the background must not run on without the lock
    return code


class _Lease:
    """A lock that a thread renews, and until when it is sure to be held."""

    def __init__(self, line: "Line", lock: "dict[str, Any]", ttl_s: float) -> None:
        self._line = line
        self._name = lock["name"]
        self._grant = {name: lock[name] for name in ("name", "owner", "token")}
        self._ttl_s = ttl_s
        self._until = platform.boot_seconds() + ttl_s
        self._error: errors.AccordError | None = None  # of the last try to renew it
        self._tried = threading.Event()
        self._released = threading.Event()

    def keep(self, wake: "Callable[[], None]") -> None:
        """Renew it from now on; `wake` is called when it is lost."""
        threading.Thread(target=self._renew, args=[wake], daemon=True).start()

    def left_s(self) -> float:
        return max(0.0, self._until - platform.boot_seconds())

    def is_over(self) -> bool:
        """Whether it is lost. If this process slept through its end, it is still held unless another took it."""
        if platform.boot_seconds() - self._until > _STOOD_STILL_S and not self._is_lost():
            self._tried.clear()
            self._tried.wait(1.0)
        return not self.left_s()

    def lost(self) -> errors.AccordError:
        if self._is_lost() and self._error is not None:
            return self._error
        reason = f"it was not renewed in time ({self._error.code})" if self._error else "it was not renewed in time"
        return errors.LockLost(**self._grant, reason=reason)

    def release(self) -> None:
        """Give it back. That it was lost before is told; what else goes wrong ends with the lease."""
        self._released.set()
        try:
            self._line.call("lock.release", self._grant)
        except errors.LockLost:
            raise
        except errors.AccordError as error:
            self._line.io.err(f"accord: {self._name} was not released, and ends by itself: {error} [{error.code}]\n")

    def try_to_release(self) -> None:
        try:
            self.release()
        except errors.LockLost:
            pass  # which is what it ended for, or of no account by then

    def _renew(self, wake: "Callable[[], None]") -> None:
        pause_s = 0.0  # at once: nobody can tell how long ago it was granted
        while not self._released.wait(pause_s):
            began = platform.boot_seconds()
            try:
                self._line.call("lock.renew", {**self._grant, "ttl": self._ttl_s})
                self._until, self._error, pause_s = began + self._ttl_s, None, self._ttl_s / 3
            except errors.AccordError as error:
                self._error, pause_s = error, self._ttl_s / 20
            if self._is_lost():
                self._until = 0.0
                wake()
            self._tried.set()

    def _is_lost(self) -> bool:
        return isinstance(self._error, errors.LockLost)


VERBS = {
    "lock run": Verb(
        run,
        "lock.acquire",
        positional=("name",),
        names={"wait": "timeout"},
        extra={"command": REST},
        notes={"wait": "how long to wait for it", "command": "what is run, with all its words"},
        usage="NAME [--owner LABEL] [--ttl SECONDS] [--timeout SECONDS] -- COMMAND...",
        help="Run a command while holding a lock, which is renewed meanwhile; if it is lost, the command is ended.",
    ),
}
