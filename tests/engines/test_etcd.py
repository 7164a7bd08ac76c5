"""etcd: what its administrators do to it, what happens to its requests on their way, and how it is asked."""

import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.store.contract import Append, CollectionIs, Conflict, Delete, ItemIs, Moved, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.testing.conformance.tools import (
    append,
    at_once,
    contents,
    is_quiet,
    put,
    raises,
    seconds,
    take,
    value_of,
    values_of,
)
from tests.often import often
from tests.ports import free_ports
from tests.servers.etcd import Cluster, etcd_server
from tests.servers.etcd_between import LOST, Between

pytestmark = pytest.mark.covers("S2")

_prefixes = count()


@pytest.fixture
def url() -> str:
    """An empty place in the cluster that tests share."""
    return etcd_server().url(f"etcd/{next(_prefixes)}")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        yield store


@pytest.fixture
def between() -> Iterator[Between]:
    with Between(etcd_server().members[0].address) as between:
        yield between


@pytest.fixture
def watched(between: Between) -> Iterator[Store]:
    """A store that is reached through `between`, and knows already where it is."""
    with closing(open_store(f"etcd://{between.address}/between/{next(_prefixes)}?clock_skew_s=0")) as store:
        append(store, "c", b"first")
        between.asked.clear()
        yield store


@pytest.fixture(scope="module")
def shared_own() -> Iterator[Cluster]:
    cluster = Cluster(1)
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.fixture
def own(shared_own: Cluster) -> Cluster:
    """A cluster that tests may compact and restart."""
    member = shared_own.members[0]
    if not member.is_running():
        shared_own.start_one(member)
        shared_own.wait_for(member)
    return shared_own


def own_url(cluster: Cluster) -> str:
    return cluster.url(f"own/{next(_prefixes)}")


def compact(cluster: Cluster) -> None:
    """Forget all but what there is now; it writes something else first, as others do who share a cluster."""
    cluster.ctl("put", "something/else", "")
    cluster.ctl("compact", "--physical", str(revision_of_etcd(cluster)))


def place_of(store: Store) -> str:
    return str(getattr(store, "path"))  # noqa: B009 - the engine's own


def revision_of_etcd(cluster: Cluster) -> int:
    found = json.loads(cluster.ctl("get", "no-such-key", "-w", "json"))
    return int(found["header"]["revision"])


def append_one(tx: Transaction, value: bytes = b"") -> object:
    return {"number": tx.append("c", value)}


# How it asks.


def test_a_transaction_takes_two_round_trips(between: Between, watched: Store) -> None:
    def work(tx: Transaction) -> None:
        for id in ("a", "b"):
            tx.get("d", id)
        number = tx.append("c", b"")
        tx.put("d", "a", (number,))

    transact(watched, work, key="k", expected=[("d", "a"), ("d", "b")])
    assert len(between.asked) == 2


def test_all_that_is_read_is_linearizable(between: Between, watched: Store) -> None:
    contents(watched)
    put(watched, "d", "a")
    watched.commit([ItemIs("d", "b", 0)], [])
    with closing(open_store(place_of(watched))) as other:
        contents(other)
    assert between.asked
    for path, asked in between.asked:
        assert path == "/v3/kv/txn"
        assert "serializable" not in json.dumps(asked)
        # A txn without a range would be answered by a member that was cut off.
        assert asked["success"]


@pytest.mark.parametrize("reverse", [False, pytest.param(True, marks=pytest.mark.more)])
def test_a_page_of_a_long_collection_asks_for_an_exact_range(between: Between, watched: Store, reverse: bool) -> None:
    """etcd walks over all keys of a range, whatever the limit."""
    fill = [Append("long", b"") for _ in range(50)]
    for _ in range(60):
        watched.commit([], fill)
    between.asked.clear()
    with watched.snapshot() as snapshot:
        page = snapshot.list("long", after=number_id(1500), limit=10, reverse=reverse)
    first = 1499 if reverse else 1501
    assert [int(item.id) for item in page] == [first + n * (-1 if reverse else 1) for n in range(10)]
    spans = [numbers_between(one) for one in ranges_of_items(between)]
    assert spans
    assert max(spans) <= 100


