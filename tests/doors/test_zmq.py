"""The ZeroMQ door: real hubs, real sockets, agents that know nothing of accord's code."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
import zmq as zeromq

from accord.doors import zmq
from accord.home import Home
from accord.hub.core import Hub
from accord.hub.log import Log
from accord.services.keys import Keys
from tests.cli.users import User
from tests.doors.zmq_agent import TIMEOUT_S, Agent, read_key
from tests.ports import free_port

MEMORY = Path("/dev/shm")
RACE_S = 5.0


class Owner(User):
    """Somebody with a hub on a port of its own, and the agents ann and ben."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()
        self.tokens = {name: self._register(name) for name in ("ann", "ben")}

    def start_hub(self) -> Any:
        return self.json("hub", "start", "--port", str(self.port), "--http-port", str(free_port()))

    def make_key(self, name: str) -> dict[str, str]:
        return read_key(self.json("hub", "keys", "make", name)["path"])

    def counted(self, what: str) -> int:
        """How often the log says that something happened, by now."""
        lines = [json.loads(line) for line in (self.home / "hub/log.jsonl").read_text().splitlines()]
        return sum(line["times"] for line in lines if line["event"] == what and line["door"] == "zmq")

    def _register(self, name: str) -> str:
        self.json("register", name)
        return (self.home / f"agents/{name}.token").read_text().strip()


