"""What SQLite's errors mean to a person."""

import os

import apsw

from accord import errors
from accord.store.local import folder


def meaning(error: apsw.Error, path: str, waited_s: float) -> errors.AccordError:
    reason = str(error)
    # Room for its shared memory SQLite misses as an I/O error.
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and folder.is_full(os.path.dirname(path))):
        return errors.StorageFull(path=path)
    # The last of them SQLite says, after 10 s of its own, of a process that stopped while it made the shared memory.
    if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.ProtocolError):
        return errors.LockTimeout(path=path, timeout_seconds=waited_s, holder="another program", pid=0)
    if isinstance(error, apsw.NotADBError):
        return errors.NotAStore(path=path, reason="it is no SQLite database")
    if isinstance(error, apsw.SQLError):
        return errors.NotAStore(path=path, reason=f"it is a database of something else ({reason})")
    if isinstance(error, apsw.CorruptError):
        return errors.StoreDamaged(path=path, reason=reason)
    if isinstance(error, apsw.CantOpenError) and _no_file_left():
        return errors.TooManyFiles()
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return errors.DataDirError(path=path, errno=0, reason=reason)
    return errors.StorageFailing(path=path, reason=reason)


def _no_file_left() -> bool:
    """Whether no file can be opened at all, which SQLite does not tell."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    return False