def ranges_of_items(between: Between) -> list[tuple[bytes, bytes]]:
    found = [one.get("request_range", {}) for _, asked in between.asked for one in asked["success"]]
    pairs = [(b64decode(one["key"]), b64decode(one["range_end"])) for one in found if "range_end" in one]
    return [(start, end) for start, end in pairs if b"/i/" in start]


def numbers_between(span: tuple[bytes, bytes]) -> int:
    start, end = (key.rpartition(b",")[2].rstrip(b"\0") for key in span)
    return int(end) - int(start) if start and end.isdigit() else 1 << 60


def test_rivals_for_one_collection_take_turns(url: str) -> None:
    """Nobody waits for long while others append without a pause; the numbers pass from 9 to 10 and from 99 to 100."""
    done = [0] * 5
    until = time.monotonic() + often(8) / 4

    def work(n: int) -> None:
        with closing(open_store(url)) as store:
            while time.monotonic() < until:
                store.commit([], [Append("c", b"%d %d" % (n, done[n]))])
                done[n] += 1

    at_once(*(partial(work, n) for n in range(5)))
    with closing(open_store(url)) as store:
        said = [tuple(map(int, value.split())) for value in values_of(store, "c")]
    assert len(said) == sum(done) > 100
    assert [sorted(k for n, k in said if n == who) for who in range(5)] == [
        [k for n, k in said if n == who] for who in range(5)
    ]
    assert min(done) > max(done) / 10, done


def test_rivals_who_count_in_several_collections_get_numbers_that_agree(url: str) -> None:
    def work(n: int) -> None:
        with closing(open_store(url)) as store:
            for _ in range(often(60)):
                store.commit([], [Append("a", b"x"), Append("b", b"y"), Append(f"own{n}", b"z")])

    at_once(*(partial(work, n) for n in range(4)))
    with closing(open_store(url)) as store:
        found = contents(store)
    assert [item.revision for item in found.items["a"]] == [item.revision for item in found.items["b"]]
    assert {head.last for name, head in found.heads.items() if "own" in name} == {often(60)}


def test_rivals_with_large_messages_do_not_exceed_what_etcd_takes(url: str) -> None:
    def work(n: int) -> None:
        with closing(open_store(url)) as store:
            for _ in range(4):
                store.commit([], [Append("c", bytes(300_000))], timeout_s=60)

    at_once(*(partial(work, n) for n in range(4)))
    with closing(open_store(url)) as store, store.snapshot() as snapshot:
        assert snapshot.head("c").last == 16


# Answers that are lost, or come late, or say no.

NO_SPACE = "etcdserver: mvcc: database space exceeded"


@pytest.mark.parametrize(
    "answer",
    [LOST, (504, "etcdserver: request timed out"), (503, "etcdserver: server stopped"), (429, NO_SPACE), (500, "")],
    ids=str,
)
def test_what_may_be_done_is_unknown_and_asking_again_tells(
    between: Between, watched: Store, answer: tuple[int, str]
) -> None:
    between.after = [answer]
    with raises(errors.OutcomeUnknown):
        append(watched, "c", b"once")
    assert len(values_of(watched, "c")) == 2
    between.after = [answer]
    assert transact(watched, append_one, key="k") == {"number": 3}
    assert len(values_of(watched, "c")) == 3


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: no leader",
        "raft proposal dropped",
        "etcdserver: too many requests",
        "auth: revision in header is old",
    ],
)
def test_what_was_certainly_not_done_is_tried_again(between: Between, watched: Store, message: str) -> None:
    between.before = [(503, message)] * 2
    assert append(watched, "c").numbers == (2,)
    assert len(values_of(watched, "c")) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((429, NO_SPACE), errors.StorageFull),
        ((403, "etcdserver: permission denied"), errors.EngineRefused),
        ((400, "etcdserver: request is too large"), errors.EngineUnfit),
        ((400, "etcdserver: too many operations in txn request"), errors.EngineUnfit),
    ],
    ids=str,
)
def test_refusals_say_what_they_mean(
    between: Between, watched: Store, answer: tuple[int, str], error: type[errors.AccordError]
) -> None:
    between.before = [answer]
    with raises(error):
        append(watched, "c")
    between.before = [answer]
    with raises(error):
        transact(watched, append_one, key="k")
    assert len(values_of(watched, "c")) == 1


