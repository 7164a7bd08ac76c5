"""What a shell has begun: a transaction that is not committed, locks that it holds, revisions that it read.

It lies in the home for as long as the shell lives, and belongs to that shell alone: the functions of `accord shellenv`
run in subshells too, which can keep nothing. When the shell is gone nothing was done that has to be undone.

SHELL.gate     held by the function that is at work
SHELL.state    what was begun; replaced as a whole, so that a function that is killed leaves the old or the new
SHELL.new      the next one, until it is written

A shell that chooses another engine begins anew there: what it has locked and read is of one store. SHELL is then
followed by a `+` and that store's name.
"""

import os
import time

from accord import errors, jsontext, platform
from accord.store.contract import Item
from accord.store.local import folder
from accord.store.local.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from accord.operations.context import Context

_MOST_BYTES = 1 << 24
_KEPT_S = 86_400.0  # that the files of a shell that is gone are left alone
_ENDINGS = ("gate", "state", "new")
_PID_DIGITS = 10  # of the least number that is too large to be one


class Shell:
    """Used in a `with` block, for one of a shell's functions at a time."""

    def __init__(self, context: "Context", pid: int) -> None:
        if platform.process_started(pid) in ("", platform.HIDDEN):
            raise errors.Usage(reason=f"{pid} is no process of this user", see="accord shellenv --help")
        self.owner = owner_of(pid)  # of its locks
        self.revisions: dict[str, int] = {}  # of the documents that it has read or written
        self.locks: dict[str, int] = {}  # and the numbers they were granted with
        self.steps: list[dict[str, Any]] | None = None  # of the transaction that it has begun
        self.patience_s: float = context.settings["lock_timeout_s"]  # with the shell's other functions
        self._key = context.settings.encryption_key()
        self._folder = f"{context.home.path}/shell"
        store = context.tokens.store
        self._path = f"{self._folder}/{self.owner}{f'+{store}' if store else ''}"

    def __enter__(self) -> "Self":
        folder.make_folder(self._folder)
        self._gate = Gate(f"{self._path}.gate")
        try:
            self._gate.acquire(self.patience_s)
            self._read()
        except OSError as error:
            self._gate.close()
            raise folder.refusal(error, self._path) from None
        except BaseException:
            self._gate.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._write()
        except OSError as error:
            raise folder.refusal(error, self._path) from None
        finally:
            self._gate.close()

    def staged(self, name: str) -> "str | None":
        """What the transaction is to make of a document."""
        texts = [step["text"] for step in self.steps or [] if step["name"] == name]
        return texts[0] if texts else None

    def _read(self) -> None:
        try:
            with open(f"{self._path}.state", "rb") as file:
                data = file.read()
        except FileNotFoundError:
            _remove_gone(self._folder)
            return
        try:
            found: Any = jsontext.loads(self._opened(data), most=_MOST_BYTES)
        except errors.InvalidJson:
            reason = "it was changed, or is encrypted"
            raise errors.WrongKey(path=f"{self._path}.state", reason=reason) from None
        self.revisions, self.locks, self.steps = found["revisions"], found["locks"], found["steps"]

    def _write(self) -> None:
        record = jsontext.dumps({"revisions": self.revisions, "locks": self.locks, "steps": self.steps}).encode()
        if len(record) > _MOST_BYTES:
            raise errors.CommitTooLarge(most=_MOST_BYTES, what="bytes", found=len(record))
        new = f"{self._path}.new"
        fd = folder.open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, secret=True)
        with open(fd, "wb") as file:
            file.write(self._closed(record))
        os.rename(new, f"{self._path}.state")

    def _closed(self, data: bytes) -> bytes:
        """What lies in the home of an encrypted store is encrypted as well."""
        if not self._key:
            return data
        from accord.store.wrap.encrypted import Cipher

        return bytes(Cipher(self._key, self._path).close("shell", self.owner, data))  # type: ignore[arg-type]

    def _opened(self, data: bytes) -> bytes:
        if not self._key:
            return data
        from accord.store.wrap.encrypted import Cipher

        return Cipher(self._key, self._path).open("shell", Item(self.owner, data, 0)).value


def _remove_gone(path: str) -> None:
    """The files of this user's shells that are no more; what cannot be told, or removed, stays."""
    for name in os.listdir(path):
        try:
            if _is_left_behind(path, name):
                os.unlink(f"{path}/{name}")
        except OSError:
            pass


def _is_left_behind(path: str, name: str) -> bool:
    owner, _, ending = name.rpartition(".")
    pid, _, started = owner.partition("+")[0].removeprefix(f"{_here()}.").partition(".")
    if not owner.startswith(_here()) or ending not in _ENDINGS or not is_pid(pid):
        return False
    found = os.lstat(f"{path}/{name}")
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _KEPT_S:
        return False
    return _started(int(pid)) not in (started, platform.HIDDEN)


def is_pid(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < _PID_DIGITS


def owner_of(pid: int) -> str:
    """A shell's name, which no shell after it has, nor one of another machine or container that shares the home."""
    return f"{_here()}.{pid}.{_started(pid)}"


def _started(pid: int) -> str:
    return platform.process_started(pid).replace(":", "-")


def _here() -> str:
    """How the names of all shells begin that can be told apart by their pids."""
    from _blake2 import blake2b

    return f"shell.{blake2b(platform.pid_space().encode(), digest_size=6).hexdigest()}"
