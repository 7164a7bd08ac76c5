"""What a shell has begun: a transaction that is not committed, locks that it holds, revisions that it read.

It lies in a file of the home for as long as the shell lives, and belongs to that shell alone: the functions of `accord
shellenv` run in subshells too, which can keep nothing. When the shell is gone nothing was done that has to be undone.
"""

import fcntl
import os

from accord import errors, jsontext, platform
from accord.store.contract import Item
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from accord.operations.context import Context

_MOST_BYTES = 1 << 24


class Shell:
    """Used in a `with` block, for one of a shell's functions at a time."""

    def __init__(self, context: "Context", pid: int) -> None:
        if not platform.process_started(pid):
            raise errors.Usage(reason=f"{pid} is no process", see="accord shellenv --help")
        self.pid = pid
        self.owner = owner_of(pid)  # of its locks
        self.revisions: dict[str, int] = {}  # of the documents that it has read or written
        self.locks: dict[str, int] = {}  # and the numbers they were granted with
        self.steps: list[dict[str, Any]] | None = None  # of the transaction that it has begun
        self._key = context.settings.encryption_key()
        self._folder = f"{context.home.path}/shell"
        self._path = f"{self._folder}/{self.owner}"

    def __enter__(self) -> "Self":
        folder.make_folder(self._folder)
        _remove_gone(self._folder)
        self._fd = folder.open_private(self._path)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            found: Any = jsontext.loads(self._opened(os.pread(self._fd, _MOST_BYTES, 0)), most=_MOST_BYTES)
            self.revisions, self.locks, self.steps = found["revisions"], found["locks"], found["steps"]
        except (errors.InvalidJson, errors.StoreDamaged):
            pass  # it is new, or one that was killed left it half-written: nothing was begun
        return self

    def __exit__(self, *exc: object) -> None:
        record = {"revisions": self.revisions, "locks": self.locks, "steps": self.steps}
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, self._closed(jsontext.dumps(record).encode()), 0)
        finally:
            os.close(self._fd)

    def staged(self, name: str) -> "str | None":
        """What the transaction is to make of a document."""
        texts = [step["text"] for step in self.steps or [] if step["name"] == name]
        return texts[0] if texts else None

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
    """Files of shells that are no more."""
    for name in os.listdir(path):
        if name != owner_of(int(name.split(".")[1])):
            folder.unlink_if_there(f"{path}/{name}")


def owner_of(pid: int) -> str:
    """A shell's name, which no shell after it has."""
    return f"shell.{pid}.{platform.process_started(pid)}".replace(":", "-")
