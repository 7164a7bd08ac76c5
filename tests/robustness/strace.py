"""System calls of a worker: list those that concern a home, and run it again with a fault at one of them."""

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.need import need
from tests.robustness.homes import WORKER, WORKER_ENV

# Calls that change what is on a disk. A worker may be killed before any of them.
CHANGING = {
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "copy_file_range", "sendfile",
    "truncate", "ftruncate", "fsync", "fdatasync", "sync_file_range", "syncfs", "msync",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat",
    "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "utimensat",
}  # fmt: skip

# Calls that leave the disk as it is. `openat` and `open` are looked at: they may create.
HARMLESS = {
    "read", "pread64", "readv", "preadv", "close", "lseek", "stat", "lstat", "fstat", "newfstatat", "statx",
    "statfs", "fstatfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd",
    "fcntl", "flock", "ioctl", "mmap", "fadvise64", "inotify_add_watch", "poll", "dup", "execve", "chdir",
    "fgetxattr", "getxattr", "lgetxattr",
}  # fmt: skip

_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    name: str
    number: int  # among all calls of that name by its process, as strace counts: 1, 2, 3 ...
    text: str  # its line in strace's log

    def __str__(self) -> str:
        return f"{self.name} {self.number}: {self.text}"


@dataclass(frozen=True)
class Run:
    status: int  # as of subprocess: the exit code, or minus the signal
    said: str
    complaints: str  # its standard error
    log: str  # strace's


def run(arguments: Sequence[str], log: Path, *options: str, command: Sequence[str] = WORKER, umask: int = -1) -> Run:
    """Run a worker under strace."""
    strace = [need("strace"), "-f", "-qq", "-y", "-s", "64", "-o", str(log), *options]
    done = subprocess.run(
        [*strace, *command, *arguments], capture_output=True, text=True, env=WORKER_ENV, umask=umask, check=False
    )
    return Run(done.returncode, done.stdout, done.stderr, log.read_text(errors="replace"))


def calls_on(home: Path, log: str) -> list[Call]:
    """The calls that may change something at or below `home`, in order; one not known to this module is an error."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for line in log.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name = match["name"]
        counts[match["pid"], name] += 1
        if f"{home}" not in match["rest"] or name in HARMLESS:
            continue
        if name in ("open", "openat") and "O_CREAT" not in line and "O_TRUNC" not in line:
            continue
        assert name in CHANGING | {"open", "openat"}, f"does this call change the disk? {line}"
        found.append(Call(name, counts[match["pid"], name], line))
    assert len({pid for pid, _ in counts}) == 1, "strace counts calls for each process and thread by itself"
    return found


def kill_at(call: Call, arguments: Sequence[str], log: Path) -> Run:
    """Run a worker and kill it as it enters the call. (With --seccomp-bpf strace would not send the signal.)"""
    options = ("-e", f"trace={call.name}", "-e", f"inject={call.name}:signal=SIGKILL:when={call.number}")
    return run(arguments, log, *options)


def fail_at(call: Call, error: str, arguments: Sequence[str], log: Path, more: str = "") -> Run:
    """Run a worker whose call fails; with `more="+"` all later calls of that name fail too."""
    inject = f"inject={call.name}:error={error}:when={call.number}{more}"
    return run(arguments, log, "--seccomp-bpf", "-e", f"trace={call.name}", "-e", inject)
