"""A hub that is short of something, or that somebody treats badly: the others are served, and it lives on."""

import errno
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.services.halt import Halt, HaltAtLook
from tests.cli.users import User
from tests.doors.zmq_agent import Agent, read_key
from tests.hub.hubs import (
    TIMEOUT_S,
    bodies,
    command,
    connect,
    cpu_of,
    daemon_program,
    foreground,
    log,
    memory_of,
    operator,
    refusal,
    running,
    start,
    statistics,
    status,
    token_of,
    wait_until,
)
from tests.robustness.disks import small_disk

MIB = 1 << 20
QUICK_S = 1.0
PING = b'{"jsonrpc":"2.0","id":"ping","method":"hub.ping"}\n'


def message(n: int, size: int = 10) -> dict[str, Any]:
    return {"sender": "ann", "to": ["ben"], "message": f"{n} ".ljust(size, "x")}


@contextmanager
def raw(user: User) -> Iterator[socket.socket]:
    """A connection of somebody who keeps to no rules."""
    with closing(socket.socket(socket.AF_UNIX)) as found:
        found.settimeout(TIMEOUT_S)
        found.connect(str(user.home / "hub/socket"))
        yield found


def answers_to(connection: socket.socket, *, most: int = 64 * MIB) -> list[Any]:
    """Everything that comes until a ping, sent now, is answered."""
    connection.sendall(b"\n" + PING)
    got = b""
    while b'"id":"ping"' not in got or not got.endswith(b"\n"):
        piece = connection.recv(1 << 18)
        assert piece, "the hub closed the connection"
        got += piece
        assert len(got) < most
    return [json.loads(line) for line in got.split(b"\n")[:-1]]


def quickly(user: User) -> None:
    """Somebody else is served at once."""
    began = time.monotonic()
    with closing(operator(user)) as other:
        other.call("mail.send", {"sender": "ben", "to": ["ann"], "message": "hello"}, TIMEOUT_S)
        other.call("mail.check", {"identity": "ann", "limit": 1}, TIMEOUT_S)
    assert time.monotonic() - began < QUICK_S


@pytest.mark.covers("T3.1")
def test_out_of_file_descriptors(ann: User) -> None:
    """Who is connected stays so and is served; who comes later has to wait, or to do without."""
    limit = 200
    lower = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))"
    with foreground(ann, *daemon_program(ann, lower)) as process, closing(operator(ann)) as first:
        first.call("mail.listen", {"identity": "ben"}, TIMEOUT_S)
        many = []
        try:
            for _ in range(2 * limit):
                connection = socket.socket(socket.AF_UNIX)
                many.append(connection)
                connection.settimeout(0.2)
                connection.connect(str(ann.home / "hub/socket"))
            for n in range(5):
                first.call("mail.send", message(n), TIMEOUT_S)
            # Commands do without.
            ann.json("send", "--from", "ann", "--to", "ben", "--message", "around it")
            assert len(bodies(ann, "ben")) == 6
        finally:
            for connection in many:
                connection.close()
        wait_until(lambda: can_connect(ann), "new connections")
        assert process.poll() is None
        first.call("mail.send", message(9), TIMEOUT_S)
        pushed = [one["params"]["message"]["message"] for one in first.unheard if one["method"] == "mail.message"]
        while len(pushed) < 7:
            found = first.receive(TIMEOUT_S)
            assert found is not None
            pushed += [found["params"]["message"]["message"]] if found.get("method") == "mail.message" else []
        assert [text.split()[0] for text in pushed] == ["0", "1", "2", "3", "4", "around", "9"]
        assert cpu_over(process.pid, 1.0) < 0.2


@pytest.mark.covers("T3.1", "Q5")
@pytest.mark.parametrize("door", ["http_port", "port"])
def test_connections_over_tcp_take_no_file_that_others_need(door: str, ann: User) -> None:
    """They have shown nothing yet. Who is connected is served, hears what comes, and is told of no HALT."""
    limit = 150
    lower = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))"
    with foreground(ann, *daemon_program(ann, lower)) as process, ExitStack() as stack:
        first, listener = (stack.enter_context(closing(operator(ann))) for _ in range(2))
        listener.call("mail.listen", {"identity": "ben"}, TIMEOUT_S)
        for n in range(3 * limit):
            connection = stack.enter_context(closing(socket.socket()))
            connection.settimeout(0.2)
            try:
                connection.connect(("127.0.0.1", status(ann)[door]))
            except OSError:
                pass  # it need not be let in
            if n % 50 == 0:
                first.call("mail.send", message(n), TIMEOUT_S)
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/fd")) < limit - 20, "files for others")
        first.call("agent.discover", {}, TIMEOUT_S)
        for n in range(0, 3 * limit, 50):
            found = taken(listener, "mail.message", 1)
            assert found[0]["message"]["message"].split()[0] == str(n)
        with closing(operator(ann)) as later:
            later.call("mail.send", message(1), TIMEOUT_S)
        assert log(ann, "failure") == []


