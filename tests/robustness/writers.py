"""Processes that commit without end, until they are killed.

`Writers` starts one that imports accord and opens nothing; it forks a writer for each name it is given, so that
a writer costs milliseconds.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from types import TracebackType

from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from tests.readable import readable
from tests.robustness.homes import PYTHON, WORKER_ENV, all_items


class Writers:
    """Running writers, and how many commits of each were acknowledged."""

    def __init__(self, url: str) -> None:
        engine = url.partition(":")[0]
        program = f"import accord.store.engines.{engine}; from tests.robustness.writers import serve; serve()"
        command = [*PYTHON, program, url]
        self._nursery = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=WORKER_ENV, bufsize=0
        )
        self._unread = b""
        self._pidfds: dict[str, int] = {}
        self.acknowledged: Counter[str] = Counter()

    def start(self, name: str) -> None:
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(f"{name}\n".encode())
        while name not in self._pidfds:
            self.listen()

    def listen(self) -> None:
        """Take in what the writers said, at least one line."""
        assert self._nursery.stdout is not None
        said = os.read(self._nursery.stdout.fileno(), 65536)
        assert said, "the writers are gone"
        *lines, self._unread = (self._unread + said).split(b"\n")
        for line in lines:
            word, name, rest = line.decode().split(maxsplit=2)
            assert word != "failed", f"{name} failed: {rest}"
            if word == "acknowledged":
                self.acknowledged[name] += 1
            else:
                self._pidfds[name] = os.pidfd_open(int(rest))

    def kill(self, name: str) -> None:
        """Kill a writer in the midst of its loop, and wait until it is gone and all that it said is heard."""
        pidfd = self._pidfds.pop(name)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        readable([pidfd])
        os.close(pidfd)
        assert self._nursery.stdout is not None
        while readable([self._nursery.stdout], 0):
            self.listen()

    def __enter__(self) -> "Writers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._pidfds):
            pidfd = self._pidfds.pop(name)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._nursery.kill()
        self._nursery.communicate()


def serve() -> None:
    """Fork a writer for each name that comes in."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.buffer.readline():
        name = line.decode().strip()
        pid = os.fork()
        if pid == 0:
            try:
                write_without_end(sys.argv[1], name)
            except Exception as error:
                os.write(1, f"failed {name} {error!r}\n".encode())
                os._exit(1)
        os.write(1, f"started {name} {pid}\n".encode())


def write_without_end(url: str, name: str) -> None:
    store = open_store(url)
    n = 0
    while True:
        n += 1
        transact(store, lambda tx: count_up(tx, name, n))  # noqa: B023 - it is called at once
        os.write(1, f"acknowledged {name} {n}\n".encode())


def count_up(tx: Transaction, name: str, n: int) -> None:
    """The n-th commit of a writer: it counts one further and notes so in three other places."""
    total = tx.get("count", "total")
    tx.put("count", "total", b"%d" % (1 + int(total.value if total else b"0")))
    number = tx.append("log", f"{name} {n}".encode())
    tx.put(f"by/{name}", f"n{n:06d}", (b"", number))
    tx.delete("by/latest", f"n{n - 1:06d}-{name}")
    tx.put("by/latest", f"n{n:06d}-{name}", b"%d" % n)


def counts(store: Store) -> Counter[str]:
    """How many commits of each writer the store holds; every one of them whole, and each once."""
    log = [item.value.decode().split() for item in all_items(store, "log")]
    found: Counter[str] = Counter()
    for name, n in log:
        found[name] += 1
        assert int(n) == found[name], f"commit {n} of {name} is there after {found[name] - 1} others"
    for name in found:
        at = [number for number, line in enumerate(log, 1) if line[0] == name]
        assert [int(item.value) for item in all_items(store, f"by/{name}")] == at
    latest = {item.id: item.value for item in all_items(store, "by/latest")}
    assert latest == {f"n{n:06d}-{name}": b"%d" % n for name, n in found.items()}
    with store.snapshot() as snapshot:
        total = snapshot.get("count", "total")
        assert snapshot.head("log").last == snapshot.revision == len(log)
        assert int(total.value if total else b"0") == len(log)
    return found
