"""The folder of a store: what lies in it, and what of it every user of the store holds open.

store        what this is: the format, the kind of lock
lock         (or lock.d) held by the one who changes anything
journal      the commits since the last restart of the journal
state        how far they are laid out
bell         rung after each commit
data/        the items
log/         the changes of earlier journals, one file each, named by its first revision
staged/      files of the commit that is being made, before they are moved into place
"""

import _thread

from accord.store.engines.files import making
from accord.store.engines.files.journal import Journal
from accord.store.engines.files.shelves import Shelves
from accord.store.engines.files.state import StateFile, decode
from accord.store.local.bell import Bell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.engines.files.log import ChangeLog
    from accord.store.engines.files.state import State
    from accord.store.engines.files.writer import Writer
    from accord.store.local.claim import Claim
    from accord.store.local.gate import Gate


class Behind(Exception):
    """The state is behind the journal: a crash came between the two."""


class Disk:
    def __init__(self, root: str, lock_kind: str) -> None:
        self.root = root
        self._lock_kind = making.find_or_make(root, lock_kind)
        self._opening = _thread.allocate_lock()
        self._lock: Gate | Claim | None = None
        self.bell = Bell(f"{root}/bell")
        self.shelves = Shelves(f"{root}/data")
        self.state_file = StateFile(f"{root}/state")
        self.journal = Journal(f"{root}/journal")  # used under the lock only
        self._seen: tuple[bytes, State | None] = (b"", None)
        self._log: ChangeLog | None = None
        self._writer: Writer | None = None

    def close(self) -> None:
        for part in (self._lock, self.bell, self.state_file, self.journal):
            if part is not None:
                part.close()

    def look(self) -> "tuple[bytes, State | None]":
        """The state as it lies there, and what it says; None when only the journal can tell."""
        seen = self.state_file.look()
        if seen != self._seen[0]:
            self._seen = seen, decode(seen)
        return self._seen

    def is_unchanged(self, seen: bytes) -> bool:
        return self.state_file.look() == seen

    @property
    def lock(self) -> "Gate | Claim":
        """Opened when it is first wanted: most who open a store only read."""
        with self._opening:
            if self._lock is None:
                self._lock = making.open_lock(self.root, self._lock_kind)
            return self._lock

    def open_journal(self) -> None:
        """The one that took the place of that which is open."""
        self.journal.close()
        self.journal = Journal(f"{self.root}/journal")

    @property
    def log(self) -> "ChangeLog":
        if self._log is None:
            from accord.store.engines.files.log import ChangeLog

            self._log = ChangeLog(self.root)
        return self._log

    @property
    def writer(self) -> "Writer":
        """For whoever holds the lock."""
        if self._writer is None:
            from accord.store.engines.files.writer import Writer

            self._writer = Writer(self)
        return self._writer
