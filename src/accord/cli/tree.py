"""Texts in the files of a folder: found and read, or written each whole or not at all. No link in it is followed."""

import errno
import os
import stat
from functools import partial

from accord.model import LONGEST_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe that nobody writes to is not waited for
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Refused(Exception):
    """What is left as it is, and why."""


class File:
    """One that was found; it can be read until the next one is."""

    def __init__(self, path: str, relative: str, place: str, folder: "int | None" = None) -> None:
        self.path = path  # as its user named it
        self.relative = relative  # to the folder
        self._place = place  # where it is
        self._folder = folder  # in this one, opened; None: wherever links lead to

    def read(self, most: int) -> str:
        """The text; what is no text, no file, or larger is refused."""
        place, folder = self._place, self._folder
        fd = os.open(place, _READ) if folder is None else _open_no_link(place, _READ, folder)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Refused("it is no file")
            data = file.read(most + 1)
            if len(data) > most:
                raise Refused(f"it has {os.fstat(fd).st_size} bytes, and {most} are the limit")
        return _text(data)


def find(path: str, place: str, failed: "Callable[[str, str], None]") -> "Iterator[File]":
    """A file, or all in a folder but what is hidden; folders that cannot be read are told to `failed`.

    `path` is what its user calls it, `place` where it is.
    """
    there = os.path.realpath(place)
    if os.path.isdir(there):
        yield from _in_folder(path, "", lambda: os.open(there, _FOLDER), failed)
    else:
        yield File(path, os.path.basename(path), there)


def _in_folder(
    path: str, relative: str, open_it: "Callable[[], int]", failed: "Callable[[str, str], None]"
) -> "Iterator[File]":
    try:
        fd = open_it()
    except (OSError, Refused) as error:
        failed(path, getattr(error, "strerror", "") or str(error))
        return
    try:
        for name in sorted(os.listdir(fd)):
            below, name_below = os.path.join(path, name), f"{relative}{name}"
            if name.startswith("."):
                continue
            if not _is_folder(name, fd):
                yield File(below, name_below, name, fd)
            elif len(name_below) < LONGEST_NAME:
                yield from _in_folder(below, f"{name_below}/", partial(_open_no_link, name, _FOLDER, fd), failed)
            else:
                failed(below, "what is in it has too long a name")
    finally:
        os.close(fd)


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False  # by now; whoever reads it will say so


def put(folder: str, name: str, text: str, force: bool) -> None:
    """Make a file of it below the folder; another that is there already is replaced only by force."""
    *parts, last = name.split("/")
    os.makedirs(folder, exist_ok=True)
    fd = os.open(folder, _FOLDER)
    try:
        for part in parts:
            below = _folder_in(fd, part)
            os.close(fd)
            fd = below
        if not _holds(fd, last, text.encode(), force):
            _write(fd, last, text.encode(), force)
    finally:
        os.close(fd)


def _folder_in(fd: int, part: str) -> int:
    try:
        os.mkdir(part, dir_fd=fd)
    except FileExistsError:
        pass
    return _open_no_link(part, _FOLDER, fd)


def _holds(fd: int, name: str, data: bytes, force: bool) -> bool:
    """Whether the file is there with these bytes; with others it is in the way, unless by force."""
    try:
        with open(_open_no_link(name, _READ, fd), "rb") as file:
            if file.read(len(data) + 1) == data:
                return True
    except FileNotFoundError:
        return False
    except Refused:
        if not force:
            raise
    if not force:
        raise Refused("another file is there, and only --force replaces it")
    return False


def _write(fd: int, name: str, data: bytes, force: bool) -> None:
    """Under another name first, so that nobody sees half of it."""
    new = f".accord-{os.urandom(8).hex()}"
    try:
        with open(os.open(new, _NEW, 0o666, dir_fd=fd), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if force:
            os.replace(new, name, src_dir_fd=fd, dst_dir_fd=fd)
        else:
            os.link(new, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)  # which replaces nothing
    finally:
        try:
            os.unlink(new, dir_fd=fd)
        except FileNotFoundError:
            pass


def _open_no_link(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise Refused(f"{name} is a link") from None
        if error.errno == errno.ENXIO:
            raise Refused(f"{name} is no file") from None  # a socket, as Linux says
        raise


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"it is not UTF-8 text (at byte {error.start})") from None
    if "\0" in text:
        raise Refused("it is not text, since it has a zero byte")
    return text
