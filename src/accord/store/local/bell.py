"""How a commit wakes those who watch, in whatever process: the writer writes its revision into a file.

The file is written after the commit is durable, so what it names cannot be lost any more. Watchers wait for
it to change (inotify, kqueue, else a look each 50 ms) and look once a second anyway. Waiting on a database's
own files instead wakes too early and misses the last commit.
"""

import os

from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.protocols import Ledger

_FORMAT = b"%-16s %016d\n"
_BYTES = 34
_EPOCH_BYTES = 16


class Bell:
    """The file, for ringing and reading."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = folder.open_private(path)

    def ring(self, epoch: str, revision: int) -> None:
        """Say that everything up to `revision` is durable; a later ring of another writer stays."""
        ring = _FORMAT % (epoch.encode(), revision)
        heard = os.pread(self._fd, _BYTES, 0)
        if heard < ring or heard[:_EPOCH_BYTES] != ring[:_EPOCH_BYTES]:  # of one length, so they compare as numbers
            try:
                os.pwrite(self._fd, ring, 0)
            except OSError:
                pass  # the commit stands; watchers find it at their next look

    def heard(self, epoch: str) -> int:
        """The last revision rung in this epoch; 0: none."""
        found, revision = self.read()
        return revision if found == epoch else 0

    def read(self) -> tuple[str, int]:
        """The epoch and revision of the last ring."""
        words = os.pread(self._fd, _BYTES, 0).split()
        whole = len(words) == 2 and words[0].isalnum() and words[1].isdigit()
        return (words[0].decode(), int(words[1])) if whole else ("", 0)

    def is_ahead_of(self, store: "Ledger") -> bool:
        """Whether more was rung than the store holds: then it was put back from a copy, and its history is another."""
        epoch, rung = self.read()  # first, since whoever commits meanwhile rings later
        with store.snapshot() as snapshot:
            ahead = snapshot.epoch == epoch and snapshot.revision < rung
        # A ring that was read while it was written may be neither the old one nor the new.
        return ahead and self.read()[1] >= rung

    def close(self) -> None:
        os.close(self._fd)
