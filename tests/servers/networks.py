"""Network namespaces, one for each of several servers: tests reach each of them, and cut it off from the others."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.need import lack, need


class Networks:
    """Each server has an address for tests and one for its peers, who share a bridge."""

    def __init__(self, count: int) -> None:
        self._name = f"acc{os.getpid() % 1_000_000}"
        net = f"10.{64 + os.getpid() % 64}"
        self._spaces = [f"{self._name}s{n}" for n in range(count)]
        self.hosts = [f"{net}.{n}.2" for n in range(count)]
        self.peers = [f"{net}.99.{n + 1}" for n in range(count)]
        self._gateways = [f"{net}.{n}.1" for n in range(count)]

    def words(self, n: int) -> list[str]:
        """What runs a command there."""
        return ["ip", "netns", "exec", self._spaces[n]]

    def cut_off(self, n: int) -> None:
        """From its peers; tests reach it all the same."""
        _ip(f"link set {self._name}p{n} down")

    def heal(self) -> None:
        for n in range(len(self.hosts)):
            _ip(f"link set {self._name}p{n} up")

    def make(self) -> None:
        bridge = f"{self._name}b"
        _ip(f"link add {bridge} type bridge")
        _ip(f"link set {bridge} up")
        for n, space in enumerate(self._spaces):
            _ip(f"netns add {space}")
            for kind, inside in (("c", "eth0"), ("p", "eth1")):
                _ip(f"link add {self._name}{kind}{n} type veth peer name {inside} netns {space}")
                _ip(f"link set {self._name}{kind}{n} up")
                _ip(f"-n {space} link set {inside} up")
            _ip(f"-n {space} link set lo up")
            _ip(f"link set {self._name}p{n} master {bridge}")
            _ip(f"addr add {self._gateways[n]}/30 dev {self._name}c{n}")
            _ip(f"-n {space} addr add {self.hosts[n]}/30 dev eth0")
            _ip(f"-n {space} addr add {self.peers[n]}/24 dev eth1")

    def remove(self) -> None:
        for space in self._spaces:
            with suppress(subprocess.CalledProcessError):
                _ip(f"netns del {space}")  # its ends of the links go with it
        with suppress(subprocess.CalledProcessError):
            _ip(f"link del {self._name}b")


@contextmanager
def networks(count: int) -> Iterator[Networks]:
    need("ip")
    if os.getuid() != 0:
        lack("servers are cut off by root alone")
    made = Networks(count)
    try:
        made.make()
    except subprocess.CalledProcessError as error:
        made.remove()
        lack(f"no network namespaces can be made here: {error.stderr}")
    try:
        yield made
    finally:
        made.remove()


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True, timeout=20)
