"""Hubs of people under test: started as everybody starts them, looked at from outside, and gone at the end."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from accord import errors, place, platform
from accord.client import Connection
from accord.services import hub
from tests.cli.users import ACCORD, User
from tests.hubs import logged
from tests.need import need

TIMEOUT_S = 20.0
MEMORY = Path("/dev/shm")

Found = TypeVar("Found")


@contextmanager
def somebody(below: str = "") -> Iterator[User]:
    """Somebody without a home yet, in memory where flushes cost nothing; their hub is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    folder.chmod(0o755)  # another user may look, where a test has one
    (folder / below).mkdir(parents=True, exist_ok=True)
    user = User(folder / below)
    if "PYTHONPATH" in os.environ:
        user.env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    try:
        yield user
    finally:
        end_hub(user)
        shutil.rmtree(folder)


def end_hub(user: User) -> None:
    """Stop the hub, and kill it if it does not obey; also those that never came to hold the lock."""
    there = daemons(user)
    for pid in there:
        signal_to(pid, signal.SIGCONT)
    if there:
        subprocess.run([ACCORD, "hub", "stop", "--deadline", "1"], env=user.env, capture_output=True, timeout=TIMEOUT_S)
    for pid in daemons(user):
        signal_to(pid, signal.SIGKILL)
        platform.wait_for_end(pid, TIMEOUT_S)


def daemons(user: User) -> list[int]:
    """The processes that are a hub of this home, or want to become it."""
    found = []
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if b"accord.daemon" in b" ".join(words[1:4]) and str(user.home).encode() in words:
            found.append(int(pid))
    return found


def signal_to(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it is gone already


def start(user: User, *options: str) -> int:
    """Start a hub; its pid."""
    return int(user.json("hub", "start", *options)["pid"])


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert platform.wait_for_end(pid, TIMEOUT_S)


def status(user: User) -> dict[str, Any]:
    return hub.status(str(user.home))


@contextmanager
def foreground(user: User, *program: str, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A hub that is a child of this process: `accord hub start --foreground`, or another program that becomes one."""
    words = program or (ACCORD, "hub", "start", "--foreground")
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=more.pop("env", user.env),
        **more,
    ) as process:
        try:
            wait_until(lambda: status(user)["pid"] == process.pid or process.poll() is not None, "a hub")
            assert process.poll() is None, process.communicate(timeout=TIMEOUT_S)[0]
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@contextmanager
def running(user: User, *words: str, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that runs meanwhile, and no longer."""
    with user.start(*words, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def daemon_program(user: User, before: str = "") -> tuple[str, ...]:
    """A program that is a hub, after having done something else."""
    return (
        sys.executable,
        "-c",
        f"import os, sys\n{before}\nfrom accord.daemon import main\nos._exit(main(sys.argv[2:]))",
        "accord.daemon",
        str(user.home),
    )


def wait_until(find: Callable[[], Found], what: str, timeout_s: float = TIMEOUT_S) -> Found:
    """What is found, as soon as that is anything."""
    deadline = time.monotonic() + timeout_s
    while not (found := find()):
        assert time.monotonic() < deadline, f"never seen: {what}"
        time.sleep(0.002)
    return found


def complaint(listener: "subprocess.Popen[bytes]", what: str) -> str:
    """The line, of what it says on standard error, in which something stands."""
    assert listener.stderr is not None
    os.set_blocking(listener.stderr.fileno(), False)
    said = [b""]

    def look() -> str:
        said[0] += listener.stderr.read() or b""  # type: ignore[union-attr]
        return next((line for line in said[0].decode().splitlines() if what in line), "")

    return wait_until(look, f"{what!r} in what it says")


def connect(user: User) -> Connection:
    return Connection(place.socket_path(str(user.home)), TIMEOUT_S)


def operator(user: User) -> Connection:
    """A connection that may do everything."""
    connection = connect(user)
    token = (user.home / "operator/token").read_text().strip()
    connection.call("session.open", {"operator": token}, TIMEOUT_S)
    return connection


def token_of(user: User, name: str) -> str:
    return (user.home / f"agents/{name}.token").read_text().strip()


def refusal(connection: Connection, method: str, params: dict[str, Any]) -> str:
    """The code of the error that a request ends with."""
    with pytest.raises(errors.AccordError) as caught:
        connection.call(method, params, TIMEOUT_S)
    return caught.value.code


def command(user: User, *words: str, **more: Any) -> dict[str, Any]:
    """What the command line sends to have a command run in the hub."""
    from accord import __version__

    return {
        "version": __version__,
        "argv": list(words),
        "cwd": str(user.work),
        "env": {name: user.env[name] for name in ("HOME", "ACCORD_HOME")},
        "terminal": [False, False, False],
        "width": 80,
        "request": os.urandom(16).hex(),
        "project": ["", ""],
        "key": "",
        "tokens": {},
        **more,
    }


def log(user: User, event: str) -> list[dict[str, Any]]:
    return logged(user.home, event)


def statistics(user: User) -> dict[str, Any]:
    """What the hub has counted by now."""
    before = len(log(user, "statistics"))
    os.kill(status(user)["pid"], signal.SIGUSR1)
    return wait_until(lambda: log(user, "statistics")[before:], "statistics")[-1]


def bodies(user: User, name: str) -> list[str]:
    """The texts of somebody's unread messages, which stay unread."""
    done = user.run("--json", "check", name, "--peek", "--limit", "1000")
    assert done.code == 0, done
    return [message["message"] for message in done.json["messages"]]


def was_run_here(user: User, *words: str, code: int = 0, **more: Any) -> bool:
    """Run a command; whether its own process did it, which is whether that opened a store."""
    trace = user.folder / "opened"
    tracing = (need("strace"), "-f", "-qq", "-e", "trace=openat,open", "-o", str(trace), ACCORD)
    done = user.run(*words, command=tracing, **more)
    assert done.code == code, done
    return "store.db" in trace.read_text(errors="replace")


def memory_of(pid: int) -> int:
    """What a process holds in memory, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_of(pid: int) -> float:
    """The seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