@pytest.fixture
def owner() -> Iterator[Owner]:
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        found = Owner(folder)
        yield found
        found.run("hub", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def ann(owner: Owner) -> Iterator[Agent]:
    """Connected to a hub, as ann."""
    owner.start_hub()
    with Agent(owner.make_key("ann")) as agent:
        agent.become("ann", owner.tokens["ann"])
        yield agent


def until(what: Callable[[], bool], within_s: float = RACE_S) -> bool:
    deadline = time.monotonic() + within_s
    while not (so := what()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return so


@pytest.mark.covers("T0.2")
def test_requests_batches_and_notifications(ann: Agent, owner: Owner) -> None:
    sent = ann.call("mail.send", sender="ann", to=["ben"], message="hello")
    assert sent["to"] == [{"identity": "ben", "state": "queued"}]
    assert ann.error("no.such.thing") == "METHOD_NOT_FOUND"
    assert ann.error("cli.run", argv=["check"]) == "METHOD_NOT_FOUND"
    assert ann.error("mail.check", identity="ben") == "NOT_PERMITTED"
    assert ann.error("hub.stop") == "NOT_PERMITTED"

    say = {"sender": "ann", "to": ["ben"]}
    ann.send({"jsonrpc": "2.0", "method": "mail.send", "params": {**say, "message": "a notification"}})
    ann.send(
        [
            {"jsonrpc": "2.0", "id": "x", "method": "mail.send", "params": {**say, "message": "in a batch"}},
            {"jsonrpc": "2.0", "method": "mail.send", "params": {**say, "message": "without an id"}},
            {"jsonrpc": "2.0", "id": "y", "method": "hub.ping"},
            {"jsonrpc": "2.0", "id": "z", "method": "no.such.thing"},
        ]
    )
    answers = {answer["id"]: answer for answer in ann.receive()}
    assert answers.keys() == {"x", "y", "z"}
    assert answers["y"]["result"] == {}
    assert answers["z"]["error"]["code"] == -32601
    found = owner.json("check", "ben")["messages"]
    assert [message["message"] for message in found] == ["hello", "a notification", "in a batch", "without an id"]


@pytest.mark.covers("T3.11", "T0.2")
def test_a_malformed_frame_is_answered_counted_logged_and_the_connection_lives_on(ann: Agent, owner: Owner) -> None:
    for frame in (b"", b"{", b"junk", b"\xff\xfe", b"[]", b"1", b'{"jsonrpc":"1.0"}', b'{"a":' * 5000):
        ann.send_raw(frame)
        answer = ann.receive()
        assert answer["id"] is None
        assert answer["error"]["code"] in (-32700, -32600), answer
    ann.send_raw(b'{"jsonrpc":"2.0",', b'"id":1,"method":"hub.ping"}')
    assert "2 frames" in ann.receive()["error"]["message"]
    assert ann.call("mail.send", sender="ann", to=["ann"], message="still me")
    assert until(lambda: owner.counted("malformed") == 9)
    assert ann.call("hub.statistics")["malformed"] == 9


def test_a_frame_that_is_too_large(ann: Agent, owner: Owner) -> None:
    """It is refused; one so large that it is not even taken costs the connection, and nothing else."""
    ann.send_raw(b" " * (9 << 20) + b"{}")
    assert ann.receive()["error"]["code"] == -32700
    assert ann.call("hub.ping") == {}
    ann.send_raw(b" " * (40 << 20))
    assert ann.hears_nothing()
    with Agent(read_key(str(owner.home / "hub/keys/ann.json"))) as again:
        assert again.call("hub.ping") == {}


@pytest.mark.covers("T0.2")
def test_mail_is_pushed_and_acknowledged(ann: Agent, owner: Owner) -> None:
    owner.json("send", "--from", "ben", "--to", "ann", "--message", "before")
    ann.call("mail.listen", identity="ann")
    first = ann.next_mail()
    assert (first["message"], first["from"]) == ("before", "ben")
    owner.json("send", "--from", "ben", "--to", "ann", "--message", "after")
    second = ann.next_mail()
    assert second["message"] == "after"
    found = {agent["identity"]: agent for agent in owner.json("discover")["identities"]}
    assert found["ann"]["listener"]["connected"] is True
    assert owner.json("check", "ann", "--peek")["messages"]
    ann.call("mail.ack", identity="ann", ids=[first["message_id"], second["message_id"]])
    assert owner.json("check", "ann", "--peek")["messages"] == []
    ann.call("listen.stop")
    owner.json("send", "--from", "ben", "--to", "ann", "--message", "unheard")
    assert ann.hears_nothing(0.5)


@pytest.mark.covers("T0.2")
def test_an_agent_goes_on_with_the_next_hub(ann: Agent, owner: Owner) -> None:
    """It is told of the end. ZeroMQ connects again by itself; who listened says so anew, and misses nothing."""
    ann.call("mail.listen", identity="ann")
    for text in ("one", "two"):
        owner.json("send", "--from", "ben", "--to", "ann", "--message", text)
    one, two = (ann.next_mail() for _ in range(2))
    ann.call("mail.ack", identity="ann", ids=[one["message_id"]])
    assert owner.json("hub", "stop")["stopped"]
    assert ann.next_pushed("hub.stopping") == {}
    owner.json("send", "--from", "ben", "--to", "ann", "--message", "three")
    owner.start_hub()
    assert ann.error("mail.check", identity="ann") == "TOKEN_MISSING", "it is a new session"
    ann.become("ann", owner.tokens["ann"])
    ann.call("mail.listen", identity="ann")
    assert ann.next_mail()["message_id"] == two["message_id"]
    assert ann.next_mail()["message"] == "three"


def test_a_hub_that_was_killed(ann: Agent, owner: Owner) -> None:
    os.kill(owner.json("hub", "status")["pid"], signal.SIGKILL)
    assert until(lambda: owner.run("hub", "status").code == 3)
    owner.start_hub()
    assert ann.call("hub.ping") == {}


@pytest.mark.covers("T0.2")
def test_who_has_no_good_key_gets_nothing(owner: Owner) -> None:
    owner.start_hub()
    good, revoked = owner.make_key("ann"), owner.make_key("ben")
    owner.json("hub", "keys", "revoke", "ben")
    public, secret = (half.decode() for half in zeromq.curve_keypair())
    strangers = {
        "a key that nobody made": {**good, "public": public, "secret": secret},
        "a public key without its secret": {**good, "secret": secret},
        "another hub's key": {**good, "server": public},
        "a revoked key": revoked,
    }
    with ExitStack() as stack:
        there = {what: stack.enter_context(Agent(key)) for what, key in strangers.items()}
        there["no key"] = stack.enter_context(Agent(None, good["endpoint"]))
        password = {"plain_username": b"admin", "plain_password": b"admin"}
        there["a password"] = stack.enter_context(Agent(None, good["endpoint"], **password))
        for agent in there.values():
            with suppress(zeromq.Again):  # turned away so soon that there is nobody left to send to
                agent.send({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"})
        time.sleep(1.0)
        assert {what: agent.receive(0.05) for what, agent in there.items()} == dict.fromkeys(there)
        assert stack.enter_context(Agent(good)).call("hub.ping") == {}
        assert until(lambda: owner.counted("refused") >= 2), "those whose handshake got as far as the key"


@pytest.mark.covers("T0.2")
def test_keys_count_at_once_and_revoking_ends_what_is_there(ann: Agent, owner: Owner) -> None:
    ann.call("mail.listen", identity="ann")
    with Agent(owner.make_key("other")) as other:
        assert other.call("hub.ping") == {}, "made while the hub runs"
        assert set(other.call("hub.listeners")) == {"ann"}
        owner.json("hub", "keys", "revoke", "ann")
        owner.json("send", "--from", "ben", "--to", "ann", "--message", "for ann alone")
        ann.send({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"})
        assert ann.hears_nothing(1.5)
        assert until(lambda: other.call("hub.listeners") == {})
        # A new key of the old name is another key.
        again = owner.make_key("ann")
        ann.send({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"})
        assert ann.hears_nothing()
        with Agent(again) as new:
            new.become("ann", owner.tokens["ann"])
            new.call("mail.listen", identity="ann")
            assert new.next_mail()["message"] == "for ann alone"


@pytest.mark.covers("T0.2")
def test_the_files_of_keys(owner: Owner) -> None:
    """They are made before or after the hub's first start, and are the owner's alone."""
    made = owner.json("hub", "keys", "make", "ann")
    server = made["server"]
    owner.start_hub()
    assert "secret" not in made
    later = owner.json("hub", "keys", "make", "ben")
    assert (later["server"], later["endpoint"]) == (server, f"tcp://127.0.0.1:{owner.port}")
    keys = owner.home / "hub/keys"
    assert {path: oct(path.stat().st_mode & 0o777) for path in keys.rglob("*")} == {
        path: "0o700" if path.is_dir() else "0o600" for path in keys.rglob("*")
    }
    assert oct(keys.stat().st_mode & 0o777) == "0o700"
    assert read_key(made["path"]).keys() == {"name", "server", "public", "secret", "endpoint"}
    assert [key["name"] for key in owner.json("hub", "keys", "list")["keys"]] == ["ann", "ben"]
    assert owner.run("hub", "keys", "make", "ann").error == "KEY_EXISTS"
    assert owner.run("hub", "keys", "revoke", "zoe").error == "KEY_NOT_FOUND"
    for name in ("../x", "hub"):
        assert owner.run("hub", "keys", "make", name).error == "INVALID_IDENTITY"

    moved = owner.folder / "moved.json"
    Path(made["path"]).rename(moved)
    assert owner.run("hub", "keys", "make", "ann").error == "KEY_EXISTS", "its file may be elsewhere by now"
    with Agent(read_key(str(moved)), later["endpoint"]) as agent:
        assert agent.call("hub.ping") == {}
    owner.json("hub", "keys", "revoke", "ann")
    assert [key["name"] for key in owner.json("hub", "keys", "list")["keys"]] == ["ben"]


def test_keys_are_the_operators(ann: Agent, owner: Owner) -> None:
    for words in (["make", "x"], ["list"], ["revoke", "ann"]):
        assert owner.run("hub", "keys", *words, env={"ACCORD_AGENT": "ann"}).error == "NOT_PERMITTED"
    assert ann.error("hub.keys_make", name="x") == "NOT_PERMITTED"
    ann.call("session.open", operator=(owner.home / "operator/token").read_text().strip())
    made = ann.call("hub.keys_make", name="x")
    assert "secret" not in made
    assert [key["name"] for key in ann.call("hub.keys_list")["keys"]] == ["ann", "x"]


def test_keys_made_at_once(owner: Owner) -> None:
    """One of those who want the same name gets it, and all hold the same hub's key."""
    names = ["same"] * 4 + ["a", "b", "c"]
    started = [owner.start("--json", "hub", "keys", "make", name) for name in names]
    codes = [process.wait(TIMEOUT_S) for process in started]
    for process in started:
        process.communicate()
    assert sorted(codes[:4]) == [0, 73, 73, 73]
    assert codes[4:] == [0, 0, 0]
    files = [file for file in (owner.home / "hub/keys").glob("*.json") if file.stem != "hub"]
    assert len(files) == 4
    assert len({read_key(str(file))["server"] for file in files}) == 1


def test_a_damaged_key_of_the_hub_is_named(owner: Owner) -> None:
    owner.json("hub", "keys", "make", "ann")
    path = owner.home / "hub/keys/hub.json"
    for text in ("{", "[]", '{"public":"x","secret":"y"}', "{}"):
        path.write_text(text)
        done = owner.run("--json", "hub", "start", "--port", str(owner.port))
        assert (done.error, done.json["details"]["path"]) == ("INVALID_CONFIG", str(path))
    path.unlink()
    assert owner.start_hub()["started"]


@pytest.mark.covers("T3.4", "T0.2")
def test_a_port_that_somebody_has(owner: Owner) -> None:
    with socket.create_server(("127.0.0.1", owner.port)):
        for _ in range(2):
            done = owner.run("--json", "hub", "start", "--port", str(owner.port))
            assert done.error == "PORT_IN_USE"
            assert done.json["details"]["port"] == owner.port
            assert done.json["details"]["blocking_pid"] == os.getpid()
            assert str(os.getpid()) in done.json["error_message"]
            assert owner.run("hub", "status").code == 3, "nothing is left of it"
        assert not (owner.home / "hub/socket").exists()
    assert owner.start_hub()["port"] == owner.port


@pytest.mark.covers("T0.2")
def test_without_a_port_a_free_one_is_taken(owner: Owner) -> None:
    owner.json("init")
    (owner.home / "accord.yml").write_text(f"hub_port: {owner.port}\n")
    with socket.create_server(("127.0.0.1", owner.port)):
        found = owner.json("hub", "start")
    assert found["port"] not in (owner.port, None)
    with Agent(owner.make_key("ann")) as agent:
        assert agent.call("hub.ping") == {}, "its file names the port that it is"
    owner.json("hub", "stop")
    assert owner.json("hub", "start")["port"] == owner.port


def test_the_example_in_the_docs(owner: Owner) -> None:
    """It stands there as a block of its own, since it needs a hub and a key."""
    owner.start_hub()
    owner.make_key("laptop")
    text = (Path(__file__).parents[2] / "docs/rpc.md").read_text()
    program = textwrap.dedent(text.partition("after `accord hub keys make laptop`:\n")[2].partition("\nThe key's")[0])
    done = owner.run(command=(sys.executable, "-c", program))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "hello"


@pytest.mark.covers("T0.2")
def test_files_of_keys_name_the_port_that_the_hub_has_now(owner: Owner) -> None:
    """But for those that lead here by another way, or were taken elsewhere."""
    owner.start_hub()
    names = ("ann", "elsewhere", "tunnel", "broken")
    paths = {name: owner.home / f"hub/keys/{name}.json" for name in names}
    keys = {name: owner.make_key(name) for name in names}
    tunnel = {**keys["tunnel"], "endpoint": "tcp://10.0.0.1:4000"}
    paths["tunnel"].write_text(json.dumps(tunnel))
    paths["elsewhere"].unlink()
    paths["broken"].write_text("no key")
    found = owner.json("hub", "restart", "--port", str(free_port()))
    with Agent(read_key(str(paths["ann"]))) as agent:
        assert agent.call("hub.ping") == {}
    assert read_key(str(paths["ann"])) == {**keys["ann"], "endpoint": f"tcp://127.0.0.1:{found['port']}"}
    assert stat.S_IMODE(paths["ann"].stat().st_mode) == 0o600
    assert read_key(str(paths["tunnel"])) == tunnel
    assert paths["broken"].read_text() == "no key"
    assert not paths["elsewhere"].exists()
    log = (owner.home / "hub/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["keys"] for line in log if '"keys_moved"' in line] == [["ann"]]


@pytest.mark.covers("T0.2")
def test_another_port_than_the_running_hubs(owner: Owner) -> None:
    owner.start_hub()
    assert owner.start_hub()["started"] is False
    done = owner.run("--json", "hub", "start", "--port", str(free_port()))
    assert (done.error, done.json["details"]["port"]) == ("HUB_NOT_RUNNING", owner.port)
    assert str(owner.port) in done.json["error_message"]


def test_a_routing_id_of_ones_own_is_refused(ann: Agent, owner: Owner) -> None:
    """Else whoever uses it next would be sent the mail of whoever had it before."""
    with Agent(owner.make_key("ben"), routing_id=b"ben") as agent:
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"})
        assert "routing id" in agent.receive()["error"]["message"]
    assert ann.call("hub.ping") == {}


# With the door in this process, where its clock and its limits can be moved.


class Inside:
    """A hub and its door in this process."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self.door = zmq.Door(hub, free_port())
        self.hub = hub
        self._keys = Keys(str(home))

    def key(self, name: str) -> dict[str, str]:
        return read_key(self._keys.make(name, f"tcp://127.0.0.1:{self.hub.ports['port']}")["path"])

    def register(self, agent: Agent, name: str) -> None:
        agent.call("agent.register", identity=name)
        agent.become(name, self.hub.tokens.read(name))


def inside(home: Path, test: Callable[[Inside], Awaitable[None]]) -> None:
    async def run() -> None:
        hub = Hub(Home(str(home)), str(home), Log(str(home / "log")))
        found = Inside(home, hub)
        await found.door.open()
        try:
            await asyncio.wait_for(test(found), 60)
        finally:
            found.door.close()
            hub.close(1.0)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def aside(work: Callable[..., Any], *args: Any, **more: Any) -> Any:
    return await asyncio.to_thread(work, *args, **more)


@pytest.mark.covers("R11")
def test_who_is_silent_is_forgotten_and_told(tmp_path: Path) -> None:
    async def test(there: Inside) -> None:
        with Agent(there.key("ann")) as agent:
            await aside(agent.call, "events.listen")
            assert len(there.hub.feeds) == 1
            there.door.sweep(time.monotonic() + zmq.SILENCE_S - 5)
            assert len(there.hub.feeds) == 1
            there.door.sweep(time.monotonic() + zmq.SILENCE_S + 1)
            assert (len(there.hub.feeds), there.door.callers) == (0, {})
            assert "60 s" in (await aside(agent.next_pushed, "session.ended"))["reason"]
            assert await aside(agent.call, "hub.ping") == {}
            assert len(there.door.callers) == 1

    inside(tmp_path, test)


@pytest.mark.covers("R11")
def test_who_is_gone_is_forgotten_at_the_first_word_to_them(tmp_path: Path) -> None:
    async def test(there: Inside) -> None:
        with Agent(there.key("ann")) as agent:
            await aside(agent.call, "events.listen")
        while there.door.callers:
            there.hub.feeds.tell_all("hub.alive", {})
            await asyncio.sleep(0.02)
        assert len(there.hub.feeds) == 0

    inside(tmp_path, test)


@pytest.mark.covers("R11")
def test_a_limit_of_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "MOST_CALLERS", 2)

    async def test(there: Inside) -> None:
        key = there.key("ann")
        with Agent(key) as first, Agent(key) as third:
            with Agent(key) as second:
                await aside(first.call, "hub.ping")
                await aside(second.call, "hub.ping")
                third.send({"jsonrpc": "2.0", "id": 1, "method": "hub.ping"})
                refused = await aside(third.receive)
                assert refused["error"]["data"]["error_code"] == "TOO_BUSY"
            now = time.monotonic()
            while len(there.door.callers) == 2:
                now += 6
                there.door.sweep(now)
                await asyncio.sleep(0.02)
            assert await aside(third.call, "hub.ping") == {}
            assert await aside(first.call, "hub.ping") == {}

    inside(tmp_path, test)


def test_a_limit_of_requests_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "MOST_IN_FLIGHT", 5)

    async def test(there: Inside) -> None:
        with Agent(there.key("ann")) as agent:
            await aside(there.register, agent, "ann")
            wait = {"identity": "ann", "wait": 2}
            for id in range(8):
                agent.send({"jsonrpc": "2.0", "id": id, "method": "mail.check", "params": wait})
            answers = [await aside(agent.receive) for _ in range(8)]
            assert [answer["id"] for answer in answers[:3]] == [5, 6, 7]
            assert {answer["error"]["data"]["error_code"] for answer in answers[:3]} == {"TOO_BUSY"}
            assert {answer["id"] for answer in answers[3:]} == {0, 1, 2, 3, 4}
            assert all("result" in answer for answer in answers[3:])

    inside(tmp_path, test)


@pytest.mark.covers("R11")
def test_a_slow_listener_stays_behind_and_nobody_else_notices(tmp_path: Path) -> None:
    count, size = 400, 100_000

    async def test(there: Inside) -> None:
        with Agent(there.key("slow"), rcvhwm=1, rcvbuf=4096) as slow, Agent(there.key("quick")) as quick:
            await aside(there.register, slow, "slow")
            await aside(there.register, quick, "quick")
            await aside(slow.call, "mail.listen", identity="slow")
            for number in range(count):
                text = f"{number} ".ljust(size, "x")
                await aside(quick.call, "mail.send", sender="quick", to=["slow"], message=text)
            caller = next(caller for caller in there.door.callers.values() if caller.feeds)
            assert not caller.can_take()
            assert caller.feeds[0].blocked
            assert len(caller._waiting) <= 100, "no more than a page"
            began = time.monotonic()
            assert await aside(quick.call, "hub.ping") == {}
            assert time.monotonic() - began < 1.0
            for number in range(count):
                found = await aside(slow.next_mail)
                assert found["message"].startswith(f"{number} ")
            await asyncio.sleep(0.1)
            assert caller.can_take()

    inside(tmp_path, test)


def test_who_takes_nothing_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "MOST_UNTAKEN", 10)
    monkeypatch.setattr(zmq, "MOST_WAITING", 50)

    async def test(there: Inside) -> None:
        with Agent(there.key("ann"), rcvhwm=1, rcvbuf=4096, sndhwm=0) as agent:
            await aside(agent.call, "hub.ping")
            (caller,) = there.door.callers.values()
            while not caller.session.gone:
                for _ in range(100):
                    agent.send_raw(b'"' + b"x" * 50_000)
                    agent.send({"jsonrpc": "2.0", "id": "i" * 20_000, "method": "hub.ping"})
                await asyncio.sleep(0.01)

    inside(tmp_path, test)
