"""The redo journal: the truth of a files store. One record per commit, flushed before anything else is changed.

A journal starts with a head, `journal EPOCH BASE FLOOR`: its records (`records.py`) are the commits after revision
BASE, and changes up to FLOOR are forgotten.
"""

import os

from accord import errors, platform
from accord.store.local import folder


class Journal:
    """The file of this moment; a restart puts another in its place."""

    def __init__(self, path: str) -> None:
        self._fd = folder.open_private(path, os.O_RDWR)
        self.path = path
        head = os.pread(self._fd, 200, 0).partition(b"\n")[0]
        words = head.decode("ascii", "replace").split(" ")
        if len(words) != 4 or words[0] != "journal" or not words[2].isdigit() or not words[3].isdigit():
            raise errors.StoreDamaged(path=path, reason="the journal does not start with its head")
        self.epoch = words[1]
        self.base = int(words[2])
        self.floor = int(words[3])
        self.start = len(head) + 1

    @staticmethod
    def write_new(path: str, epoch: str, base: int, floor: int) -> None:
        """An empty journal, durable, under a name of its own until it is renamed."""
        fd = folder.open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"journal {epoch} {base} {floor}\n".encode(), 0)
            platform.flush(fd)
        finally:
            os.close(fd)

    def is_current(self) -> bool:
        """Whether no other has taken this one's place."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def append(self, data: bytes, at: int) -> int:
        """Write records at the end, `at`, and flush; where the journal ends now. It is as before if that fails."""
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], at + written)
            platform.flush(self._fd)
        except OSError as error:
            self.cut(at)
            failure = folder.refusal(error, self.path)
            if isinstance(failure, errors.StorageFull):
                raise failure from None
            raise errors.OutcomeUnknown(path=self.path, reason=error.strerror) from None
        return at + len(data)

    def cut(self, at: int) -> None:
        """Take back what was written from `at` on."""
        try:
            os.ftruncate(self._fd, at)
        except OSError:
            pass  # recovery finds the record half, or whole: the outcome is unknown then anyway

    def read(self, start: int, end: int | None = None) -> bytes:
        size = self.size() if end is None else end
        return os.pread(self._fd, max(0, size - start), start)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def flush(self) -> None:
        platform.flush(self._fd)

    def close(self) -> None:
        os.close(self._fd)
