"""A disk with a page cache that a power cut empties, under SQLite: writes become durable when their file is synced.

`Disk` is the disk; `CacheFiles` puts it under every SQLite connection of this process. Locks and shared memory
stay those of the real files, which stay empty.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable

import apsw

REAL = apsw.vfs_names()[0]  # SQLite's own way to open files; the first is the default

SECTOR = 512  # what a disk writes whole or not at all


class Disk:
    """Files as programs see them, as they were when last synced, and what was done to them since."""

    def __init__(self) -> None:
        self.seen: dict[str, bytearray] = {}
        self._durable: dict[str, bytearray] = {}
        self._pending: dict[str, list[tuple[int, bytes | None]]] = defaultdict(list)  # None: cut off there
        self._errors: Counter[str] = Counter()  # of each file, so far
        self._told: set[tuple[str, int]] = set()  # (file, error): somebody heard of it
        self._heard: dict[object, int] = {}  # the last error that an open file was told of
        self.on_step: Callable[[], None] = lambda: None  # before each write and sync

    def add(self, path: str, data: bytes) -> None:
        self.seen[path] = bytearray(data)
        self._durable[path] = bytearray(data)

    def open(self, path: str, file: object) -> None:
        """`file` is open from now on. As in Linux it hears of each later error once, and of one nobody heard of yet."""
        newest = self._errors[path]
        self._heard[file] = newest if (path, newest) in self._told else max(0, newest - 1)

    def write(self, path: str, at: int, data: bytes) -> None:
        self.on_step()
        _write(self.seen[path], at, data)
        self._pending[path].append((at, data))

    def truncate(self, path: str, size: int) -> None:
        self.on_step()
        _truncate(self.seen[path], size)
        self._pending[path].append((size, None))

    def sync(self, path: str, file: object = None) -> bool:
        """Make what is pending durable; False when the disk refused some of it since `file` was last synced."""
        self.on_step()
        for at, piece in self._pending.pop(path, ()):
            _apply(self._durable[path], at, piece)
        newest = self._errors[path]
        good = self._heard.get(file, newest) == newest
        if not good:
            self._heard[file] = newest
            self._told.add((path, newest))
        return good

    def refuse(self, path: str) -> None:
        """The disk takes nothing of what is pending, and the kernel, having tried, does not try again."""
        self._pending.pop(path, None)
        self._errors[path] += 1

    def after_power_cut(self, path: str, chance: random.Random) -> bytes:
        """The file as the next start of the machine may find it: any of the sectors not synced are lost."""
        survival = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        data = bytearray(self._durable[path])
        for at, piece in self._pending[path]:
            if piece is None:
                if chance.random() < survival:
                    _truncate(data, at)
                continue
            for start in range(0, len(piece), SECTOR):
                if chance.random() < survival:
                    _write(data, at + start, piece[start : start + SECTOR])
        return bytes(data)


class CacheFiles(apsw.VFS):
    """The default way of SQLite in this process to open files, until `unregister`."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__("cache", REAL, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _CachedFile(self.disk, name, flags)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return bool(self.disk.seen.get(pathname)) or super().xAccess(pathname, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        raise AssertionError(f"this disk does not delete, not even {filename}")


class _CachedFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(REAL, name, flags)
        assert name is not None, "the engine made a temporary file"
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if self._path not in disk.seen:
            disk.add(self._path, b"")
        disk.open(self._path, self)

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._disk.seen[self._path][offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.write(self._path, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        self._disk.truncate(self._path, newsize)

    def xSync(self, flags: int) -> None:
        if not self._disk.sync(self._path, self):
            raise apsw.IOError("the disk refused what was written")

    def xFileSize(self) -> int:
        return len(self._disk.seen[self._path])


def path_of(fd: int) -> str:
    """The path of an open file."""
    return os.readlink(f"/proc/self/fd/{fd}")


def _apply(data: bytearray, at: int, piece: bytes | None) -> None:
    if piece is None:
        _truncate(data, at)
    else:
        _write(data, at, piece)


def _write(data: bytearray, at: int, piece: bytes) -> None:
    if len(data) < at:
        data.extend(bytes(at - len(data)))
    data[at : at + len(piece)] = piece


def _truncate(data: bytearray, size: int) -> None:
    del data[size:]
    data.extend(bytes(size - len(data)))
