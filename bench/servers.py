"""Servers for the length of a block, as tests have them, but with data on the disk: there a flush takes its time."""

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import place
from tests.ports import free_port
from tests.servers import etcd, redis


@contextmanager
def redis_on_disk() -> Iterator[redis.RedisServer]:
    """Each commit is flushed before it is answered."""
    with place.folder() as folder, redis.redis_of_its_own(port=str(free_port()), dir=folder) as server:
        yield server


@contextmanager
def etcd_on_disk() -> Iterator[etcd.Cluster]:
    """One member."""
    with place.folder() as folder:
        cluster = etcd.Cluster(1, below=Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.remove()


def has_redis() -> bool:
    return _is_there(redis.program)


def has_etcd() -> bool:
    return _is_there(etcd.program)


def _is_there(program: Callable[[], str]) -> bool:
    try:
        program()
    except pytest.skip.Exception:
        return False
    return True


def commands_of(server: redis.RedisServer, work: Callable[[], object]) -> int:
    """How many commands came from outside while that was done, each of which was waited for."""
    with server.client() as client, client.monitor() as monitor:
        client.ping()  # a new connection has more to say
        while monitor.next_command()["command"] != "PING":
            pass
        work()
        client.echo("it is done")
        count = 0
        while True:
            command = monitor.next_command()
            if command["command"] == "ECHO it is done":
                return count
            count += command["client_type"] != "lua"


def calls_of(cluster: etcd.Cluster, work: Callable[[], object]) -> int:
    """How many calls etcd has begun to answer while that was done."""
    before = _calls(cluster)
    work()
    return _calls(cluster) - before


def _calls(cluster: etcd.Cluster) -> int:
    with urllib.request.urlopen(f"http://{cluster.members[0].address}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("grpc_server_started_total"))