def test_a_full_cluster_says_that_it_is_full_though_others_wrote_before(between: Between, watched: Store) -> None:
    with closing(open_store(place_of(watched))) as other:
        append(other, "c")
    between.before = [(429, NO_SPACE)]
    with raises(errors.StorageFull):
        transact(watched, append_one, key="k")


# Addresses where nobody is, or somebody else.


def test_a_dead_member_in_front_costs_little(url: str) -> None:
    (port,) = free_ports(1)
    with closing(open_store(url.replace("//", f"//127.0.0.1:{port},"))) as store:
        assert seconds(lambda: append(store, "c")) < 1


def test_a_silent_member_in_front_costs_half_a_second_once(url: str) -> None:
    with SilentAddress() as address, closing(open_store(url.replace("//", f"//{address},"))) as store:
        assert 0.4 < seconds(lambda: append(store, "c")) < 2
        assert seconds(lambda: append(store, "c")) < 0.4


class SilentAddress:
    """Where no connection is accepted or refused, as behind a network that swallows packets."""

    def __enter__(self) -> str:
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=0)]
        host, port = self._sockets[0].getsockname()
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect((host, port))
            self._sockets.append(one)
        return f"{host}:{port}"

    def __exit__(self, *exc: object) -> None:
        for one in self._sockets:
            one.close()


def test_nobody_there_is_told_within_the_patience() -> None:
    (port,) = free_ports(1)
    with closing(open_store(f"etcd://127.0.0.1:{port}/x")) as store:
        started = time.monotonic()
        with pytest.raises(errors.EngineUnreachable, match="refused"):
            append(store, "c")
        assert time.monotonic() - started < 5


