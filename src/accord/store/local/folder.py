"""Private folders and files: 0700 and 0600 whatever the umask, and errors that name the path and the cure.

What is made in a folder that a group shares (2770) is for the group: 2770 and 0660, unless it is a secret. It has that
mode from the moment it has its name, since other users may come for it then.
"""

import errno
import os

from accord import errors, place

SHARED = 0o2770  # a folder for its group, to which belongs what is made in it

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MANY = (errno.EMFILE, errno.ENFILE)


def place_of(name: str) -> str:
    """The path that a person named, from the root."""
    if not name:
        raise _no_path(name, "it names no file or folder")
    if "\0" in name:
        raise _no_path(name, "it holds a NUL, which no path can")
    try:
        path = os.path.abspath(os.path.expanduser(name))
        path.encode()
    except UnicodeEncodeError:
        raise _no_path(name, "it is not UTF-8") from None
    return path


def _no_path(name: str, reason: str) -> errors.AccordError:
    return errors.DataDirError(path=ascii(name), errno=errno.EINVAL, reason=reason)


def is_there(path: str) -> bool:
    """Whether anything is; also where this user may not look, and who opens it is told so."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def make_folder(path: str, secret: bool = False) -> None:
    """Make `path`, and what is missing above it, for those it is for; one that is there already stays as it is."""
    try:
        _make_folder(path, secret)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            code = errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(code, os.strerror(code), path)
    except OSError as error:
        raise refusal(error, path) from None


def open_private(path: str, flags: int = os.O_RDWR | os.O_CREAT, secret: bool = False) -> int:
    """Open a file, which is made for those it is for."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(path, flags & ~os.O_CREAT)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        if not secret and place.is_shared(os.path.dirname(path)):
            return _open_shared(path, flags)
        fd = os.open(path, flags, 0o600)
        os.fchmod(fd, 0o600)  # a umask of 0777 would have taken the owner's bits too
        return fd
    except OSError as error:
        raise refusal(error, path) from None


def open_new(path: str) -> int:
    """Open a new file in place of what may lie there; only for who is alone with it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        os.unlink(path)
        fd = os.open(path, flags, 0o600)
    os.fchmod(fd, 0o660 if place.is_shared(os.path.dirname(path)) else 0o600)
    return fd


def flush_folder(path: str) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def unlink_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def is_full(path: str) -> bool:
    """Whether the file system of `path` has no room, or no inode, left for this user."""
    disk = os.statvfs(path)
    return disk.f_bavail == 0 or (disk.f_files > 0 and disk.f_favail == 0)


def refusal(error: OSError, path: str) -> errors.AccordError:
    """What a failed system call on the store means to a person."""
    if error.errno in _FULL:
        return errors.StorageFull(path=path)
    if error.errno == errno.EIO:
        return errors.StorageFailing(path=path, reason=error.strerror)
    if error.errno in _MANY:
        return errors.TooManyFiles()
    path = os.fsdecode(error.filename or path)
    return errors.DataDirError(path=path, errno=error.errno, reason=_reason(error, path))


def _make_folder(path: str, secret: bool) -> None:
    try:
        _make_one(path, secret)
    except FileNotFoundError:
        above = os.path.dirname(path)
        if not os.path.isdir(above):
            _make_folder(above, secret)
        _make_one(path, secret)  # above it there is a folder by now; in some, as in /proc, none can be made


def _make_one(path: str, secret: bool) -> None:
    if os.path.isdir(path):
        return
    if not secret and place.is_shared(os.path.dirname(path)):
        _make_shared(path)
        return
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", path) from None
    else:
        os.chmod(path, 0o700)


def _make_shared(path: str) -> None:
    above = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _hold(above)
        if not os.path.lexists(path):
            mine = _name_until_ready(path)
            os.mkdir(mine, 0o700)
            os.chmod(mine, SHARED)
            os.rename(mine, path)
    finally:
        os.close(above)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", path)


def _hold(folder: int) -> None:
    """Make folders in it alone: a rename would replace one that another has just made, and is about to use."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
    except OSError:
        pass  # some file systems have no such locks; there a store has its own


def _open_shared(path: str, flags: int) -> int:
    mine = _name_until_ready(path)
    fd = os.open(mine, flags | os.O_EXCL, 0o600)
    try:
        os.fchmod(fd, 0o660)
        os.link(mine, path)
    except FileExistsError:
        os.close(fd)
        fd = os.open(path, flags & ~os.O_CREAT)  # another was faster
    except BaseException:
        os.close(fd)
        raise
    finally:
        os.unlink(mine)
    return fd


def _name_until_ready(path: str) -> str:
    return f"{path}.{os.urandom(4).hex()}.new"


def _reason(error: OSError, path: str) -> str:
    if error.errno == errno.ENOTDIR:
        return "it, or something above it, is not a folder"
    if error.errno == errno.EROFS:
        return "it is on a read-only file system"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this user may not read and write there"
    if error.errno == errno.ELOOP:
        return "it is a symbolic link"
    return error.strerror or str(error)
