"""Redis on several servers: replicas that confirm, one that takes over, and a Cluster that moves what it holds."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

import pytest

from accord import errors
from accord.store.contract import Moved, Number, Put
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import append, at_once, contents, put, take, values_of
from tests.ports import free_port, free_ports
from tests.servers.redis import RedisServer, new_program, redis_of_its_own

pytestmark = pytest.mark.covers("S2")

LONG_S = 20.0
SLOTS = 16384


def append_one(tx: Transaction) -> Number:
    return tx.append("c", b"")


def ask_until_told(store: Store, key: str) -> Any:
    deadline = time.monotonic() + LONG_S
    while True:
        try:
            return transact(store, append_one, key=key)
        except errors.OutcomeUnknown:
            assert time.monotonic() < deadline


def has_come_to(sent: list[int], goal: int) -> bool:
    return sum(sent) >= goal


def until(true: Callable[[], object]) -> None:
    """What servers come to agree on by themselves, and tell nobody."""
    deadline = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(server: RedisServer, *words: object) -> Any:
    client: Any = server.client()
    with closing(client):
        return client.execute_command(*words)


# Replicas.


@contextmanager
def master_and_replica(path: str = "", **options: str) -> Iterator[tuple[RedisServer, RedisServer]]:
    ports = free_ports(2)
    options = {"repl-diskless-sync-delay": "0", **options}
    with ExitStack() as stack:
        master, replica = (
            stack.enter_context(redis_of_its_own(path=path, port=str(port), **options)) for port in ports
        )
        follow(replica, master)
        yield master, replica


def follow(replica: RedisServer, master: RedisServer) -> None:
    asked(replica, "REPLICAOF", "127.0.0.1", str(master.port))
    until(lambda: replica.client().info("replication").get("master_link_status") == "up")
    until(lambda: has_replica(master))


def has_replica(server: RedisServer) -> bool:
    found: dict[str, Any] = server.client().info("replication")
    return bool(found.get("slave0", {}).get("state") == "online")


def is_master(server: RedisServer) -> bool:
    return bool(server.client().info("replication")["role"] == "master")


@pytest.fixture
def pair() -> Iterator[tuple[RedisServer, RedisServer]]:
    with master_and_replica() as pair:
        yield pair


def test_what_replicas_confirmed_is_there(pair: tuple[RedisServer, RedisServer]) -> None:
    master, replica = pair
    with closing(open_store(master.url(query="wait=1"))) as store:
        for n in range(1, 21):
            append(store, "c")
            assert asked(replica, "HLEN", "{accord}:0:items:c") == n


def test_what_no_replica_confirms_is_unknown_and_asking_again_has_one_effect(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    master, replica = pair
    with closing(open_store(master.url(query="wait=1&timeout_s=0.2"))) as store:
        assert ask_until_told(store, "a") == 1
        with replica.stalled():
            with pytest.raises(errors.OutcomeUnknown, match=r"0 of 1 \(replicas\) confirmed it within 0\.2 s"):
                append(store, "d")
            for _ in range(2):  # the second time it is there, and still nobody confirms it
                with pytest.raises(errors.OutcomeUnknown):
                    transact(store, append_one, key="b")
            with pytest.raises(errors.OutcomeUnknown):
                store.sync()
            assert len(values_of(store, "c")) == 2  # reading goes on
        # How fast a replica goes on is its own affair.
        assert ask_until_told(store, "b") == 2
        assert len(values_of(store, "c")) == 2


def test_a_server_without_the_replicas_that_are_demanded() -> None:
    with (
        redis_of_its_own() as server,
        closing(open_store(server.url(query="wait=2&timeout_s=0.1"))) as store,
        pytest.raises(errors.OutcomeUnknown, match="0 of 2"),
    ):
        append(store, "c")


def test_a_server_that_wants_more_replicas_takes_nothing() -> None:
    with redis_of_its_own() as server, closing(open_store(server.url())) as store:
        append(store, "c")
        asked(server, "CONFIG", "SET", "min-replicas-to-write", "1")
        with pytest.raises(errors.EngineUnreachable, match="min-replicas-to-write"):
            put_soon(store)
        assert len(values_of(store, "c")) == 1


def put_soon(store: Store) -> None:
    store.commit([], [Put("c", "a", b"")], timeout_s=0.1)


def test_what_is_in_the_log_of_a_server_and_of_a_replica() -> None:
    """With WAITAOF an answer waits for the log, also where that is flushed each second."""
    with master_and_replica(new_program(), appendfsync="everysec") as (master, replica):
        with closing(open_store(master.url("one", "waitaof=1,0"))) as store:
            append(store, "c", b"1")
            master.restart()
            assert values_of(store, "c") == [b"1"]
        follow(replica, master)
        with closing(open_store(master.url("two", "waitaof=1,1&timeout_s=3"))) as store:
            append(store, "c", b"1")
            replica.restart()  # which makes it a master by itself
            with closing(open_store(replica.url("two"))) as copy:
                assert values_of(copy, "c") == [b"1"]
        with (
            closing(open_store(master.url("two", "waitaof=1,1&timeout_s=0.2"))) as store,
            pytest.raises(errors.OutcomeUnknown, match="own log and replicas' logs"),
        ):
            append(store, "c")


def test_waitaof_wants_a_log() -> None:
    server = redis_of_its_own(path=new_program(), appendonly="no")
    with server as found, pytest.raises(errors.EngineUnfit, match="CONFIG SET appendonly yes"):
        open_store(found.url(query="waitaof=1,0"))


# Another master.


def url_of_both(first: RedisServer, second: RedisServer, query: str = "") -> str:
    return f"redis://127.0.0.1:{first.port},127.0.0.1:{second.port}?{query}"


def test_a_replica_that_takes_over_begins_a_new_history(pair: tuple[RedisServer, RedisServer]) -> None:
    """It may lack what was acknowledged last, and nobody can tell."""
    master, replica = pair
    with closing(open_store(url_of_both(master, replica, "wait=0"))) as store:
        for _ in range(5):
            append(store, "c")
        with store.snapshot() as snapshot, store.watch([""], 0) as watch:
            epoch = snapshot.epoch
            take(watch, 5)
            until(lambda: asked(replica, "HLEN", "{accord}:0:items:c") == 5)
            master.kill()
            asked(replica, "REPLICAOF", "NO", "ONE")
            with pytest.raises(Moved):
                snapshot.list("c")
            with pytest.raises(errors.HistoryGone):
                watch.next(LONG_S)
        with store.snapshot() as snapshot:
            assert snapshot.epoch != epoch
            assert len(snapshot.list("c")) == 5
        assert append(store, "c").numbers == (6,)
    with closing(open_store(url_of_both(master, replica))) as store:  # the first of them is gone
        assert len(values_of(store, "c")) == 6


def test_a_replica_that_joined_unseen_and_takes_over_begins_a_new_history() -> None:
    """The master looked as if a restart could lose nothing, when the store was opened."""
    ports = free_ports(2)
    with (
        redis_of_its_own(port=str(ports[0]), **{"repl-diskless-sync-delay": "0"}) as master,
        redis_of_its_own(port=str(ports[1])) as replica,
        closing(open_store(url_of_both(master, replica))) as store,
    ):
        with store.snapshot() as snapshot:
            epoch = snapshot.epoch
        append(store, "c")
        follow(replica, master)
        master.kill()
        asked(replica, "REPLICAOF", "NO", "ONE")
        with store.snapshot() as snapshot:
            assert snapshot.epoch != epoch
            assert len(snapshot.list("c")) == 1


def test_masters_that_change_places_are_followed(pair: tuple[RedisServer, RedisServer]) -> None:
    """Several threads send with keys meanwhile, and each message is there once."""
    each, senders = 40, 3
    with closing(open_store(url_of_both(*pair))) as store:
        sent = [0] * senders

        def sender(name: int) -> Callable[[], list[Any]]:
            def run() -> list[Any]:
                numbers: list[Any] = []
                for n in range(each):
                    numbers.append(ask_until_told(store, f"{name}-{n}"))
                    sent[name] += 1
                return numbers

            return run

        def changer() -> list[Any]:
            first, second = pair
            for goal in (20, 60):
                until(partial(has_come_to, sent, goal))
                asked(first, "FAILOVER")
                until(partial(is_master, second))
                first, second = second, first
                until(partial(has_replica, first))
            return []

        found = at_once(*[sender(name) for name in range(senders)], changer)
        assert sorted(number for one in found for number in one) == list(range(1, each * senders + 1))
        assert len(values_of(store, "c")) == each * senders


def test_a_replica_alone_is_no_place_for_a_store(pair: tuple[RedisServer, RedisServer]) -> None:
    _, replica = pair
    with pytest.raises(errors.EngineUnreachable, match="it is a replica"):
        open_store(replica.url())


# Clusters.


class Cluster:
    def __init__(self, nodes: list[RedisServer]) -> None:
        self.nodes = nodes
        self.ids = [asked(node, "CLUSTER", "MYID").decode() for node in nodes]

    def join(self, bus_ports: list[int]) -> None:
        share = SLOTS // len(self.nodes) + 1
        for n, node in enumerate(self.nodes):
            asked(node, "CLUSTER", "ADDSLOTSRANGE", n * share, min(SLOTS, (n + 1) * share) - 1)
            asked(node, "CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, bus_ports[0])
        for node in self.nodes:
            until(partial(self._sees_all, node))

    def _sees_all(self, node: RedisServer) -> bool:
        is_well: bool = b"cluster_state:ok" in asked(node, "CLUSTER", "INFO")
        return is_well and len(asked(node, "CLUSTER", "SLOTS")) == len(self.nodes)

    def url(self, node: int, prefix: str = "accord") -> str:
        return f"redis://127.0.0.1:{self.nodes[node].port}?prefix={prefix}"

    def holder(self, prefix: str) -> int:
        """Which node has the store."""
        key = f"{{{prefix}}}"
        found = [n for n, node in enumerate(self.nodes) if key.encode() in node.client().keys(f"{key}*")]
        assert len(found) == 1
        return found[0]

    def move(self, prefix: str, to: int, halfway: Callable[[], None] = lambda: None) -> None:
        """The slot of a store, as an administrator moves it while clients work."""
        source = self.holder(prefix)
        slot = asked(self.nodes[0], "CLUSTER", "KEYSLOT", f"{{{prefix}}}")
        giver, taker = self.nodes[source], self.nodes[to]
        asked(taker, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[source])
        asked(giver, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.ids[to])
        is_half = False
        while keys := asked(giver, "CLUSTER", "GETKEYSINSLOT", slot, 1):
            asked(giver, "MIGRATE", "127.0.0.1", taker.port, "", 0, 5000, "KEYS", *keys)
            if not is_half:
                halfway()
                is_half = True
        for node in (taker, giver, *self.nodes):
            asked(node, "CLUSTER", "SETSLOT", slot, "NODE", self.ids[to])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    ports = free_ports(6)
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                redis_of_its_own(**{"port": str(port), "cluster-enabled": "yes", "cluster-port": str(bus)})
            )
            for port, bus in zip(ports[:3], ports[3:], strict=True)
        ]
        made = Cluster(nodes)
        made.join(ports[3:])
        yield made


PREFIXES = ["accord", "b", "c:d", "e.f-g_h", "A", "a" * 100]


def test_a_store_lies_on_one_node_and_is_found_from_each(cluster: Cluster) -> None:
    for n, prefix in enumerate(PREFIXES):
        for node in range(3):
            with closing(open_store(cluster.url(node, prefix))) as store, store.watch([""], 0) as watch:
                store.commit([], [])
                append(store, "c", b"%d" % n)
                put(store, "d/e", "i", b"%d" % n)
                take(watch, 2 * (node + 1))
                assert values_of(store, "c") == [b"%d" % n] * (node + 1)
                assert set(contents(store).items) == {"c", "d/e"}
    assert len({cluster.holder(prefix) for prefix in PREFIXES}) > 1
    for one in cluster.nodes:
        for key in asked(one, "KEYS", "*"):
            assert any(f"{key.decode()}:".startswith(f"{{{prefix}}}:") for prefix in PREFIXES)


def test_a_store_that_is_moved_is_followed(cluster: Cluster) -> None:
    """While several send, and one watches: each message is there once, and no change is missing."""
    each, senders = 30, 3
    with closing(open_store(cluster.url(0, "moving"))) as store, store.watch([""], 0) as watch:
        with store.snapshot() as snapshot:
            epoch = snapshot.epoch
        sent = [0] * senders

        def sender(name: int) -> Callable[[], list[Any]]:
            def run() -> list[Any]:
                numbers = []
                for n in range(each):
                    numbers.append(transact(store, append_one, key=f"{name}-{n}"))
                    sent[name] += 1
                return numbers

            return run

        def mover() -> list[Any]:
            for goal in (10, 30, 50):
                until(partial(has_come_to, sent, goal))
                cluster.move("moving", (cluster.holder("moving") + 1) % 3)
            return []

        found = at_once(*[sender(name) for name in range(senders)], mover)
        assert sorted(number for one in found for number in one) == list(range(1, each * senders + 1))
        with store.snapshot() as snapshot:
            newest = snapshot.revision
            assert snapshot.epoch == epoch
        assert [change.revision for change in take(watch, newest)] == list(range(1, newest + 1))


def test_a_store_whose_slot_is_on_its_way_waits_for_it(cluster: Cluster) -> None:
    """Some of its keys are here, some there, and nobody works on half of them."""
    with closing(open_store(cluster.url(0, "halfway"))) as store:
        append(store, "c", b"1")
        reading: list[list[bytes]] = []
        reader = threading.Thread(target=lambda: reading.append(values_of(store, "c")))

        def halfway() -> None:
            with pytest.raises(errors.EngineUnreachable, match="moving the slot"):
                put_soon(store)
            reader.start()

        cluster.move("halfway", (cluster.holder("halfway") + 1) % 3, halfway)
        reader.join(LONG_S)
        assert reading == [[b"1"]]
        assert set(contents(store).items) == {"c"}


def test_a_cluster_has_one_database(cluster: Cluster) -> None:
    with pytest.raises(errors.EngineRefused, match="cluster mode"):
        open_store(f"redis://127.0.0.1:{cluster.nodes[0].port}/1")


def test_of_a_cluster_the_nodes_that_a_url_names_may_be_gone(cluster: Cluster) -> None:
    with closing(open_store(f"redis://127.0.0.1:{free_port()},127.0.0.1:{cluster.nodes[1].port}?prefix=g")) as store:
        append(store, "c", b"1")
        assert values_of(store, "c") == [b"1"]
