"""Homes on a server that is killed and comes back: what commands say, a hub, and who listens."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any, NamedTuple

import pytest

from accord import errors
from accord.cli.verbs import topics
from accord.hub import feeds
from accord.services.migrate import Migration
from accord.store.contract import Append
from accord.store.open import engines, open_store
from tests.cli.users import User
from tests.hub.hubs import somebody, start, status, wait_until
from tests.migrate.held import held, nothing, unseen
from tests.ports import free_port
from tests.servers import etcd, redis

pytestmark = pytest.mark.covers("S10")


class Server(NamedTuple):
    url: str
    other_url: str
    kill: Callable[[], None]
    start: Callable[[], None]


def redis_server(stack: ExitStack) -> Server:
    server = stack.enter_context(redis.redis_of_its_own(port=str(free_port())))
    return Server(server.url(), server.url("other"), server.kill, server.start)


def etcd_server(stack: ExitStack) -> Server:
    server = etcd.Cluster(1)
    stack.callback(server.remove)
    server.start()
    return Server(server.url("home"), server.url("other"), server.members[0].kill, server.start)


STARTED = {"redis": redis_server, "etcd": etcd_server}


@pytest.fixture(params=[name for name in STARTED if name in engines()])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with ExitStack() as stack:
        yield STARTED[request.param](stack)


@pytest.fixture
def user(server: Server) -> Iterator[User]:
    with somebody() as user:
        user.env["ACCORD_ENGINE"] = server.url
        user.json("register", "ann")
        yield user


def test_a_listener_misses_nothing(server: Server, user: User) -> None:
    """Of two homes, as on two machines; the hub goes on by itself."""
    pid = start(user)
    heard = user.folder / "heard"
    with somebody() as other, heard.open("wb") as file, user.start("listen", "ann", "--json", out=file.fileno()) as ear:
        other.env["ACCORD_ENGINE"] = server.url
        other.json("register", "ben")
        send = ["send", "--from", "ben", "--to", "ann", "--message"]
        other.json(*send, "one")
        wait_until(lambda: b'"one"' in heard.read_bytes(), "the first message")
        server.kill()
        assert other.run(*send, "nobody takes this").error == "ENGINE_UNREACHABLE"
        assert (status(user)["pid"], user.run("hub", "status").code) == (pid, 0)
        server.start()
        other.json(*send, "two")
        wait_until(lambda: b'"two"' in heard.read_bytes(), "the second message")
        ear.terminate()
    assert [json.loads(line)["message"] for line in heard.read_text().splitlines()] == ["one", "two"]
    assert status(user)["pid"] == pid


def test_a_hub_does_not_start_without_its_server(server: Server, user: User) -> None:
    server.kill()
    done = user.run("hub", "start")
    assert (done.code, done.error) == (69, "ENGINE_UNREACHABLE")
    assert user.run("hub", "status").code == 3
    assert user.run("hub", "stop").code == 0
    server.start()
    assert start(user)


def test_a_hub_tells_once_that_its_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second again would fill its log."""
    told: list[tuple[str, dict[str, Any]]] = []
    unreachable = errors.EngineUnreachable(path="redis://x", reason="Connection refused")
    comes: list[Exception | None] = [unreachable, unreachable, None, ValueError(), unreachable, None]

    class Hub:
        log: Any = None

        def info(self, event: str, **more: Any) -> None:
            told.append((event, more))

        warning = info

        def failed(self, where: str, error: BaseException) -> None:
            told.append(("failure", {}))

    class Watch:
        def next(self, timeout_s: float) -> None:
            one = comes.pop(0)
            looking._closed = not comes
            if one is not None:
                raise one

    hub: Any = Hub()
    hub.log = hub
    looking = feeds.Feeds(hub)
    looking._watch = Watch()  # type: ignore[assignment]
    monkeypatch.setattr("accord.hub.feeds.time.sleep", lambda seconds: None)
    looking._look()
    away = ("store_away", {"reason": "Connection refused"})
    assert told == [away, ("store_back", {}), ("failure", {}), away, ("store_back", {})]


def test_who_has_subscribed_waits_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it is away; and is told so once."""
    unreachable = errors.EngineUnreachable(path="redis://x", reason="Connection refused")
    entry = {"sequence": 6, "from": "ann", "message": "late"}
    comes: list[Any] = [{"sequence": 5}, unreachable, unreachable, {"missed": 0, "entries": [entry]}, KeyboardInterrupt]
    asked: list[Any] = []
    printed: list[str] = []

    class Line:
        json = False
        io: Any = None
        out = err = staticmethod(printed.append)

        def call(self, operation: str, params: dict[str, Any]) -> Any:
            asked.append(params.get("after"))
            one = comes.pop(0)
            if isinstance(one, dict):
                return one
            raise one

    line: Any = Line()
    line.io = line
    monkeypatch.setattr("accord.cli.verbs.topics.time.sleep", lambda seconds: None)
    with pytest.raises(KeyboardInterrupt):
        topics.subscribe(line, {"channel": "builds"})
    assert asked == [None, 5, 5, 5, 6]
    assert [text.partition(":")[0] for text in printed] == ["accord", "6  ann"]


def test_who_subscribes_to_no_server_is_told_so(user: User, server: Server) -> None:
    server.kill()
    done = user.run("subscribe", "builds", "--after", "0")
    assert (done.code, done.error) == (69, "ENGINE_UNREACHABLE")


@pytest.mark.covers("S11")
@pytest.mark.parametrize("for_good", [False, pytest.param(True, marks=pytest.mark.more)], ids=["restarted", "gone"])
def test_a_migration_whose_server_is_killed(for_good: bool, server: Server, user: User) -> None:
    """It goes on, or ends with an error and is run again; either way all is there, once."""
    deaths = [server.kill]
    starts = [server.start]

    def progress(done: int, total: int) -> None:
        if deaths:
            deaths.pop()()
            if not for_good:
                starts.pop()()

    with closing(open_store(f"sqlite:{user.folder}/source.db")) as source:
        for number in range(30):
            source.commit([], [Append("mail/ann", b"%d of %d" % (n, number)) for n in range(50)])
        with closing(open_store(server.other_url)) as target, suppress(errors.EngineUnreachable):
            Migration(source, "a", target, "b").run(nothing, progress)
        for start_it in starts:
            start_it()
        with closing(open_store(server.other_url)) as target:
            done = Migration(source, "a", target, "b").run(nothing, unseen)
            assert held(target) == held(source)
    assert not deaths
    assert (done.how, done.mended) == ("copied" if for_good else "compared", 0)