@pytest.mark.covers("X8", "T3.1")
def test_that_no_file_can_be_opened_is_no_halt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is taken for one who waits to be engaged, and what the hub knew it goes on with."""
    halt, known = Halt(str(tmp_path)), HaltAtLook(str(tmp_path))

    def refuse(*all: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("accord.services.halt.os.open", refuse)
    with pytest.raises(errors.TooManyFiles):
        halt.count()
    known.look()
    assert (known.reason(), known.count()) == (None, 0)


def can_connect(user: User) -> bool:
    try:
        with closing(connect(user)) as connection:
            return connection.call("hub.ping", {}, 1.0) == {}
    except OSError:
        return False


def cpu_over(pid: int, seconds: float) -> float:
    """The part of one processor that a process takes."""
    before = cpu_of(pid)
    time.sleep(seconds)
    return (cpu_of(pid) - before) / seconds


@pytest.mark.covers("S4")
def test_a_full_disk(user: User) -> None:
    """Changes are refused whole, reading goes on, and changing too as soon as there is room."""
    with small_disk(user.folder / "disk", "8m") as disk:
        user.home = disk.path / "home"
        user.env["ACCORD_HOME"] = str(user.home)
        for name in ("ann", "ben"):
            user.json("register", name)
        pid = start(user)
        try:
            with closing(operator(user)) as connection:
                connection.call("mail.send", message(1), TIMEOUT_S)
                disk.fill()
                for n in (2, 3):
                    assert refusal(connection, "mail.send", message(n, 20_000)) == "STORAGE_FULL"
                together = [
                    {"jsonrpc": "2.0", "id": n, "method": "mail.send", "params": message(n, 20_000)} for n in (4, 5)
                ]
                connection.send(together)  # type: ignore[arg-type]
                both: Any = connection.receive(TIMEOUT_S)
                assert [one["error"]["data"]["error_code"] for one in both] == ["STORAGE_FULL"] * 2
                found = connection.call("mail.check", {"identity": "ben"}, TIMEOUT_S)["messages"]
                assert [one["message"].split()[0] for one in found] == ["1"]
                assert user.run("--json", "send", "--from", "ann", "--to", "ben", "--message", "x" * 20_000).error == (
                    "STORAGE_FULL"
                )
                os.kill(pid, signal.SIGUSR1)  # which cannot be logged
                disk.free()
                connection.call("mail.send", message(6), TIMEOUT_S)
            user.json("send", "--from", "ann", "--to", "ben", "--message", "7 ")
            assert [text.split()[0] for text in bodies(user, "ben")] == ["1", "6", "7"]
            assert status(user)["pid"] == pid
        finally:
            user.run("hub", "stop")


@pytest.mark.covers("T3.5", "T1.6")
@pytest.mark.parametrize("how", [[], ["--exec", "./on-mail"]], ids=["printed", "for a command"])
def test_who_listens_waits_for_a_full_disk(how: list[str], user: User) -> None:
    """What was given out is acknowledged when that can be, and not given out again."""
    texts = [str(n) for n in range(5)]
    (user.work / "on-mail").write_text("#!/bin/sh\ncat >>out\n")
    (user.work / "on-mail").chmod(0o755)
    with small_disk(user.folder / "disk", "8m") as disk:
        user.home = disk.path / "home"
        user.env["ACCORD_HOME"] = str(user.home)
        for name in ("ann", "ben"):
            user.json("register", name)
        start(user)
        try:
            with closing(operator(user)) as connection:
                for text in texts:
                    connection.call("mail.send", {**message(0), "message": text}, TIMEOUT_S)
                disk.fill()
                given = user.work / "out"
                with given.open("wb") as out, running(user, "listen", "ben", "--json", *how, out=out) as listener:
                    wait_until(lambda: given.read_text().count("\n") >= (1 if how else 5), "what was there")
                    time.sleep(0.3)  # in which it can acknowledge that, or not
                    assert listener.poll() is None
                    disk.free()
                    wait_until(lambda: not bodies(user, "ben"), "all acknowledged")
                    connection.call("mail.send", {**message(0), "message": "5"}, TIMEOUT_S)
                    wait_until(lambda: not bodies(user, "ben"), "the last one acknowledged")
                    listener.terminate()
                    assert listener.wait(TIMEOUT_S) == 0
                assert [json.loads(line)["message"] for line in given.read_text().splitlines()] == [*texts, "5"]
        finally:
            user.run("hub", "stop")


def strange_lines(chance: random.Random) -> Iterator[bytes]:
    """Lines that are almost what they should be, and lines that are nothing of the kind."""
    methods = ["mail.send", "mail.check", "mail.ack", "mail.listen", "events.listen", "listen.stop", "session.open",
               "cli.run", "hub.listeners", "agent.register", "agent.discover", "config.show", "halt.status", "hub.stop",
               "mail.thread", "mail.search", "channel.join", "nothing", "", "mail.", ".", "a" * 10_000]  # fmt: skip
    names = ["identity", "sender", "to", "message", "ids", "wait", "limit", "after", "kinds", "since", "agent", "token",
             "operator", "engine", "argv", "env", "version", "project", "query", "", "é", "conversation"]  # fmt: skip
    values: list[Any] = [None, True, 0, -1, 10**30, 1.5, 1e300, "", "ann", "ben", "\0", "é" * 100, "x" * 5000, [], {},
                         [[]], ["ann"], {"a": {}}, [None], [1, 2], "../../etc/passwd", "0.1.0", [[[[1]]]]]  # fmt: skip
    while True:
        kind = chance.randrange(8)
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": chance.choice([1, "a", 2.5, -7])}
        request["method"] = chance.choice(methods)
        request["params"] = {chance.choice(names): chance.choice(values) for _ in range(chance.randrange(5))}
        request["params"].pop("wait", None)
        if kind == 0:
            yield chance.randbytes(chance.randrange(200)).replace(b"\n", b" ")
        elif kind == 1:
            request[chance.choice(["jsonrpc", "id", "method", "params", "request", "result"])] = chance.choice(values)
            yield json.dumps(request).encode()
        elif kind == 2:
            text = json.dumps(request).encode()
            yield text[: chance.randrange(len(text))]
        elif kind == 3:
            yield json.dumps([request, chance.choice(values), request]).encode()
        elif kind == 4:
            yield b"[" * chance.choice([10, 64, 65, 100_000]) + chance.choice([b"", b"]"]) * 64
        elif kind == 5:
            yield json.dumps({"jsonrpc": "2.0", "id": chance.choice(values), "result": chance.choice(values)}).encode()
        elif kind == 6:
            yield json.dumps(request, ensure_ascii=chance.random() < 0.5).replace("ann", "\\ud800").encode()
        else:
            yield json.dumps(request).encode()


@pytest.mark.covers("T3.1")
@pytest.mark.parametrize("seed", range(3))
def test_strange_requests_harm_nobody(seed: int, hub: User) -> None:
    """Each is answered or ignored; the connection goes on, the hub lives, and holds no more than before."""
    chance = random.Random(seed)
    pid = status(hub)["pid"]
    lines = strange_lines(chance)
    with raw(hub) as connection:
        for n in range(20):
            batch = [next(lines) for _ in range(50)]
            connection.sendall(b"\n".join(batch) + b"\n")
            assert {"jsonrpc": "2.0", "id": "ping", "result": {}} in answers_to(connection)
            if n == 4:
                before = memory_of(pid)
    assert memory_of(pid) - before < 20 * MIB
    assert status(hub)["pid"] == pid
    assert log(hub, "failure") == []
    quickly(hub)


FUZZ_S = 3.0


@pytest.mark.covers("T3.1", "T3.11")
def test_strange_requests_over_zeromq_harm_nobody(hub: User) -> None:
    """From somebody with a key: each frame is answered or ignored, the connection and the hub live on."""
    pid = status(hub)["pid"]
    with Agent(read_key(hub.json("hub", "keys", "make", "ann")["path"])) as agent:

        def send(batch: list[bytes]) -> None:
            for line in batch:
                agent.send_raw(line)
            agent.send_raw(PING)
            while (answer := agent.receive()) is not None and "ping" not in ids_of(answer):
                pass
            assert answer == {"jsonrpc": "2.0", "id": "ping", "result": {}}

        for_a_while(pid, send)
    assert log(hub, "failure") == []
    quickly(hub)


@pytest.mark.covers("T3.1", "Q5")
def test_strange_requests_over_http_harm_nobody(hub: User) -> None:
    """From somebody with a token: each has an answer that is JSON, or none; and the hub lives on."""
    pid = status(hub)["pid"]
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token_of(hub, 'ann')}",
        "Accord-Agent": "ann",
    }
    with closing(HTTPConnection("127.0.0.1", status(hub)["http_port"], timeout=TIMEOUT_S)) as connection:

        def send(batch: list[bytes]) -> None:
            for line in batch:
                connection.request("POST", "/rpc", line, headers)
                answer = connection.getresponse()
                said = answer.read()
                assert (answer.status, bool(said)) in ((200, True), (204, False)), (line, answer.status, said)
                assert not said or json.loads(said)

        for_a_while(pid, send)
    assert log(hub, "failure") == []
    quickly(hub)


def ids_of(answer: Any) -> list[Any]:
    """Of an answer, or of several together; a push has none."""
    return [one.get("id") for one in (answer if isinstance(answer, list) else [answer])]


def for_a_while(pid: int, send: Callable[[list[bytes]], None]) -> None:
    """Send strange requests for some seconds, in which the hub comes to hold no more than in the first."""
    lines = strange_lines(random.Random(7))
    ends_at = time.monotonic() + FUZZ_S
    before = 0
    while time.monotonic() < ends_at:
        send([next(lines) for _ in range(50)])
        if time.monotonic() > ends_at - FUZZ_S + 1 and not before:
            before = memory_of(pid)
    assert memory_of(pid) - before < 20 * MIB
    assert os.path.exists(f"/proc/{pid}"), "the hub lives"


@pytest.mark.covers("T3.1")
def test_a_command_that_is_no_command(hub: User) -> None:
    """The connection lives through what no command line sends."""
    good = command(hub, "discover")
    values: list[Any] = [None, 5, "x", [], {}, [1], {"a": 1}, [[], {}], ["", 1], True]
    with raw(hub) as connection:
        for name in good:
            for value in values:
                params = {**good, name: value}
                request = {"jsonrpc": "2.0", "id": 1, "method": "cli.run", "params": params}
                connection.sendall(json.dumps(request).encode() + b"\n")
                answers_to(connection)
    assert log(hub, "failure") == []
    quickly(hub)


@pytest.mark.covers("T3.1")
def test_a_line_without_end(hub: User) -> None:
    """It is refused once it is too long, is not kept, and the next line is read."""
    pid = status(hub)["pid"]
    before = memory_of(pid)
    with raw(hub) as connection:
        for _ in range(20 * 16):
            connection.sendall(b"x" * (MIB // 16))
        refused, pong = answers_to(connection)
        assert refused["error"]["data"]["error_code"] == "PARSE_ERROR"
        assert pong["id"] == "ping"
        assert memory_of(pid) - before < 40 * MIB
    with raw(hub) as connection:
        connection.sendall(b"x" * MIB)  # and goes away in the middle
    quickly(hub)


@pytest.mark.covers("R11")
def test_who_reads_nothing_slows_nobody(hub: User) -> None:
    """Neither who does not take answers, nor who does not take what is pushed; they cost little, and miss nothing."""
    pid = status(hub)["pid"]
    with closing(operator(hub)) as sender:
        for n in range(20):
            sender.call("mail.send", message(n, MIB // 2), TIMEOUT_S)
    before = memory_of(pid)
    with closing(operator(hub)) as greedy, closing(operator(hub)) as deaf, closing(operator(hub)) as lazy:
        stuck = socket.socket(fileno=os.dup(greedy.fileno()))
        stuck.setblocking(False)
        asking = {"jsonrpc": "2.0", "id": 1, "method": "mail.check", "params": {"identity": "ben", "peek": True}}
        written = 0
        with closing(stuck):
            deadline = time.monotonic() + 1.5
            while time.monotonic() < deadline:
                try:
                    written += stuck.send(json.dumps(asking).encode() + b"\n")
                except BlockingIOError:
                    time.sleep(0.01)
                if written > MIB:
                    break
            deaf.send({"jsonrpc": "2.0", "id": 1, "method": "mail.listen", "params": {"identity": "ben"}})
            lazy.send({"jsonrpc": "2.0", "id": 1, "method": "events.listen", "params": {}})
            time.sleep(0.5)
            for n in range(20, 30):
                quickly(hub)
                with closing(operator(hub)) as sender:
                    sender.call("mail.send", message(n), TIMEOUT_S)
        # At last they read.
        heard = taken(deaf, "mail.message", 30)
        assert [one["message"]["message"].split()[0] for one in heard] == [str(n) for n in range(30)]
        assert len(taken(lazy, "events.event", 10)) >= 10
    wait_until(lambda: statistics(hub)["listeners"] == 0, "nobody listening")
    assert memory_of(pid) - before < 300 * MIB


@pytest.mark.covers("R11")
def test_who_does_not_take_what_is_pushed_stays_behind(hub: User) -> None:
    """It is not read for any further, and when it takes it again everything comes, in order."""
    pid = status(hub)["pid"]
    count, size = 300, MIB // 4
    with closing(operator(hub)) as sender, closing(operator(hub)) as deaf:
        for n in range(count):
            sender.call("mail.send", message(n, size), TIMEOUT_S)
        before = memory_of(pid)
        deaf.send({"jsonrpc": "2.0", "id": 1, "method": "mail.listen", "params": {"identity": "ben"}})
        time.sleep(1.0)
        assert memory_of(pid) - before < count * size * 3 // 4
        quickly(hub)
        heard = taken(deaf, "mail.message", count)
    assert [one["message"]["message"].split()[0] for one in heard] == [str(n) for n in range(count)]


def taken(connection: Any, method: str, count: int) -> list[dict[str, Any]]:
    """So much of what is pushed."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        one = connection.receive(TIMEOUT_S)
        assert one is not None
        found += [one["params"]] if one.get("method") == method else []
    return found


