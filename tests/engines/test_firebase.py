"""Firebase: what happens to its requests on their way, and to those who make them."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count as count_from
from pathlib import Path
from random import Random
from typing import Any

import pytest

from accord import errors
from accord.store.contract import CollectionIs, Conflict, Delete, ItemIs, Moved, Put, number_id
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import transact
from accord.testing.conformance.tools import Contents, append, at_once, contents, put, raises, take, value_of, values_of
from tests.engines.firebase_worker import KEY, WRITES, change, prepare
from tests.often import some_of
from tests.robustness.test_histories import operate_under_kills, transfer_under_kills
from tests.servers.firebase import FirebaseServer

pytestmark = pytest.mark.covers("S2")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirebaseServer]:
    with FirebaseServer(tmp_path_factory.mktemp("firebase")) as server:
        yield server


@pytest.fixture
def server(shared: FirebaseServer) -> Iterator[FirebaseServer]:
    shared.requests()
    yield shared
    shared.say("clear")
    shared.set(rules=None, redirect_to="", clock_ahead_s=0.0, keep_alive_s=30.0, token_lives_s=3600.0)


@pytest.fixture
def url(server: FirebaseServer) -> str:
    return server.url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        yield store


def place_of(url: str) -> str:
    return url.partition("//demo/")[2].partition("?")[0]


def now_of(url: str) -> Contents:
    """What somebody sees who comes anew."""
    with closing(open_store(url)) as store:
        return contents(store)


def values(found: Contents) -> dict[str, dict[str, bytes]]:
    return {name: {item.id: item.value for item in items} for name, items in found.items.items()}


BEFORE = {"c": {"doomed": b"1", "old": b"1"}, "log": {number_id(1): b"first"}}
AFTER = {
    "c": {"new": b"2", "old": b"2"},
    "fresh": {number_id(1): b"\0\xff"},
    "log": {number_id(1): b"first", number_id(2): b"second"},
}


def assert_settled(server: FirebaseServer, url: str, may_have_marks: bool = False) -> None:
    """The tree holds what the store shows: nothing in it is half done, and no mark stays."""
    with closing(open_store(url)) as store:
        append(store, "settle")  # whoever commits next ends what is undone
        found = contents(store)
    tree = server.read(place_of(url))
    data = tree["data"][tree["head"]["s"]["d"]]
    shown = {
        name.replace("-", "/").replace(",", "-")[1:]: {
            id: node.get("r") for id, node in nodes.items() if not may_have_marks or "r" in node
        }
        for name, nodes in data["items"].items()
    }
    expected = {name: {f"k{item.id}": item.revision for item in items} for name, items in found.items.items()}
    assert {name: nodes for name, nodes in shown.items() if nodes} == {
        name: nodes for name, nodes in expected.items() if nodes
    }


def places_of_requests(commit: Callable[[Store], object], server: FirebaseServer, method: str = "") -> int:
    """How many requests such a commit makes."""
    url = server.url()
    with closing(open_store(url)) as store:
        prepare(store)
        server.requests()
        commit(store)
    return sum(not method or asked == method for asked, _, _ in server.requests())


def requests_of_worker(server: FirebaseServer) -> int:
    """How many requests a process makes that knows nothing yet."""
    url = server.url()
    with closing(open_store(url)) as store:
        prepare(store)
    server.requests()
    assert work(url).wait(60) == 0
    return sum(path.startswith(place_of(url)) for _, path, _ in server.requests())


def work(url: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "tests.engines.firebase_worker", url], stdout=subprocess.DEVNULL)


def commit_all(store: Store) -> None:
    store.commit([], WRITES)


# How it asks.


def test_nothing_is_written_but_over_what_was_seen(server: FirebaseServer, store: Store) -> None:
    prepare(store)
    commit_all(store)
    for _ in range(3):
        transact(store, change)
        contents(store)
    asked = server.requests()
    assert {method for method, _, _ in asked} == {"GET", "PUT"}
    assert all(conditional for method, _, conditional in asked if method == "PUT")


def test_what_is_expected_takes_one_round_trip(server: FirebaseServer, store: Store) -> None:
    prepare(store)
    commit_all(store)
    append(store, "other")
    with store.snapshot() as warm:
        assert warm.revision == 3
    server.requests()
    with store.snapshot() as snapshot:
        distant: Any = snapshot
        distant.expect([("c", "old"), ("c", "new"), ("log", "")])
        assert snapshot.get("c", "old") is not None
        first = len(server.requests())
        assert snapshot.get("c", "new") is not None
        assert snapshot.head("log").last == 2
        assert server.requests() == []
    assert first == 4


def test_a_commit_after_a_read_needs_no_look_at_its_checks(server: FirebaseServer, store: Store) -> None:
    prepare(store)
    with store.snapshot() as snapshot:
        item = snapshot.get("c", "old")
        assert item is not None
        server.requests()
        store.commit([ItemIs("c", "old", item.revision)], [Put("c", "old", b"2")], snapshot)
    asked = [(method, path.partition("/")[2]) for method, path, _ in server.requests()]
    assert asked[0] == ("PUT", "head")


# Misfortunes on the way.


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("lose", {}),
        ("drop", {}),
        ("late", {}),
        ("fail", {"status": 503}),
        ("fail", {"status": 500}),
        ("fail", {"status": 429, "headers": {"Retry-After": "0"}}),
    ],
    ids=lambda value: str(value.get("status", "")) if isinstance(value, dict) else value,
)
def test_a_commit_is_made_once_whatever_happens_to_one_request(
    server: FirebaseServer, kind: str, facts: dict[str, Any]
) -> None:
    count = places_of_requests(commit_all, server)
    assert count > 12
    for skip in range(count):
        url = server.url()
        with closing(open_store(url)) as store:
            prepare(store)
            hook = server.hook(kind, path=place_of(url), skip=skip, **facts)
            commit_all(store)
        server.wait(hook)
        found = now_of(url)
        assert (found.revision, values(found)) == (2, AFTER), skip
        if kind == "late":
            server.land(hook)
        assert_settled(server, url)
        assert {name: part for name, part in values(now_of(url)).items() if name != "settle"} == AFTER, skip


@pytest.mark.parametrize("times", [2, 5])
def test_a_commit_whose_answers_are_lost_again_and_again_is_made_once(server: FirebaseServer, times: int) -> None:
    url = server.url()
    with closing(open_store(url)) as store:
        prepare(store)
        hooks = [server.hook("late", path=f"{place_of(url)}/head", method="PUT") for _ in range(times)]
        commit_all(store)
        for hook in hooks:
            server.land(hook)
    assert (now_of(url).revision, values(now_of(url))) == (2, AFTER)


def test_what_landed_late_while_others_went_on_is_known_by_its_id(server: FirebaseServer) -> None:
    """The answer to `head` is lost, and two others commit before it is looked for."""
    url = server.url()
    with closing(open_store(url)) as store, closing(open_store(url)) as rival:
        prepare(store)
        server.hook("lose", path=f"{place_of(url)}/head", method="PUT")
        look = server.hook("hold", path=f"{place_of(url)}/head", method="GET", skip=1)
        found: list[Any] = []
        working = threading.Thread(target=lambda: found.append(store.commit([], WRITES)))
        working.start()
        server.wait(look)
        assert [append(rival, "log").numbers, append(rival, "log").numbers] == [(3,), (4,)]
        server.release(look)
        working.join(60)
        assert (found[0].revision, found[0].numbers) == (2, (2, 1))
        assert len(values_of(store, "log")) == 4


# Rivals, and those who sleep on the way.


def rival_deletes_all(store: Store) -> None:
    """Ends what is undone, and deletes each item that there is."""
    while True:
        found = contents(store)
        doomed = [Delete(name, item.id) for name, items in found.items.items() for item in items]
        checks = [CollectionIs(name, head.revision) for name, head in found.heads.items()]
        with suppress(Conflict):
            store.commit(checks, [*doomed, Put("c", "rival", b"%d" % len(doomed))])
            return


def test_who_sleeps_before_any_request_brings_nothing_back(server: FirebaseServer) -> None:
    """All that it wrote was applied and deleted by others while it slept."""
    count = places_of_requests(commit_all, server, "PUT")
    for skip in range(count):
        url = server.url()
        with closing(open_store(url)) as store, closing(open_store(url)) as rival:
            prepare(store)
            hook = server.hook("hold", path=place_of(url), method="PUT", skip=skip)
            done: list[Any] = []
            working = threading.Thread(target=lambda store=store, done=done: done.append(store.commit([], WRITES)))
            working.start()
            server.wait(hook)
            rival_deletes_all(rival)
            rival_deletes_all(rival)
            server.release(hook)
            working.join(60)
            assert done
        found = values(now_of(url))
        if skip == 0:  # its commit came last: over what the rival left
            assert {name: set(part) for name, part in found.items()} == {
                "c": {"rival", "old", "new"}, "fresh": {number_id(1)}, "log": {number_id(2)}
            }, skip  # fmt: skip
        else:
            assert found == {"c": {"rival": b"1"}, "fresh": {}, "log": {}}, skip
        assert_settled(server, url)


@pytest.mark.parametrize("others", [1, 3])
def test_a_request_that_lands_days_later_changes_nothing(server: FirebaseServer, others: int) -> None:
    """Whichever it is: what it would put stands over a value that never comes again."""
    count = places_of_requests(commit_all, server, "PUT")
    for skip in range(count):
        url = server.url()
        with closing(open_store(url)) as store, closing(open_store(url)) as rival:
            prepare(store)
            hook = server.hook("late", path=place_of(url), method="PUT", skip=skip)
            commit_all(store)
            server.wait(hook)
            for _ in range(others):
                rival_deletes_all(rival)
            before = contents(rival)
            server.land(hook)
            assert contents(rival) == before, skip
        assert_settled(server, url, may_have_marks=True)


def test_rivals_at_each_moment_lose_nothing(server: FirebaseServer) -> None:
    """A counter, and another that counts just before any of the requests."""

    def count_up(store: Store) -> None:
        def work(tx: Any) -> None:
            item = tx.get("c", "count")
            tx.put("c", "count", b"%d" % (1 + int(item.value if item else 0)))
            tx.append("log", b"")

        transact(store, work)

    for skip in count_from(0):
        url = server.url()
        with closing(open_store(url)) as store, closing(open_store(url)) as rival:
            count_up(store)
            hook = server.hook("hold", path=place_of(url), skip=skip)
            working = threading.Thread(target=count_up, args=(store,))
            working.start()
            if not server.has_taken(hook, working):
                break
            count_up(rival)
            count_up(rival)
            server.release(hook)
            working.join(60)
            assert value_of(rival, "c", "count") == b"4", skip
            assert len(values_of(rival, "log")) == 4, skip
        assert_settled(server, url)
    assert skip > 8


def test_a_snapshot_that_commits_overtake_never_mixes_two_views(server: FirebaseServer) -> None:
    """Each of its requests is held while others commit: what it answers is as of its revision, or it says so."""
    for skip in count_from(0):
        url = server.url()
        with closing(open_store(url)) as store, closing(open_store(url)) as rival:
            prepare(rival)
            hook = server.hook("hold", path=place_of(url), method="GET", skip=skip)
            seen: list[dict[str, dict[str, bytes]] | None] = []

            def read(store: Store = store, seen: list[Any] = seen) -> None:
                try:
                    with store.snapshot() as snapshot:
                        items = {id: snapshot.get("c", id) for id in ("old", "new", "doomed")}
                        found = {id: item.value for id, item in items.items() if item}
                        listed = {item.id: item.value for item in snapshot.list("c")}
                        assert listed == found
                        seen.append({"c": found})
                except Moved:
                    seen.append(None)

            reading = threading.Thread(target=read)
            reading.start()
            if not server.has_taken(hook, reading):
                break
            commit_all(rival)
            server.release(hook)
            reading.join(60)
            assert seen
            assert seen[0] in (None, {"c": BEFORE["c"]}, {"c": AFTER["c"]}), skip
    assert skip > 4


# Those who are killed.


@pytest.mark.covers("S4")
@pytest.mark.parametrize("kind", ["hold", "stop"])
def test_who_is_killed_at_any_request_leaves_all_or_nothing(server: FirebaseServer, kind: str) -> None:
    """Before the request is made, and after; whoever asks again with the same key gets one effect."""
    for skip in some_of(requests_of_worker(server)):
        url = server.url()
        with closing(open_store(url)) as store:
            prepare(store)
        hook = server.hook(kind, path=place_of(url), skip=skip)
        worker = work(url)
        server.wait(hook)
        worker.kill()
        worker.wait()
        server.release(hook)
        found = values(now_of(url))
        made = {**AFTER, "c": {"new": b"2", "old": b"2 after 1"}}
        assert {name: part for name, part in found.items() if not name.startswith("requests")} in (BEFORE, made), skip
        with closing(open_store(url)) as store:
            assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}
        assert_settled(server, url)
        found = values(now_of(url))
        assert {name: found[name] for name in made} == made, skip


@pytest.mark.covers("S4")
def test_what_killed_processes_did_under_misfortune_is_linearizable(server: FirebaseServer, tmp_path: Path) -> None:
    url = server.url()
    with misfortunes(server, url):
        operate_under_kills(url, tmp_path, operations=600, kills=8)
    assert_settled(server, url, may_have_marks=True)


@pytest.mark.covers("S4")
def test_transfers_under_misfortune_happen_once(server: FirebaseServer, tmp_path: Path) -> None:
    url = server.url()
    with misfortunes(server, url):
        transfer_under_kills(url, tmp_path, transfers=100, kills=6)
    assert_settled(server, url, may_have_marks=True)


class misfortunes:
    """Now and then an answer is lost, or a request; some land later."""

    def __init__(self, server: FirebaseServer, url: str) -> None:
        self._server = server
        self._place = place_of(url)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._bring)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._enough.set()
        self._thread.join()
        self._server.say("clear")

    def _bring(self) -> None:
        random = Random(1)
        late: list[int] = []
        hook = 0
        while not self._enough.wait(0.005):
            if hook and not self._server.say("reached", hook=hook):
                continue  # more at once would leave nothing but misfortune
            kind = random.choice(["lose", "drop", "late", "fail"])
            hook = self._server.hook(kind, path=self._place, skip=random.randrange(40))
            if kind == "late":
                late.append(hook)
            if len(late) > 5:
                self._server.release(late.pop(0))


# The server.


def test_a_server_that_is_killed_and_comes_back_has_all(tmp_path: Path) -> None:
    """Writers and a watcher go on as if nothing had been, and what they are told is there once."""
    with FirebaseServer(tmp_path) as server:
        url = server.url()
        numbers: list[int] = []

        def write(name: str) -> None:
            with closing(open_store(url)) as store:
                for count in range(15):
                    while True:
                        with suppress(errors.OutcomeUnknown, errors.EngineUnreachable):
                            answer: Any = transact(store, lambda tx: tx.append("c", b""), key=f"{name} {count}")
                            numbers.append(answer)
                            break

        def follow() -> list[str]:
            found: list[str] = []
            with closing(open_store(url)) as store, store.watch(["c"], 0) as watch:
                while len(found) < 30:
                    with suppress(errors.EngineUnreachable):
                        change = watch.next(60.0)
                        assert change is not None
                        found += [id for _, id in change.keys]
            return found

        def restart() -> list[str]:
            for _ in range(3):
                reached = len(numbers)
                while len(numbers) < min(reached + 4, 30):
                    time.sleep(0.005)  # the writers' pace is what is waited for
                server.restart()
            return []

        with closing(open_store(url)) as store:
            assert contents(store).revision == 0
        found = at_once(lambda: write("a"), lambda: write("b"), follow, restart)
        assert found[2] == [number_id(number) for number in range(1, 31)]
        assert sorted(numbers) == [*range(1, 31)]


@pytest.mark.more
def test_an_outcome_is_unknown_when_nobody_can_tell(tmp_path: Path) -> None:
    with FirebaseServer(tmp_path) as server:
        url = server.url()
        with closing(open_store(url)) as store:
            prepare(store)
            hook = server.hook("hold", path=f"{place_of(url)}/head", method="PUT")
            endings: list[str] = []

            def commit() -> None:
                try:
                    transact(store, change, key=KEY, timeout_s=5.0)
                except errors.AccordError as error:
                    endings.append(error.code)

            working = threading.Thread(target=commit)
            working.start()
            server.wait(hook)
            server.kill()
            working.join(60)
            assert endings == ["OUTCOME_UNKNOWN"]
            server.start()
            assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}
            assert transact(store, change, key=KEY) == {"log": 2, "fresh": 1}
            assert len(values_of(store, "log")) == 2


@pytest.mark.more
def test_nobody_there_is_told(tmp_path: Path) -> None:
    with FirebaseServer() as server:
        url = server.url()
    with closing(open_store(url)) as store:
        for use in (lambda: value_of(store, "c", "a"), lambda: append(store, "c"), lambda: store.watch([""], 0)):
            began = time.monotonic()
            with pytest.raises(errors.EngineUnreachable, match="firebase://demo/"):
                use()
            assert time.monotonic() - began < 15


def test_a_full_database_is_told_and_changes_nothing(server: FirebaseServer, url: str, store: Store) -> None:
    prepare(store)
    server.hook("fail", path=place_of(url), method="PUT", status=402)
    with raises(errors.StorageFull):
        commit_all(store)
    assert values(now_of(url)) == BEFORE
    commit_all(store)
    assert values(now_of(url)) == AFTER


# Watches.


def test_a_stream_that_ends_again_and_again_leaves_no_gap(server: FirebaseServer, url: str, store: Store) -> None:
    with closing(open_store(url)) as writer, store.watch(["c"], 0) as watch:
        enough = threading.Event()

        def end_streams() -> None:
            kinds = ["", "cancel", "auth_revoked"]
            while not enough.wait(0.03):
                server.say("streams", kind=kinds[0])
                kinds.append(kinds.pop(0))

        ending = threading.Thread(target=end_streams)
        ending.start()
        try:
            found: list[Any] = at_once(lambda: [append(writer, "c") for _ in range(60)], lambda: take(watch, 60))
        finally:
            enough.set()
            ending.join()
    assert [change.revision for change in found[1]] == [*range(1, 61)]


@pytest.mark.more
def test_without_a_stream_it_looks_now_and_then(server: FirebaseServer, url: str, store: Store) -> None:
    server.hook("fail", method="STREAM", path=place_of(url), times=1000, status=503)
    with closing(open_store(url)) as writer, store.watch(["c"], 0) as watch:
        found: list[Any] = at_once(lambda: [append(writer, "c") for _ in range(10)], lambda: take(watch, 10))
        assert [change.revision for change in found[1]] == [*range(1, 11)]


def test_one_event_holds_the_whole_change(server: FirebaseServer, url: str, store: Store) -> None:
    with closing(open_store(url)) as writer, store.watch([""], 0) as watch:
        append(writer, "c")
        take(watch, 1)
        waiting = threading.Thread(target=lambda: found.append(take(watch, 1)))
        found: list[Any] = []
        server.requests()
        waiting.start()
        while ("STREAM", f"{place_of(url)}/head/s", False) not in server.requests():
            pass
        server.requests()
        append(writer, "other")
        waiting.join(30)
        assert found[0][0].keys == (("other", number_id(1)),)
        assert [path for method, path, _ in server.requests() if path.endswith("head/s")] == []


def test_history_is_forgotten_by_the_thousand(server: FirebaseServer, url: str, store: Store) -> None:
    prepare(store)
    place = place_of(url)
    root = f"{place}/data/{server.read(f'{place}/head/s/d')}"
    # As if many had been made since.
    for revision in (1001, 100_998):
        bucket = f"b{revision // 1000:013d}/r{revision:016d}"
        server.write(f"{root}/changes/{bucket}", {"i": "x", "k": "c:old"})
    server.write(f"{place}/head/s/r", 100_998)
    with closing(open_store(url)) as late, late.watch([""], 100_998) as watch:
        for _ in range(4):
            append(late, "log")
        assert [change.revision for change in take(watch, 4)] == [*range(100_999, 101_003)]
        assert sorted(server.read(f"{root}/changes")) == [f"b{number:013d}" for number in (1, 100, 101)]
        for since in (0, 999):
            with pytest.raises(errors.HistoryGone):
                late.watch([""], since)
        with late.watch([""], 100_999) as watch:
            assert len(take(watch, 3)) == 3


# What else lies in the tree.


def test_a_mark_that_somebody_left_is_nothing(server: FirebaseServer, url: str, store: Store) -> None:
    prepare(store)
    root = f"{place_of(url)}/data/{server.read(f'{place_of(url)}/head/s/d')}"
    server.write(f"{root}/items/kc/kghost", {"p": "somebody"})
    server.write(f"{root}/items/kc/kaghost", {"p": "somebody"})
    assert values(now_of(url)) == BEFORE
    with store.snapshot() as snapshot:
        assert snapshot.get("c", "ghost") is None
        assert [item.id for item in snapshot.list("c", limit=1)] == ["doomed"]
        assert [item.id for item in snapshot.list("c", limit=1, reverse=True)] == ["old"]
    store.commit([ItemIs("c", "ghost", 0)], [Put("c", "ghost", b"real"), Delete("c", "aghost")])
    assert value_of(store, "c", "ghost") == b"real"


def test_what_is_no_store_is_refused(server: FirebaseServer, url: str) -> None:
    for odd in ("text", {"s": {"r": 1}}, {"other": 1}, [1, 2]):
        server.write(f"{place_of(url)}/head", odd)
        with closing(open_store(url)) as store, pytest.raises(errors.NotAStore):
            contents(store)


def test_a_load_whose_piece_is_lost_is_given_up_and_can_be_done_again(
    server: FirebaseServer, url: str, store: Store
) -> None:
    from accord.store.contract import Item

    items = [Item(f"i{number:04d}", b"x", 1) for number in range(1200)]
    hook = server.hook("late", method="PATCH", path=place_of(url), skip=1)
    with raises(errors.EngineUnreachable):
        store.load([("c", 0, items)])
    assert contents(store).revision == 0
    store.load([("c", 0, items)])
    store.commit([], [Delete("c", item.id) for item in items[-50:]])
    server.land(hook)
    assert len(contents(store).items["c"]) == 1150


def test_long_names_sort_among_short_ones(store: Store) -> None:
    long = "/".join(["c" * 100] * 6 + ["c" * 99])  # 705 letters, of which 700 make a key
    names = sorted([long, long + "/a", long + "/-", long[:-1], long[:-5], long[:-6], long[:-8], "c" * 99, "d", "a"])
    for name in reversed(names):
        put(store, name, "x", name.encode())
    with store.snapshot() as snapshot:
        assert list(snapshot.collections()) == names
        for limit in (1, 2, 4):
            found: list[str] = []
            while page := snapshot.collections(after=found[-1] if found else "", limit=limit):
                found += page
            assert found == names
        assert list(snapshot.collections(long)) == [name for name in names if name.startswith(long)]
        assert all(snapshot.get(name, "x") for name in names)


# The clock.


def test_the_time_is_the_databases(server: FirebaseServer, url: str, store: Store) -> None:
    apart = store.now().seconds - time.time()
    assert abs(apart) < 2
    for ahead_s in (3600.0, -3600.0):
        server.set(clock_ahead_s=ahead_s)
        append(store, "c")  # by whose answers it finds out
        with closing(open_store(url)) as other:
            assert abs(other.now().seconds - time.time() - ahead_s) < 7
            assert abs(store.now().seconds - other.now().seconds) < 1
            instants = [handle.now().seconds for _ in range(100) for handle in (store, other)]
        assert instants == sorted(instants)
