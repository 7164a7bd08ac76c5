"""Making a store's folder, by any number of processes at once, and recognising one that is there."""

import os

from accord import errors
from accord.store.contract import new_epoch
from accord.store.engines.files.journal import Journal
from accord.store.local import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accord.store.local.claim import Claim
    from accord.store.local.gate import Gate

FORMAT = 1
LOCKS = ("flock", "mkdir")

_TITLE = "accord store"


def find_or_make(root: str, lock_kind: str) -> str:
    """The kind of lock of the store at `root`, which is made if there is none; it is fixed then."""
    if lock_kind and lock_kind not in LOCKS:
        raise errors.NotAStore(path=root, reason=f"{lock_kind!r} is no kind of lock; there are {' and '.join(LOCKS)}")
    folder.make_folder(root)
    if not os.path.lexists(f"{root}/store"):
        try:
            _make(root, lock_kind)
        except OSError as error:
            raise folder.refusal(error, root) from None
    found = read_lock_kind(root)
    if lock_kind and lock_kind != found:
        raise errors.NotAStore(path=root, reason=f"it was made with the lock {found}, and stays so")
    for name in ("data", "log", "staged"):
        folder.make_folder(f"{root}/{name}")
    return found


def stamp(root: str) -> tuple[int, int, int]:
    """What changes when a newer accord takes the store over."""
    try:
        found = os.stat(f"{root}/store")
    except OSError as error:
        raise folder.refusal(error, f"{root}/store") from None
    return found.st_ino, found.st_mtime_ns, found.st_size


def open_lock(root: str, kind: str) -> "Gate | Claim":
    if kind == "flock":
        from accord.store.local.gate import Gate

        return Gate(f"{root}/lock")
    from accord.store.local.claim import Claim

    return Claim(f"{root}/lock.d")


def _make(root: str, lock_kind: str) -> None:
    strange = [name for name in os.listdir(root) if name.partition(".")[0] not in ("journal", "store", "lock")]
    if strange and not os.path.lexists(f"{root}/store"):  # else another process has just made it
        raise errors.NotAStore(path=root, reason=f"the folder holds other things, such as {sorted(strange)[0]!r}")
    mine = f"{root}/journal.{new_epoch()}"  # threads of one process may be at it too
    Journal.write_new(mine, new_epoch(), 0, 0)
    _put_first(mine, f"{root}/journal")
    mine = f"{root}/store.{new_epoch()}"
    fd = folder.open_private(mine)
    try:
        lock_kind = lock_kind or _lock_that_works(root)
        os.pwrite(fd, f"{_TITLE}\nformat {FORMAT}\nlock {lock_kind}\n".encode(), 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    _put_first(mine, f"{root}/store")
    folder.flush_folder(root)


def _put_first(mine: str, place: str) -> None:
    """Put a file in place unless another was faster."""
    try:
        os.link(mine, place)
    except FileExistsError:
        pass
    os.unlink(mine)


def read_lock_kind(root: str) -> str:
    """What stands in a store of a format that this accord knows."""
    path = f"{root}/store"
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read(1000).splitlines()
    except UnicodeDecodeError:
        lines = []
    except OSError as error:
        raise folder.refusal(error, path) from None
    if len(lines) < 3 or lines[0] != _TITLE or not lines[1].removeprefix("format ").isdigit():
        raise errors.NotAStore(path=path, reason="it does not say what it is")
    found = int(lines[1].removeprefix("format "))
    if found != FORMAT:
        raise errors.StoreTooNew(path=root, found=found, known=FORMAT)
    lock_kind = lines[2].removeprefix("lock ")
    if lock_kind not in LOCKS:
        raise errors.NotAStore(path=path, reason=f"it names a lock {lock_kind!r}, which this accord does not know")
    return lock_kind


def _lock_that_works(root: str) -> str:
    """flock, unless the file system refuses it."""
    import errno
    import fcntl

    path = f"{root}/lock"
    fd = folder.open_private(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "flock"
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return "mkdir"
        raise
    finally:
        os.close(fd)
    return "flock"
