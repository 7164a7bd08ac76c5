"""What a power cut leaves of a home: a worker is recorded with strace, and replayed on a disk that forgets.

`record` runs it and gives its system calls on the home; `Machine` takes them one after another, and builds at any
moment a folder as the next start of the machine may find it. Data are durable when their file was synced; of the
rest any sectors may be lost. Names (creating, linking, renaming, removing) are durable when their folder was
synced; of the rest the last ones may be lost, since journalling file systems keep their order. A synced file whose
name is not durable is lost: some file systems are kinder than that.
"""

import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.robustness import strace
from tests.robustness.homes import WORKER
from tests.robustness.simdisk import SECTOR, Disk

TRACED = (
    "open,openat,creat,close,dup,dup2,dup3,fcntl,lseek,read,write,pwrite64,ftruncate,truncate,fsync,fdatasync,syncfs,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mmap,"
    "writev,pwritev,pwritev2,fallocate,copy_file_range,sendfile,sync_file_range,msync"
)
IGNORED = {"read", "fcntl", "sync_file_range", "msync"}  # they promise nothing, or change nothing

DATA = {"read", "write", "pwrite64"}  # the strings of all other calls are names

# Rebuilt by the first to open the database, and written through memory, which strace does not see.
UNSEEN = "-shm"

FLUSHES = {"fsync", "fdatasync"}  # which leave something behind when they fail, as no other call does

# A failed call has the result -1.
_CALL = re.compile(r"\d+ +(?P<name>\w+)\((?P<args>.*)\) += (?P<result>-?\d\w*)", re.DOTALL)
_ARGUMENT = re.compile(
    r' *(?:"(?P<text>(?:\\x..)*)"|(?P<fd>\w+)<(?P<path>(?:\\x..)*)>(?:\(deleted\))?|(?P<word>[^,]+))'
)


@dataclass(frozen=True)
class Argument:
    text: bytes | None  # of a string
    path: str  # of a descriptor
    word: str  # of anything else: a number, flags, a descriptor's number

    @property
    def number(self) -> int:
        return int(self.word, 0)


