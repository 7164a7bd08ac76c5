"""Three members of etcd, of which the leader is killed, cut off or stopped while agents work."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.services import locks
from accord.store.contract import Number
from accord.store.engines.etcd import gateway
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import append, seconds, values_of
from tests.robustness.histories_crew import Crew
from tests.robustness.test_histories import check_box
from tests.servers.etcd import Cluster, Member
from tests.servers.networks import Networks, networks

pytestmark = pytest.mark.covers("S2")

QUICK = ["--heartbeat-interval=50", "--election-timeout=500"]
LONGEST_S = 60.0

_prefixes = count()


class Team:
    """The cluster, its networks, and what may befall one member."""

    def __init__(self, cluster: Cluster, nets: Networks) -> None:
        self.cluster = cluster
        self.nets = nets

    def leader(self) -> Member:
        return self.cluster.leader()

    def url(self, *members: Member) -> str:
        return self.cluster.url(f"team/{next(_prefixes)}", members)

    def befall(self, what: str, member: Member) -> None:
        if what == "killed":
            member.kill()
        elif what == "stopped":
            member.freeze()
        else:
            self.nets.cut_off(self.cluster.members.index(member))

    def heal(self) -> None:
        self.nets.heal()
        for member in self.cluster.members:
            if member.is_running():
                member.thaw()
            else:
                self.cluster.start_one(member)
        for member in self.cluster.members:
            self.cluster.wait_for(member)

    def others(self, member: Member) -> list[Member]:
        return [other for other in self.cluster.members if other is not member]


@pytest.fixture(scope="module")
def shared() -> Iterator[Team]:
    with networks(3) as nets:
        cluster = Cluster(3, nets.hosts, QUICK)
        for n, member in enumerate(cluster.members):
            member.peer_host = nets.peers[n]
            member.words = nets.words(n)
        try:
            cluster.start()
            yield Team(cluster, nets)
        finally:
            cluster.remove()


@pytest.fixture
def team(shared: Team) -> Iterator[Team]:
    yield shared
    shared.heal()


class Load:
    """Who sends, who listens, and who takes turns with a lock: all at once, until `stop`; each insists."""

    SENDERS = 3

    def __init__(self, url: str) -> None:
        self.url = url
        self.sent: list[list[int]] = [[] for _ in range(self.SENDERS)]
        self.heard: list[int] = []
        self.fences: list[int] = []
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> "Load":
        self._pool = ThreadPoolExecutor(self.SENDERS + 3)
        self._workers = [self._pool.submit(self._send, n) for n in range(self.SENDERS)]
        self._workers += [self._pool.submit(self._lock, name) for name in ("ann", "ben")]
        self._listener: Future[None] = self._pool.submit(self._listen)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        wait(self._workers)
        self._ended.set()
        self._pool.shutdown()
        for worker in [*self._workers, self._listener]:
            worker.result()

    def go_on(self, commits: int) -> None:
        """Until each sender was acknowledged so many more, and the lock changed hands."""
        wanted = [len(numbers) + commits for numbers in self.sent]
        fences = len(self.fences)
        deadline = time.monotonic() + LONGEST_S
        while len(self.fences) == fences or any(
            len(sent) < least for sent, least in zip(self.sent, wanted, strict=True)
        ):
            assert not any(worker.done() for worker in [*self._workers, self._listener])
            assert time.monotonic() < deadline, "nothing goes on"
            time.sleep(0.01)

    def _send(self, n: int) -> None:
        numbers = self.sent[n]
        with closing(open_store(self.url)) as store:
            while not self._stopping.is_set():
                text = f"{n}-{len(numbers)}"
                numbers.append(insist(store, partial(send, text=text), text))

    def _lock(self, owner: str) -> None:
        """Hold the lock, again and again; each time under a number that nobody had before."""
        with closing(open_store(self.url)) as store:
            for turn in count():
                if self._stopping.is_set():
                    return
                ticket = f"{owner}-{turn}"
                lock = insist(store, partial(take, owner=owner, ticket=ticket), f"take-{ticket}")
                if not lock:
                    continue
                self.fences.append(lock)
                insist(store, partial(give_back, owner=owner, token=lock), f"give-{ticket}")

    def _listen(self) -> None:
        deadline = time.monotonic() + 2 * LONGEST_S
        with closing(open_store(self.url)) as store, store.watch(["mail"], 0) as watch:
            while not self._ended.is_set() or self.heard[-1] < len(values_of(store, "mail")):
                assert time.monotonic() < deadline
                with suppress(errors.EngineUnreachable):
                    change = watch.next(0.2)
                    self.heard += [int(id) for _, id in change.keys] if change else []

    def check(self) -> None:
        """All that was acknowledged is there once, in order; who listened heard all; the fences grew."""
        with closing(open_store(self.url)) as store:
            kept = values_of(store, "mail")
        for n, numbers in enumerate(self.sent):
            assert [kept[number - 1].decode() for number in numbers] == [f"{n}-{k}" for k in range(len(numbers))]
        assert len(kept) == sum(map(len, self.sent))
        assert self.heard == list(range(1, len(kept) + 1))
        assert len(set(self.fences)) == len(self.fences)


def insist(store: Store, work: Callable[[Transaction], Any], key: str) -> int:
    """Once, however often it takes to be told."""
    deadline = time.monotonic() + LONGEST_S
    while True:
        try:
            return int(transact(store, lambda tx: {"answer": work(tx)}, key=key)["answer"])
        except (errors.OutcomeUnknown, errors.EngineUnreachable, errors.Contention):
            assert time.monotonic() < deadline


def send(tx: Transaction, text: str) -> Number:
    return tx.append("mail", text.encode())


def take(tx: Transaction, owner: str, ticket: str) -> int:
    lock = locks.grant(tx, "door", owner, 60, "", ticket)
    return lock.token if lock else 0


def give_back(tx: Transaction, owner: str, token: int) -> int:
    locks.release(tx, "door", owner, token)
    return 1


@pytest.mark.covers("S1", "S4", "S7")
@pytest.mark.parametrize(
    "what",
    ["killed", pytest.param("cut off", marks=pytest.mark.more), pytest.param("stopped", marks=pytest.mark.more)],
)
def test_nothing_is_lost_when_the_leader_is(team: Team, tmp_path: Path, what: str) -> None:
    url = team.url()
    with Load(team.url()) as load, Crew("operate", url, tmp_path) as crew:
        for n in range(2):
            crew.start(f"w{n}", seed=n, is_faulty=False)
        hear(crew, 20)
        load.go_on(5)
        team.befall(what, team.leader())
        load.go_on(20)
        hear(crew, 40)
        team.heal()
        load.go_on(10)
        hear(crew, 20)
    load.check()
    with closing(open_store(url)) as store:
        check_box(store, tmp_path, 0)


def hear(crew: Crew, operations: int) -> None:
    """Until so much more was done."""
    done = 0
    while done < operations:
        done += len(crew.hear())


@pytest.mark.covers("S7")
def test_who_reaches_only_the_old_leader_reads_nothing_stale(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses, from the first moment on, and says that it has no majority; the others go on."""
    monkeypatch.setattr(gateway, "_ELECTION_S", 1.0)
    monkeypatch.setattr(gateway, "_ATTEMPT_S", 0.5)
    leader = team.leader()
    url = team.url(leader)
    with closing(open_store(url)) as inside:
        first = insist(inside, lambda tx: take(tx, "ann", "t1"), "take")
        with closing(open_store(through(team.others(leader), team, url))) as outside:
            append(outside, "c")
            team.befall("cut off", leader)
            asked = time.monotonic()
            # The first of these reads come before anybody has noticed.
            with ThreadPoolExecutor() as pool:
                reads = [pool.submit(refusal, inside) for _ in range(4)]
                insist(outside, lambda tx: give_back(tx, "ann", first), "give")
                second = insist(outside, lambda tx: take(tx, "ben", "t2"), "take2")
                assert second > first
                assert {read.result() for read in reads} == {"ENGINE_UNREACHABLE"}
            assert time.monotonic() - asked < 30
            with pytest.raises(errors.AccordError) as refused:
                append(inside, "c")
            assert refused.value.code in {"ENGINE_UNREACHABLE", "OUTCOME_UNKNOWN"}
            team.heal()
            with inside.snapshot() as snapshot:
                assert locks.find(Transaction(inside, snapshot), "door").owner == "ben"
            assert append(inside, "c").numbers[0] in {2, 3}


def through(members: list[Member], team: Team, url: str) -> str:
    """The same place, asked for at these."""
    prefix = url.partition("?")[0].split("/", 3)[3]
    return team.cluster.url(prefix, members)


def refusal(store: Store) -> str:
    """What a read of the lock says: the error's code, or who holds it."""
    try:
        with store.snapshot() as snapshot:
            return locks.find(Transaction(store, snapshot), "door").owner
    except errors.AccordError as error:
        return error.code


@pytest.mark.more
def test_the_member_in_use_is_left_when_it_dies(team: Team) -> None:
    """A dead one in front costs little, and is asked last from then on."""
    leader = team.leader()
    follower = team.others(leader)[0]
    with closing(open_store(team.url(follower, *team.others(follower)))) as store:
        append(store, "c")
        follower.kill()
        assert seconds(lambda: append(store, "c")) < 2
        assert append(store, "c").numbers == (3,)
