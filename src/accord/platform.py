"""What differs between Linux and macOS, and nothing else."""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Protocol

    class FileEvents(Protocol):
        """Readable (`fileno`) when a file was written to; `drain` takes note of it."""

        def fileno(self) -> int: ...

        def drain(self) -> None: ...

        def close(self) -> None: ...


HIDDEN = "?"  # when a process was started that is another user's, where the system does not tell

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


def hold(fd: int) -> bool:
    """Lock a whole file for as long as it is open here; whether nobody else had."""
    import fcntl

    try:
        fcntl.fcntl(fd, _SET_LOCK, _lock_record(fcntl.F_WRLCK))
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_held(fd: int) -> bool:
    """Whether somebody holds the file, found without touching their lock."""
    import fcntl

    found = fcntl.fcntl(fd, _GET_LOCK, _lock_record(fcntl.F_WRLCK))
    return _lock_type(found) != fcntl.F_UNLCK


if sys.platform == "darwin":
    import fcntl
    import select

    # Of a process: none of its other parts may open and close a file that it holds.
    _SET_LOCK, _GET_LOCK = fcntl.F_SETLK, fcntl.F_GETLK

    def _lock_record(kind: int) -> bytes:
        import struct

        return struct.pack("qqihh", 0, 0, 0, kind, 0)

    def _lock_type(record: bytes) -> int:
        import struct

        return int(struct.unpack("qqihh", record)[3])

    def peer_of(connection: "_socket.socket") -> tuple[int, int]:
        """The uid and the pid of whoever is at the other end of a unix socket; 0 for a pid that is not known."""
        import struct

        found = connection.getsockopt(0, 0x001, 76)  # SOL_LOCAL, LOCAL_PEERCRED
        pid = connection.getsockopt(0, 0x002)  # LOCAL_PEERPID
        return struct.unpack_from("i", found, 4)[0], pid

    def groups_of(connection: "_socket.socket") -> set[int]:
        """Those that whoever is at the other end of a unix socket was in when it connected."""
        import struct

        found = connection.getsockopt(0, 0x001, 76)
        count = struct.unpack_from("h", found, 8)[0]
        return set(struct.unpack_from(f"{count}I", found, 12))

    def wait_for_end(pid: int, timeout_s: float) -> bool:
        """Whether a process is gone, or goes within that time."""
        queue = select.kqueue()
        try:
            ended = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            return bool(queue.control([ended], 1, timeout_s))
        except ProcessLookupError:
            return True
        finally:
            queue.close()

    def holder_of_port(port: int) -> int:
        """The process that listens there; 0 where that cannot be known."""
        import subprocess

        words = ["/usr/sbin/lsof", "-nP", "-t", f"-iTCP:{port}", "-sTCP:LISTEN"]
        try:
            answer = subprocess.run(words, capture_output=True, check=False, timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            return 0
        first = answer.stdout.split()[:1]
        return int(first[0]) if first else 0

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
        """When the process was started, as one word only good for comparing; "" when there is none, or HIDDEN."""
        import subprocess

        words = ["/bin/ps", "-o", "lstart=", "-p", str(pid)]
        answer = subprocess.run(words, capture_output=True, check=False, env={"TZ": "UTC", "LC_ALL": "C"})
        return "-".join(answer.stdout.decode().split())

    def command_of(pid: int) -> tuple[str, int]:
        """What a process runs, by the name of its file, and the process above; 0 where that is not known."""
        import subprocess

        words = ["/bin/ps", "-o", "ppid=,comm=", "-p", str(pid)]
        answer = subprocess.run(words, capture_output=True, check=False, env={"LC_ALL": "C"})
        above, _, path = answer.stdout.decode(errors="replace").strip().partition(" ")
        return os.path.basename(path.strip()).lstrip("-"), int(above or "0")

    def pid_space() -> str:
        """A name of all processes that are told apart by their pids, until the machine restarts."""
        return boot_id()

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
    # Of an open file, so that nothing else that the holder opens or closes lets go of it.
    _SET_LOCK, _GET_LOCK = 37, 36  # F_OFD_SETLK, F_OFD_GETLK
    _SO_PEERGROUPS = 59

    def _lock_record(kind: int) -> bytes:
        import struct

        return struct.pack("hhqqi4x", kind, 0, 0, 0, 0)

    def _lock_type(record: bytes) -> int:
        import struct

        return int(struct.unpack("hhqqi4x", record)[0])

    def peer_of(connection: "_socket.socket") -> tuple[int, int]:
        """The uid and the pid of whoever is at the other end of a unix socket; 0 for a pid that is not known."""
        import struct
        from socket import SO_PEERCRED, SOL_SOCKET

        pid, uid, _ = struct.unpack("3i", connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
        return uid, pid

    def groups_of(connection: "_socket.socket") -> set[int]:
        """Those that whoever is at the other end of a unix socket was in when it connected; of very many only one."""
        import struct
        from socket import SO_PEERCRED, SOL_SOCKET

        _, _, first = struct.unpack("3i", connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
        try:
            others = connection.getsockopt(SOL_SOCKET, _SO_PEERGROUPS, 1024)  # Python asks for no more
        except OSError:
            others = b""
        return {first, *struct.unpack(f"{len(others) // 4}I", others)}

    def wait_for_end(pid: int, timeout_s: float) -> bool:
        """Whether a process is gone, or goes within that time."""
        import select

        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            return bool(poll.poll(timeout_s * 1000))
        finally:
            os.close(process)

    def holder_of_port(port: int) -> int:
        """The process that listens there; 0 where that cannot be known."""
        sockets = {f"socket:[{inode}]" for inode in _listening(port)}
        for pid in os.listdir("/proc"):
            if pid.isdigit() and sockets.intersection(_open_files(f"/proc/{pid}/fd")):
                return int(pid)
        return 0

    def _listening(port: int) -> "set[str]":
        """The inodes of the sockets that listen on a port."""
        inodes = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            try:
                with open(table, encoding="ascii") as file:
                    rows = [line.split() for line in file][1:]
            except OSError:
                continue
            # The local address, the state (0A: listening) and the inode.
            inodes |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
        return inodes

    def _open_files(folder: str) -> "set[str]":
        found = set()
        try:
            for file in os.listdir(folder):
                found.add(os.readlink(f"{folder}/{file}"))
        except OSError:
            pass  # another user's process, or one that ends
        return found

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
        """When the process was started, as one word only good for comparing; "" when there is none, or HIDDEN."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                # Field 22; the second one, the program's name, may hold spaces and parentheses.
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            return HIDDEN if _is_anothers(pid) else ""
        return "" if fields[0] == b"Z" else fields[19].decode()  # a zombie holds nothing any more

    def command_of(pid: int) -> tuple[str, int]:
        """What a process runs, by the name of its file, and the process above; 0 where that is not known."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                before, _, after = stat.read().rpartition(b")")
        except OSError:
            return "", 0
        return before.partition(b"(")[2].decode(errors="replace"), int(after.split()[1])

    def pid_space() -> str:
        """A name of all processes that are told apart by their pids, until the machine restarts."""
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')}"  # containers count their own

    def _is_anothers(pid: int) -> bool:
        """Whether there is such a process, of another user: these may be hidden in /proc."""
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except OSError:
            pass
        return False

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