@dataclass(frozen=True)
class Step:
    name: str
    arguments: list[Argument]
    result: int

    @property
    def ways(self) -> int:
        """In how many ways, at least, this may be on the disk or not: a long write by each of its sectors."""
        if self.name in ("write", "pwrite64"):
            return min(20, 1 + self.result // SECTOR)
        return int(self.name in strace.CHANGING or any("O_CREAT" in argument.word for argument in self.arguments))


@dataclass
class _Open:
    """An open file."""

    inode: str
    path: Path
    at: int  # where the next write goes
    append: bool


def record(
    home: Path, arguments: Sequence[str], log: Path, *options: str, command: Sequence[str] = WORKER
) -> list[Step]:
    """Run a worker, and give its calls on the home that did something, and what it said. `options` are strace's."""
    run = strace.run(arguments, log, "-xx", "-s", "3000000", "-e", f"trace={TRACED}", *options, command=command)
    assert (run.status, run.complaints) == (0, "")
    return [step for step in parse(run.log) if _concerns(step, home)]


def parse(log: str) -> Iterator[Step]:
    for line in log.splitlines():
        assert "<unfinished" not in line, "a worker with one thread only can be replayed"
        match = _CALL.match(line)
        if match is not None and (match["result"] != "-1" or match["name"] in FLUSHES):
            arguments = [_argument(found) for found in _ARGUMENT.finditer(match["args"])]
            yield Step(match["name"], arguments, int(match["result"], 0))


class Machine:
    """A home on a disk with a page cache; what is there at first is durable."""

    def __init__(self, home: Path, before: Path) -> None:
        """`before` holds the home as it was, under whatever path."""
        self._home = home
        self._disk = Disk()
        self._first: dict[Path, str | None] = {}  # a name's inode; None: it is a folder
        self._log: list[_Naming] = []
        self._durable = 0  # namings that are
        self._open: dict[int, _Open] = {}
        self._inodes = 0
        self.said = ""
        for path in sorted(before.rglob("*")) if before.exists() else ():
            name = home / path.relative_to(before)
            self._first[name] = None if path.is_dir() else self._new_inode(path.read_bytes())
        if before.exists():
            self._first[home] = None
        self._names = dict(self._first)

    def take(self, step: Step) -> None:
        """Let the next system call happen."""
        if step.name not in IGNORED:
            getattr(self, f"_{step.name}")(*step.arguments, result=step.result)

    def refuse(self) -> None:
        """The disk refuses all data not yet synced; the process that was told so ends, and another one starts."""
        for inode in self._disk.seen:
            self._disk.refuse(inode)
        self._open.clear()

    def after_power_cut(self, chance: random.Random, into: Path) -> None:
        """Build the home as the next start may find it."""
        names = dict(self._first)
        for naming in self._log[: chance.randint(self._durable, len(self._log))]:
            naming.apply(names)
        for name, inode in sorted(names.items()):
            path = into / name.relative_to(self._home)
            if inode is None:
                path.mkdir(mode=0o700)
            else:
                path.write_bytes(self._disk.after_power_cut(inode, chance))

    # System calls, under their own names.

    def _openat(self, folder: Argument, name: Argument, flags: Argument, *mode: Argument, result: int) -> None:
        path = _join(folder, name)
        if path not in self._names:
            assert "O_CREAT" in flags.word, f"{path} was opened, and nobody made it"
            self._name(path, self._new_inode(b""))
        inode = self._names[path]
        if inode is not None:
            self._open[result] = _Open(inode, path, 0, "O_APPEND" in flags.word)
            if "O_TRUNC" in flags.word:
                self._disk.truncate(inode, 0)

    def _close(self, fd: Argument, result: int) -> None:
        self._open.pop(int(fd.word), None)

    def _lseek(self, fd: Argument, *where: Argument, result: int) -> None:
        if file := self._open.get(int(fd.word)):
            file.at = result

    def _write(self, fd: Argument, data: Argument, size: Argument, result: int) -> None:
        assert data.text is not None
        if fd.word == "1":
            self.said += data.text.decode()
            return
        file = self._open[int(fd.word)]
        if file.append:
            file.at = len(self._disk.seen[file.inode])
        self._disk.write(file.inode, file.at, data.text[:result])
        file.at += result

    def _pwrite64(self, fd: Argument, data: Argument, size: Argument, at: Argument, result: int) -> None:
        assert data.text is not None
        self._disk.write(self._open[int(fd.word)].inode, at.number, data.text[:result])

    def _ftruncate(self, fd: Argument, size: Argument, result: int) -> None:
        self._disk.truncate(self._open[int(fd.word)].inode, size.number)

    def _fsync(self, fd: Argument, result: int) -> None:
        file = self._open.get(int(fd.word))
        if result < 0:
            assert file is not None, "the flush of a folder failed"
            self._disk.refuse(file.inode)
        elif file:
            self._disk.sync(file.inode)
        else:
            self._sync_folder(Path(fd.path))

    _fdatasync = _fsync

    def _syncfs(self, fd: Argument, result: int) -> None:
        self._durable = len(self._log)
        for inode in self._disk.seen:
            self._disk.sync(inode)

    def _rename(self, old: Argument, new: Argument, result: int) -> None:
        self._move(_join(None, old), _join(None, new))

    def _renameat(self, folder: Argument, old: Argument, other: Argument, new: Argument, result: int) -> None:
        self._move(_join(folder, old), _join(other, new))

    def _renameat2(
        self, folder: Argument, old: Argument, other: Argument, new: Argument, flags: Argument, result: int
    ) -> None:
        assert flags.word.strip() in ("0", "RENAME_NOREPLACE")
        self._move(_join(folder, old), _join(other, new))

    def _link(self, old: Argument, new: Argument, result: int) -> None:
        self._name(_join(None, new), self._names[_join(None, old)])

    def _linkat(
        self, folder: Argument, old: Argument, other: Argument, new: Argument, flags: Argument, result: int
    ) -> None:
        self._name(_join(other, new), self._names[_join(folder, old)])

    def _unlink(self, name: Argument, result: int) -> None:
        self._remove(_join(None, name))

    _rmdir = _unlink

    def _unlinkat(self, folder: Argument, name: Argument, flags: Argument, result: int) -> None:
        self._remove(_join(folder, name))

    def _mkdir(self, name: Argument, mode: Argument, result: int) -> None:
        self._name(_join(None, name), None)

    def _mkdirat(self, folder: Argument, name: Argument, mode: Argument, result: int) -> None:
        self._name(_join(folder, name), None)

    def _mmap(self, *arguments: Argument, result: int) -> None:
        file = next(argument for argument in arguments if argument.path)
        shared = any("MAP_SHARED" in argument.word for argument in arguments)
        assert not shared or file.path.endswith(UNSEEN), f"{file.path} is written through memory"

    # What they do to names.

    def _new_inode(self, data: bytes) -> str:
        self._inodes += 1
        self._disk.add(str(self._inodes), data)
        return str(self._inodes)

    def _name(self, path: Path, inode: str | None) -> None:
        self._rewrite(_Naming({path: inode}, ()))

    def _remove(self, path: Path) -> None:
        self._rewrite(_Naming({}, (path,)))

    def _move(self, old: Path, new: Path) -> None:
        below = [path for path in self._names if path.is_relative_to(old)]
        moved = {new / path.relative_to(old): self._names[path] for path in below}
        self._rewrite(_Naming(moved, tuple(below)))

    def _rewrite(self, naming: "_Naming") -> None:
        naming.apply(self._names)
        self._log.append(naming)

    def _sync_folder(self, folder: Path) -> None:
        touching = [at for at, naming in enumerate(self._log, 1) if folder in naming.folders()]
        self._durable = max([self._durable, *touching])


@dataclass(frozen=True)
class _Naming:
    """One change of names, which happens whole or not at all."""

    made: dict[Path, str | None]
    removed: tuple[Path, ...]

    def apply(self, names: dict[Path, str | None]) -> None:
        for path in self.removed:
            del names[path]
        names.update(self.made)

    def folders(self) -> set[Path]:
        return {path.parent for path in (*self.made, *self.removed)}


def _argument(found: re.Match[str]) -> Argument:
    text = _unescape(found["text"]) if found["text"] is not None else None
    path = os.fsdecode(_unescape(found["path"])) if found["path"] is not None else ""
    return Argument(text, path, (found["fd"] or found["word"] or "").strip())


def _unescape(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _join(folder: Argument | None, name: Argument) -> Path:
    assert name.text is not None
    return Path(folder.path if folder else "/", os.fsdecode(name.text))


def _concerns(step: Step, home: Path) -> bool:
    """Whether a call is about the home, or says something."""
    first = step.arguments[0]
    if step.name == "write" and first.word == "1":
        return True
    names = [] if step.name in DATA else [os.fsdecode(argument.text or b"") for argument in step.arguments]
    paths = [argument.path for argument in step.arguments]
    return any(Path(path).is_relative_to(home) for path in names + paths)
