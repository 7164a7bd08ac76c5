"""What docs/guarantees.md says of servers that are killed, lose power or have replicas, and no other test shows."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from accord import errors
from accord.store.contract import Append
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import transact
from tests.ports import free_port
from tests.robustness.homes import all_items
from tests.robustness.servers_cut import Log, far
from tests.robustness.test_histories import transfer_under_kills
from tests.servers.etcd import Cluster, etcd_server
from tests.servers.redis import RedisServer, new_program, redis_of_its_own, redis_server

pytestmark = pytest.mark.covers("S2")

ENOUGH = 60  # commits
LONG_S = 60.0
PATIENCE_S = 5.0

ALWAYS, EVERYSEC, NO = ({"appendfsync": policy} for policy in ("always", "everysec", "no"))


class Writer:
    """Commits without end, in a thread of its own, and counts what was acknowledged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run)
        self.done = 0
        self.error: errors.AccordError | None = None

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Once its server is gone."""
        self._is_over = True
        self._thread.join(LONG_S)

    def wait(self, more: int) -> None:
        with self._changed:
            wanted = self.done + more
            assert self._changed.wait_for(lambda: self.done >= wanted or self.error, LONG_S)
            assert not self.error, self.error

    def wait_until_refused(self) -> errors.AccordError | None:
        self._thread.join(LONG_S)
        return self.error

    def _run(self) -> None:
        while not self._is_over and not self.error:
            try:
                self._store.commit((), [Append("c", b"x")], timeout_s=PATIENCE_S)
                self.done += 1
            except errors.AccordError as error:
                self.error = error
            with self._changed:
                self._changed.notify_all()


def kept(url: str, acknowledged: int) -> int:
    """How many of these are there: the first ones, without a gap."""
    with closing(open_store(url)) as store:
        found = [int(item.id) for item in all_items(store, "c")]
    assert found == list(range(1, len(found) + 1))
    return min(len(found), acknowledged)


def lost_when(
    url: str, end: Callable[[Writer], object], start_again: Callable[[], object], there: str = "", enough: int = ENOUGH
) -> int:
    """How many commits that were acknowledged are gone once a server was ended in their midst, and is there again."""
    with closing(open_store(url)) as store, Writer(store) as writer:
        writer.wait(enough)
        end(writer)
    start_again()
    return writer.done - kept(there or url, writer.done)


# Killed.


@pytest.mark.parametrize("options", [ALWAYS, NO], ids=["always", "no"])
def test_a_killed_redis_has_what_it_acknowledged(options: dict[str, str]) -> None:
    with redis_of_its_own(**options) as server:
        assert lost_when(server.url(), lambda writer: server.kill(), server.start) == 0


def test_a_killed_redis_that_flushes_each_second_may_lose_what_came_during_a_flush(tmp_path: Path) -> None:
    """It acknowledges before it writes anything while a flush is under way, here a slow one."""
    with redis_of_its_own(**EVERYSEC) as server:
        open_store(server.url()).close()
        log = Log(server.pid, ".incr.aof", tmp_path, "-e", "inject=fdatasync:delay_enter=1900000")

        def end(writer: Writer) -> None:
            size = -1
            while size != (size := log.path.stat().st_size):
                writer.wait(20)
            server.kill()

        assert lost_when(server.url(), end, server.start) >= 20


def test_a_killed_redis_without_a_log_has_nothing() -> None:
    with redis_of_its_own(appendonly="no") as server:
        assert lost_when(server.url(), lambda writer: server.kill(), server.start) >= ENOUGH


@pytest.mark.parametrize("members", [1, pytest.param(3, marks=pytest.mark.more)])
def test_a_killed_etcd_has_what_it_acknowledged(members: int) -> None:
    with cluster(members) as etcd:

        def end(writer: Writer) -> None:
            for member in etcd.members:
                member.kill()

        assert lost_when(etcd.url("p"), end, etcd.start) == 0


@contextmanager
def cluster(members: int) -> Iterator[Cluster]:
    found = Cluster(members)
    try:
        found.start()
        yield found
    finally:
        found.remove()


@pytest.mark.parametrize("name", ["redis", pytest.param("etcd", marks=pytest.mark.more)])
def test_processes_that_are_killed_leave_all_or_nothing(name: str, tmp_path: Path) -> None:
    """Those who ask a server; whoever asks again with the same key gets one effect."""
    url = redis_server().url("killed") if name == "redis" else etcd_server().url("killed")
    transfer_under_kills(url, tmp_path, transfers=100, kills=5)


# Members.


def test_an_etcd_of_three_goes_on_without_its_leader() -> None:
    with cluster(3) as etcd:
        with closing(open_store(etcd.url("p"))) as store:
            for _ in range(ENOUGH):
                store.commit((), [Append("c", b"x")])
            etcd.leader().kill()
            # Until there is another leader nobody knows what becomes of a commit, so this one has a key.
            transact(store, lambda tx: {"number": tx.append("c", b"x")}, key="after", timeout_s=LONG_S)
        assert kept(etcd.url("p"), ENOUGH + 1) == ENOUGH + 1


@pytest.mark.more
def test_a_member_of_etcd_without_a_majority_answers_nothing() -> None:
    with cluster(3) as etcd:
        first, *others = etcd.members
        url = etcd.url("p", [first])
        with closing(open_store(url)) as store:
            store.commit((), [Append("c", b"x")])
            for member in others:
                member.kill()
            with pytest.raises((errors.EngineUnreachable, errors.OutcomeUnknown)):
                store.commit((), [Append("c", b"x")])
            with pytest.raises(errors.EngineUnreachable), store.snapshot() as snapshot:
                snapshot.list("c")
            for member in others:
                etcd.start_one(member)
            etcd.wait_for(first)
        assert kept(url, 1) == 1


# Clocks.


def test_a_lease_on_etcd_ends_by_the_clock_of_who_looks_and_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    real_time = time.time
    with closing(open_store(etcd_server().url("clock", query=""))) as store:
        lease_ends = store.now().plus(10)
        monkeypatch.setattr(time, "time", lambda: real_time() + 10.5)
        assert not lease_ends.is_over(store.now())
        monkeypatch.setattr(time, "time", lambda: real_time() + 11.5)
        assert lease_ends.is_over(store.now())


def test_a_lease_on_redis_ends_by_the_servers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(redis_server().url("clock"))) as store:
        lease_ends = store.now().plus(3600)
        monkeypatch.setattr(time, "time", lambda: 1e10)
        assert not lease_ends.is_over(store.now())
        seconds, microseconds = redis_server().client().time()
        assert 0 <= seconds + microseconds / 1e6 - store.now().seconds + 1 < 60


# Cut off from power.


def test_a_redis_that_flushes_always_loses_nothing_with_its_power(tmp_path: Path) -> None:
    with redis_of_its_own(**ALWAYS) as server:
        assert power_cut(server, tmp_path) == 0


def test_a_redis_that_never_flushes_loses_all_with_its_power(tmp_path: Path) -> None:
    """What the system has not written by itself, which takes it half a minute."""
    with redis_of_its_own(**NO) as server:
        assert power_cut(server, tmp_path) >= ENOUGH


def test_a_redis_that_flushes_each_second_loses_up_to_that_with_its_power(tmp_path: Path) -> None:
    with redis_of_its_own(**EVERYSEC) as server:
        # A flush may come between the last commit and the cut; three in a row will not.
        assert max(power_cut(server, tmp_path) for _ in range(3)) > 0


@pytest.mark.parametrize(("options", "promised"), [(ALWAYS, "power"), (EVERYSEC, "none")], ids=["always", "everysec"])
def test_what_waited_for_a_flush_and_is_lost_was_never_promised(
    options: dict[str, str], promised: str, tmp_path: Path
) -> None:
    """Valkey 9.1.2 answers WAITAOF within 0.1 s without a flush, if it flushes each second."""
    with redis_of_its_own(path=new_program(), **options) as server:
        with closing(open_store(server.url(query="waitaof=1,0"))) as store:
            assert store.durability == promised
        assert power_cut(server, tmp_path, "waitaof=1,0", enough=3) == 0 or promised == "none"


def power_cut(server: RedisServer, folder: Path, query: str = "", enough: int = ENOUGH) -> int:
    """How many commits are lost with it."""
    url = server.url(query=query)
    open_store(url).close()
    log = Log(server.pid, ".incr.aof", folder)

    def end(writer: Writer) -> None:
        server.kill()
        log.cut()

    return lost_when(url, end, server.start, enough=enough)


def test_an_etcd_loses_nothing_with_its_power(tmp_path: Path) -> None:
    with cluster(1) as etcd:
        [member] = etcd.members
        assert member.process is not None
        log = Log(member.process.pid, ".wal", tmp_path)

        def end(writer: Writer) -> None:
            member.kill()
            log.cut()

        assert lost_when(etcd.url("p"), end, etcd.start) == 0


def test_what_was_flushed_is_told_from_the_calls() -> None:
    lines = [
        '7 write(3</x/a.aof>, ""..., 10) = 10',
        "8 fdatasync(3</x/a.aof> <unfinished ...>",
        '7 write(3</x/a.aof>, ""..., 5 <unfinished ...>',
        '9 write(4</x/other>, ""..., 100) = 100',
        "7 <... write resumed>) = 5",
        "8 <... fdatasync resumed>) = 0",
        "8 fdatasync(4</x/other>) = 0",
        "7 fdatasync(3</x/a.aof>) = -1 EIO (Input/output error)",
    ]
    assert far(lines, ".aof") == (15, 10)
    assert far(lines[:5], ".aof") == (15, 0)
    assert far([*lines, "7 fdatasync(3</x/a.aof>) = 0"], ".aof") == (15, 15)


# Replicas.


@contextmanager
def master_and_replica() -> Iterator[tuple[RedisServer, RedisServer]]:
    with (
        redis_of_its_own(port=str(free_port()), **{"repl-diskless-sync-delay": "0"}) as master,
        redis_of_its_own(port=str(free_port()), replicaof=f"127.0.0.1 {master.port}") as replica,
    ):
        deadline = time.monotonic() + LONG_S
        while replica.client().info("replication")["master_link_status"] != "up":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield master, replica


def test_with_wait_a_replica_in_the_masters_place_has_all_that_was_acknowledged() -> None:
    with master_and_replica() as (master, replica):

        def end(writer: Writer) -> None:
            with replica.stalled():
                error = writer.wait_until_refused()
                assert isinstance(error, errors.OutcomeUnknown), error
                master.kill()

        def take_over() -> None:
            replica.client().replicaof("NO", "ONE")

        assert lost_when(master.url(query="wait=1&timeout_s=3"), end, take_over, replica.url()) == 0


def test_without_wait_a_replica_in_the_masters_place_lacks_what_had_not_come() -> None:
    with master_and_replica() as (master, replica):

        def end(writer: Writer) -> None:
            os.kill(replica.pid, signal.SIGSTOP)
            writer.wait(ENOUGH)
            master.kill()

        def take_over() -> None:
            replica.kill()  # and with it what waits in its socket, which never reached it
            replica.set(replicaof="no one")
            replica.start()

        assert lost_when(master.url(), end, take_over, replica.url()) >= ENOUGH - 1
