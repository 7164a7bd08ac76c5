"""What differs between Linux and macOS, and nothing else."""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class FileEvents(Protocol):
        """Readable (`fileno`) when a file was written to; `drain` takes note of it."""

        def fileno(self) -> int: ...

        def drain(self) -> None: ...

        def close(self) -> None: ...


_boot_id = ""


def boot_seconds() -> float:
    """Seconds since this machine started: they run on while it sleeps and never jump with the wall clock."""
    return time.clock_gettime(_BOOT_CLOCK)


def boot_id() -> str:
    """A name of the time since this machine started; another after each start."""
    global _boot_id
    if not _boot_id:
        _boot_id = _read_boot_id()
    return _boot_id


def watch_file(path: str) -> "FileEvents | None":
    """The writes to a file, to be polled for; None where the system can give no more of these."""
    try:
        return _FileEvents(path)
    except OSError:
        return None


if sys.platform == "darwin":
    import fcntl
    import select

    FLUSHES_WITH_FDATASYNC = False  # which leaves the data in the drive's cache

    _BOOT_CLOCK = time.CLOCK_MONOTONIC_RAW

    def flush(fd: int) -> None:
        """Return when what was written to `fd` is on the disk, not in a cache of the drive."""
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

    def flush_tree(folder_fd: int) -> None:
        """Return when everything written so far to the file system of `folder_fd` is on the disk."""
        os.sync()
        flush(folder_fd)

    def process_started(pid: int) -> str:
        """When the process was started, as one word only good for comparing; "" when there is none."""
        import subprocess

        answer = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
        return "-".join(answer.stdout.decode().split())

    def _read_boot_id() -> str:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(buffer))
        if libc.sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0) != 0:
            raise OSError(ctypes.get_errno(), "sysctl kern.bootsessionuuid")
        return buffer.value.decode()

    class _FileEvents:
        def __init__(self, path: str) -> None:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._queue = select.kqueue()
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            event = select.kevent(self._file, select.KQ_FILTER_VNODE, flags, select.KQ_NOTE_WRITE)
            self._queue.control([event], 0)

        def fileno(self) -> int:
            return self._queue.fileno()

        def drain(self) -> None:
            self._queue.control(None, 16, 0)

        def close(self) -> None:
            self._queue.close()
            os.close(self._file)

else:
    FLUSHES_WITH_FDATASYNC = True

    _BOOT_CLOCK = time.CLOCK_BOOTTIME
    _IN_MODIFY = 0x2

    def flush(fd: int) -> None:
        """Return when what was written to `fd` is on the disk, not in a cache of the drive."""
        os.fdatasync(fd)

    def flush_tree(folder_fd: int) -> None:
        """Return when everything written so far to the file system of `folder_fd` is on the disk."""
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(folder_fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def process_started(pid: int) -> str:
        """When the process was started, as one word only good for comparing; "" when there is none."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                # Field 22; the second one, the program's name, may hold spaces and parentheses.
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == b"Z" else fields[19].decode()  # a zombie holds nothing any more

    def _read_boot_id() -> str:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()

    class _FileEvents:
        def __init__(self, path: str) -> None:
            import ctypes

            libc = ctypes.CDLL(None, use_errno=True)
            self._fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._fd < 0:
                raise OSError(ctypes.get_errno(), "inotify_init1")
            if libc.inotify_add_watch(self._fd, os.fsencode(path), _IN_MODIFY) < 0:
                code = ctypes.get_errno()
                os.close(self._fd)
                raise OSError(code, "inotify_add_watch")

        def fileno(self) -> int:
            return self._fd

        def drain(self) -> None:
            try:
                while os.read(self._fd, 65536):
                    pass
            except BlockingIOError:
                pass

        def close(self) -> None:
            os.close(self._fd)