@pytest.mark.covers("R11")
def test_who_does_not_take_answers_costs_little_memory(hub: User) -> None:
    """They are not read from any more; what is answered to them is bounded."""
    pid = status(hub)["pid"]
    with closing(operator(hub)) as sender:
        for n in range(20):
            sender.call("mail.send", message(n, MIB // 2), TIMEOUT_S)
        before = memory_of(pid)
        stuck = socket.socket(fileno=os.dup(sender.fileno()))
        asking = {"jsonrpc": "2.0", "id": 1, "method": "mail.check", "params": {"identity": "ben", "peek": True}}
        with closing(stuck):
            stuck.setblocking(False)
            try:
                stuck.send((json.dumps(asking).encode() + b"\n") * 1000)
            except BlockingIOError:
                pass
            time.sleep(1.5)
        most = memory_of(pid) - before
    assert most < 300 * MIB, f"{most // MIB} MiB for one who reads nothing"


PROGRAM = """
import resource, sys
from accord import place
resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
token = open(sys.argv[1] + "/operator/token").read().strip()
there = []
for n in range(int(sys.argv[2])):
    there.append(Connection(place.socket_path(sys.argv[1]), 20))
    there[-1].call("session.open", {"operator": token}, 20)
    there[-1].call("mail.listen", {"identity": "ben" if n % 2 else "ann"}, 20)
print("ready", flush=True)
sys.stdin.readline()
got = 0
for connection in there[1::2]:
    while True:
        message = connection.receive(20)
        if message.get("method") == "mail.message":
            got += 1
            break
print(got, flush=True)
sys.stdin.readline()
"""


@pytest.mark.covers("R11")
@pytest.mark.long
def test_a_thousand_who_listen_and_hear_nothing(hub: User) -> None:
    """They cost little memory and next to no time; when something comes each of them hears it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard >= 4000, "this machine gives too few file descriptors"
    pid = status(hub)["pid"]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(hub.home), "1000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=hub.env,
        text=True,
    )
    with process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert statistics(hub)["listeners"] == 1000
            time.sleep(0.5)
            assert cpu_over(pid, 5.0) < 0.02
            assert memory_of(pid) < 150 * MIB
            began = time.monotonic()
            hub.json("send", "--from", "ann", "--to", "ben", "--message", "hello")
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "500\n"
            assert time.monotonic() - began < 5
        finally:
            process.kill()
    wait_until(lambda: statistics(hub)["listeners"] == 0, "nobody listening")


def test_too_many_listeners_on_one_connection(hub: User) -> None:
    with closing(operator(hub)) as connection:
        for _ in range(100):
            connection.call("mail.listen", {"identity": "ben"}, TIMEOUT_S)
        with pytest.raises(errors.TooBusy):
            connection.call("mail.listen", {"identity": "ben"}, TIMEOUT_S)
        connection.call("listen.stop", {}, TIMEOUT_S)
        connection.call("mail.listen", {"identity": "ben"}, TIMEOUT_S)