def test_a_server_without_the_gateway_is_too_old() -> None:
    """So answers etcd 3.3, and whatever else speaks HTTP."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    store = open_store(f"etcd://127.0.0.1:{server.server_port}/x")
    with closing(store), pytest.raises(errors.EngineTooOld, match=r"etcd 3\.4"):
        append(store, "c")
    server.shutdown()
    server.server_close()


def test_a_key_of_somebody_else_is_not_taken_for_a_store(url: str) -> None:
    prefix = url.partition("?")[0].split("/", 3)[3]
    etcd_server().ctl("put", f"{prefix}/home", "mine")
    etcd_server().ctl("put", f"{prefix}/epoch", "mine")
    with closing(open_store(url)) as store, raises(errors.NotAStore):
        append(store, "c")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("etcd:host", "ENGINE://HOST"),
        ("etcd://host:x/p", "no port"),
        ("etcd://host/p?nonsense=1", "none of its options"),
        ("etcd://host/p?tls=maybe", "yes or no"),
        ("etcd://host/p?tls=no&ca=/x", "yes or no"),
        ("etcd://host/p?ca=/no/such/file", "No such file"),
        ("etcd://host/p?clock_skew_s=long", "number of seconds"),
        ("etcd://host/p?clock_skew_s=-1", "number of seconds"),
    ],
)
def test_places_that_cannot_be_are_told(url: str, reason: str) -> None:
    with pytest.raises(errors.InvalidConfig, match=reason):
        open_store(url)


def test_it_tells_the_doctor_its_version_and_its_clock(store: Store) -> None:
    assert getattr(store, "server").startswith("etcd 3.")  # noqa: B009 - not every store has one
    assert abs(getattr(store, "server_clock_s")() - time.time()) < 2  # noqa: B009 - the same


# Compaction.


def test_a_snapshot_that_is_compacted_away_begins_anew(own: Cluster) -> None:
    with closing(open_store(own_url(own))) as store:
        put(store, "c", "a", b"1")
        put(store, "c", "b", b"1")
        runs = []

        def work(tx: Transaction) -> bytes:
            first = tx.get("c", "a")
            runs.append(first)
            if len(runs) == 1:
                store.commit([], [Put("c", "a", b"2"), Put("c", "b", b"2")])
                compact(own)
            second = tx.get("c", "b")
            assert first is not None
            assert second is not None
            return first.value + second.value

        with store.snapshot() as snapshot:
            snapshot.get("c", "a")
            assert transact(store, work) == b"22"
            assert len(runs) == 2
            with raises(Moved):
                snapshot.get("c", "b")
            with raises(Moved):
                snapshot.list("c")


def test_a_commit_whose_snapshot_is_compacted_away_is_judged_by_what_there_is(own: Cluster) -> None:
    with closing(open_store(own_url(own))) as store:
        for id in ("kept", "changed"):
            put(store, "c", id, b"1")
        with store.snapshot() as snapshot:
            revisions = {item.id: item.revision for item in snapshot.list("c")}
            head = snapshot.head("c").revision
            put(store, "d", "x")
            compact(own)
            store.commit(
                [ItemIs("c", "kept", revisions["kept"]), CollectionIs("c", head)], [Append("e", b"")], snapshot
            )
            put(store, "c", "changed", b"2")
            compact(own)
            for check in (ItemIs("c", "changed", revisions["changed"]), CollectionIs("c", head)):
                with raises(Conflict):
                    store.commit([check], [Append("e", b"")], snapshot)
        assert len(values_of(store, "e")) == 1


def test_a_watch_from_before_the_compaction_says_that_history_is_gone(own: Cluster) -> None:
    with closing(open_store(own_url(own))) as store:
        first = append(store, "c").revision
        for _ in range(5):
            last = append(store, "c").revision
        compact(own)
        with pytest.raises(errors.HistoryGone) as gone:
            store.watch(["c"], first)
        assert first < int(str(gone.value.details["oldest"]))
        with store.watch(["c"], last) as watch:
            append(store, "c")
            assert [change.keys for change in take(watch, 1)] == [(("c", number_id(7)),)]


def test_a_watch_that_missed_nothing_goes_on_after_a_compaction(own: Cluster) -> None:
    """Others write to the cluster, which is compacted; the stream breaks while nobody changes the store."""
    member = own.members[0]
    with closing(open_store(own_url(own))) as store:
        since = append(store, "c").revision
        compact(own)
        with store.watch(["c"], since) as watch:
            assert is_quiet(watch)
            compact(own)
            member.kill()
            own.start_one(member)
            own.wait_for(member)
            compact(own)
            compact(own)
            assert watch.next(1) is None
            append(store, "c")
            assert [change.keys for change in take(watch, 1)] == [(("c", number_id(2)),)]


def test_a_watch_that_missed_what_was_compacted_says_so(own: Cluster) -> None:
    member = own.members[0]
    url = own_url(own)
    with closing(open_store(url)) as store:
        append(store, "c")
        with store.watch(["c"], 1) as watch:
            assert is_quiet(watch)
            member.kill()
            own.start_one(member)
            own.wait_for(member)
            for _ in range(3):
                append(store, "c")
            compact(own)
            with raises(errors.HistoryGone):
                # What the new stream brings was forgotten, unless the old one did notice that it is over.
                while watch.next(5) is not None:
                    pass


# No room.


@pytest.mark.covers("T3.5")
def test_a_full_cluster_is_read_and_works_again_with_room() -> None:
    cluster = Cluster(1, options=["--quota-backend-bytes=8000000"])
    try:
        cluster.start()
        with closing(open_store(cluster.url("full"))) as store:
            appended = fill(store)
            for _ in range(3):
                with raises(errors.StorageFull):
                    transact(store, append_one, key="k")
            with raises(errors.StorageFull):
                store.commit([], [Delete("c", "large")])
            value = value_of(store, "c", "large")
            assert value is not None
            assert value.rstrip(b"\0") == b"%d" % (appended - 1)
            assert len(values_of(store, "log")) == appended
            cluster.ctl("compact", "--physical", str(revision_of_etcd(cluster)))
            cluster.ctl("defrag")
            cluster.ctl("alarm", "disarm")
            assert transact(store, append_one, key="k") == {"number": 1}
            assert append(store, "log").numbers == (appended + 1,)
    finally:
        cluster.remove()


def fill(store: Store) -> int:
    """Until there is no more room; how often that went."""
    for appended in range(100):
        try:
            store.commit([], [Put("c", "large", b"%d" % appended + bytes(500_000)), Append("log", b"")])
        except errors.StorageFull:
            return appended
    raise AssertionError("it is never full")


# A member that is started again, and one that is put back from a copy.


@pytest.mark.covers("S4")
def test_work_goes_on_when_the_member_is_killed_and_started_again(own: Cluster) -> None:
    """What was in flight is done or its outcome is unknown; asked again it is done once; who listens misses nothing."""
    url = own_url(own)
    member = own.members[0]
    going = threading.Event()
    stopping = threading.Event()
    ended = threading.Event()

    def work(n: int) -> list[int]:
        numbers: list[int] = []
        with closing(open_store(url)) as store:
            while not stopping.is_set():
                numbers.append(insist(store, f"{n}-{len(numbers)}"))
                if len(numbers) % 5 == 0:
                    going.set()
        return numbers

    def listen() -> list[int]:
        heard: list[int] = []
        deadline = time.monotonic() + 60
        with closing(open_store(url)) as store, store.watch(["c"], 0) as watch:
            while not ended.is_set() or heard[-1] < len(values_of(store, "c")):
                assert time.monotonic() < deadline
                with suppress(errors.EngineUnreachable):
                    change = watch.next(0.2)
                    heard += [int(id) for _, id in change.keys] if change else []
        return heard

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work, n) for n in range(3)]
        listener = pool.submit(listen)
        try:
            for _ in range(often(8)):
                assert going.wait(20)
                member.kill()
                own.start_one(member)
                own.wait_for(member)
                going.clear()
            assert going.wait(20)
        finally:
            stopping.set()
            wait(workers)
            ended.set()
        answered, heard = [worker.result() for worker in workers], listener.result()
    with closing(open_store(url)) as store:
        kept = values_of(store, "c")
    for n, numbers in enumerate(answered):
        assert [kept[number - 1].decode() for number in numbers] == [f"{n}-{k}" for k in range(len(numbers))]
    assert len(kept) == sum(map(len, answered))
    assert heard == list(range(1, len(kept) + 1))


def insist(store: Store, key: str) -> int:
    """Append that, once, however often it takes; its number."""
    deadline = time.monotonic() + 60
    while True:
        try:
            answer: Any = transact(store, lambda tx: append_one(tx, key.encode()), key=key)
            return int(answer["number"])
        except (errors.OutcomeUnknown, errors.EngineUnreachable):
            assert time.monotonic() < deadline


def restore(cluster: Cluster, copy: Path, token: str) -> None:
    member = cluster.members[0]
    member.kill()
    data = member.folder / "data"
    data.rename(member.folder / f"lost-{token}")
    given = [f"--name={member.name}", f"--initial-cluster={member.peer}", f"--data-dir={data}"]
    peer = f"--initial-advertise-peer-urls={member.peer.partition('=')[2]}"
    cluster.ctl("snapshot", "restore", str(copy), *given, peer, f"--initial-cluster-token={token}")
    cluster.start_one(member)
    cluster.wait_for(member)


def test_a_copy_that_is_put_back_has_another_epoch(own: Cluster, tmp_path: Path) -> None:
    url = own_url(own)
    copy = tmp_path / "copy"
    with closing(open_store(url)) as store:
        put(store, "c", "a", b"before")
        own.ctl("snapshot", "save", str(copy))
        append(store, "numbered", b"lost")
        since = put(store, "c", "a", b"lost").revision
        epoch = store.now().era
        with store.snapshot() as snapshot:
            revision = snapshot.get("c", "a").revision  # type: ignore[union-attr]  # it is there
            with store.watch(["c"], since, epoch) as watch:
                assert is_quiet(watch)
                restore(own, copy, "restored")
                with raises(Conflict):
                    store.commit([ItemIs("c", "a", revision)], [Put("c", "a", b"wrong")], snapshot)
                with raises(errors.HistoryGone):
                    while watch.next(5) is None:
                        pass
            with raises(Moved):
                snapshot.list("c")
        assert value_of(store, "c", "a") == b"before"
        with raises(errors.InvalidKey, "of a number that was lost"):
            put(store, "numbered", number_id(1))
        put(store, "c", "a", b"after")
        with store.snapshot() as now:
            assert now.epoch != epoch
        with raises(errors.HistoryGone):
            store.watch(["c"], since, epoch)
