"""HALT: one file, for every home of this user. While it is there, everything stops within a step.

A file that cannot be read, leads nowhere or is odd means halted. Lifting a halt is counted beside it: agents that were
there must each be engaged again by a person.
"""

import errno
import os

from accord import errors
from accord.store.local import folder

FOLDER = ".config/cross-agent-comms"

_MOST_BYTES = 4096
_NOBODY_ENGAGED = 1 << 40


class Halt:
    def __init__(self, user_home: str) -> None:
        self._folder = f"{user_home}/{FOLDER}"
        self.path = f"{self._folder}/HALT"
        self._count_path = f"{self._folder}/accord-halts"

    def reason(self) -> str | None:
        """Why everything is halted; None when it is not."""
        try:
            os.lstat(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{self.path} cannot be looked at ({error.strerror})"
        return self._read()

    def check(self) -> None:
        reason = self.reason()
        if reason is not None:
            raise errors.Halted(reason=reason)

    def count(self) -> int:
        """How many halts were lifted."""
        try:
            fd = os.open(self._count_path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise folder.refusal(error, self._count_path) from None  # which says nothing of halts
            return _NOBODY_ENGAGED
        try:
            text = os.read(fd, _MOST_BYTES).strip()
        except OSError:
            return _NOBODY_ENGAGED
        finally:
            os.close(fd)
        return int(text) if text.isdigit() else _NOBODY_ENGAGED

    def set(self, reason: str) -> None:
        """Halt everything; the reason of an earlier halt stays when there is no new one."""
        try:
            folder.make_folder(self._folder)
        except errors.DataDirError as error:
            raise errors.HaltUnwritable(**error.details) from None
        if os.path.isdir(self.path):
            return  # odd, and so halted already
        if reason or self.reason() is None:
            self._write(self.path, reason.encode("utf-8", "replace") + b"\n")

    def lift(self) -> bool:
        """Whether there was anything to lift."""
        if self.reason() is None:
            return False
        count = self.count()
        self._write(self._count_path, b"%d\n" % (1 if count == _NOBODY_ENGAGED else count + 1))
        try:
            os.rmdir(self.path) if os.path.isdir(self.path) else os.unlink(self.path)
        except OSError as error:
            raise _refusal(error, self.path) from None
        return True

    def _read(self) -> str:
        try:
            with open(self.path, "rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
        except OSError as error:
            return f"{self.path} cannot be read ({error.strerror})"
        return text or "no reason was given"

    def _write(self, path: str, text: bytes) -> None:
        try:
            mine = f"{path}.{os.urandom(4).hex()}"
            fd = folder.open_private(mine)
            try:
                os.write(fd, text)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(mine, path)
        except errors.DataDirError as error:
            raise errors.HaltUnwritable(**error.details) from None
        except OSError as error:
            raise _refusal(error, path) from None


def _refusal(error: OSError, path: str) -> errors.AccordError:
    refusal = folder.refusal(error, path)
    return errors.HaltUnwritable(**refusal.details) if isinstance(refusal, errors.DataDirError) else refusal


class HaltAtLook(Halt):
    """As it was when somebody last looked, for many things that are done in one go."""

    def __init__(self, user_home: str) -> None:
        super().__init__(user_home)
        self._count = _NOBODY_ENGAGED
        self.look()

    def look(self) -> None:
        self._reason = super().reason()
        try:
            self._count = super().count()
        except errors.TooManyFiles:
            pass  # no file can be opened for now; then it is what it was

    def reason(self) -> str | None:
        return self._reason

    def count(self) -> int:
        return self._count
