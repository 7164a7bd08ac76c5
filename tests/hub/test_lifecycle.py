"""A hub comes to be once, however many want it; it ends when it is told to, and nothing that it leaves misleads."""

import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import accord
from accord import errors, operations, platform
from accord.cli.run import VERBS
from accord.client import Connection
from accord.hub import log as hub_log
from tests.cli.users import ACCORD, User
from tests.hub.hubs import (
    TIMEOUT_S,
    bodies,
    command,
    complaint,
    connect,
    daemon_program,
    daemons,
    foreground,
    kill,
    log,
    operator,
    refusal,
    running,
    signal_to,
    somebody,
    start,
    statistics,
    status,
    token_of,
    wait_until,
    was_run_here,
)
from tests.ports import free_port

CROWD = 30
NOT_RUNNING = 3
UNAVAILABLE = 69


def start_together(user: User, *words: str) -> list[Any]:
    """What each of a crowd is answered that runs one command at once."""
    processes = [user.start("--json", *words) for _ in range(CROWD)]
    found = []
    for process in processes:
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b""), (out, err)
        found.append(json.loads(out))
    return found


def one_hub_of_many(user: User, rounds: int) -> None:
    """Each round begins as another one ended: with no hub at all, one that was stopped, or one that was killed."""
    for n in range(rounds):
        answers = start_together(user, "hub", "start")
        assert [answer["started"] for answer in answers].count(True) == 1
        pid = status(user)["pid"]
        assert daemons(user) == [pid]
        assert {answer["pid"] for answer in answers} == {pid}
        assert all(answer["socket"] == answers[0]["socket"] and answer["running"] for answer in answers)
        if n % 2:
            assert user.json("hub", "stop")["stopped"]
        else:
            kill(pid)
        assert not daemons(user)


@pytest.mark.covers("T1.3", "R10")
def test_of_many_starts_at_once_one_makes_the_hub(user: User) -> None:
    one_hub_of_many(user, 5)


@pytest.mark.long
@pytest.mark.covers("T1.3", "R10")
def test_of_many_starts_at_once_one_makes_the_hub_again_and_again(user: User) -> None:
    one_hub_of_many(user, 50)


@pytest.mark.covers("T1.3", "R10")
def test_a_hub_lives_on_when_whoever_started_it_is_killed(user: User) -> None:
    """It inherited the start: others wait for it instead of making another."""
    user.json("init")
    for _ in range(3):
        with running(user, "hub", "start") as starter:
            pid = wait_until(lambda: daemons(user), "the new hub")[0]
            starter.kill()
        answers = [user.json("hub", "start") for _ in range(2)]
        assert [(answer["started"], answer["pid"]) for answer in answers] == [(False, pid)] * 2
        assert daemons(user) == [pid]
        kill(pid)


@pytest.mark.covers("T1.3", "R10", "T3.1")
def test_starters_killed_at_any_moment_leave_nothing_in_the_way(user: User) -> None:
    chance = random.Random(1)
    for _ in range(6):
        starters = [user.start("--json", "hub", "start") for _ in range(6)]
        time.sleep(chance.random() * 0.2)
        for starter in starters[:3]:
            starter.kill()
        for starter in starters[:3]:
            starter.communicate(timeout=TIMEOUT_S)
        for starter in starters[3:]:
            out, err = starter.communicate(timeout=TIMEOUT_S)
            assert (starter.returncode, err) == (0, b"")
            assert json.loads(out)["running"]
        pid = user.json("hub", "start")["pid"]
        assert daemons(user) == [pid]
        kill(pid)


@pytest.mark.covers("T3.1", "T3.14")
def test_a_killed_hub_misleads_nobody(ann: User) -> None:
    for n in range(4):
        pid = start(ann)
        os.kill(pid, signal.SIGKILL)
        platform.wait_for_end(pid, TIMEOUT_S)
        assert (ann.home / "hub/socket").exists()
        done = ann.run("--json", "hub", "status")
        assert (done.code, done.json["running"], done.json["pid"]) == (NOT_RUNNING, False, None)
        assert ann.json("hub", "stop")["stopped"] is False
        ann.json("send", "--from", "ann", "--to", "ben", "--message", f"without {n}")
        found = ann.json("hub", "start")
        assert found["started"]
        assert found["pid"] != pid
        assert not was_run_here(ann, "send", "--from", "ann", "--to", "ben", "--message", f"with {n}")
        kill(found["pid"])
    assert bodies(ann, "ben") == [f"{how} {n}" for n in range(4) for how in ("without", "with")]


@pytest.mark.covers("T3.1", "R20")
@pytest.mark.parametrize("what", ["socket", "file", "link"])
def test_what_lies_in_the_place_of_the_socket_is_replaced(what: str, ann: User) -> None:
    path = ann.home / "hub/socket"
    path.parent.mkdir(mode=0o700)
    other = ann.folder / "other"
    other.write_text("untouched")
    if what == "socket":
        with closing(socket.socket(socket.AF_UNIX)) as stale:
            stale.bind(str(path))
    elif what == "file":
        path.write_text("stale")
    else:
        path.symlink_to(other)
    ann.json("send", "--from", "ann", "--to", "ben", "--message", "around it")
    start(ann)
    assert not was_run_here(ann, "check", "ben", "--peek")
    assert stat.S_ISSOCK(path.lstat().st_mode)
    assert other.read_text() == "untouched"


@pytest.mark.covers("T3.1", "T3.14")
def test_a_hub_that_is_starting(ann: User) -> None:
    """It is there, and has nothing to tell yet; who wants to stop it waits until it can be."""
    with foreground_stopped_while_starting(ann) as process:
        done = ann.run("--json", "hub", "status")
        assert (done.code, done.json["running"], done.json["pid"]) == (0, True, None)
        ann.json("send", "--from", "ann", "--to", "ben", "--message", "meanwhile")
        with running(ann, "--json", "hub", "stop") as stopping, running(ann, "--json", "hub", "start") as starting:
            time.sleep(0.3)
            assert (stopping.poll(), starting.poll()) == (None, None)
            process.send_signal(signal.SIGCONT)
            out = stopping.communicate(timeout=TIMEOUT_S)[0]
            assert json.loads(out)["stopped"] is True
            assert process.wait(TIMEOUT_S) == 0
            out = starting.communicate(timeout=TIMEOUT_S)[0]
            assert json.loads(out)["running"] is True
    assert bodies(ann, "ben") == ["meanwhile"]


def foreground_stopped_while_starting(user: User) -> Any:
    """A hub that has taken the lock and got no further."""
    before = "import signal, accord.hub.core as core\nreal = core.Hub.__init__\n"
    before += "core.Hub.__init__ = lambda *all: (os.kill(os.getpid(), signal.SIGSTOP), real(*all))[1]"
    return _Stopped(user, daemon_program(user, before))


class _Stopped:
    def __init__(self, user: User, program: tuple[str, ...]) -> None:
        self._user = user
        self._program = program

    def __enter__(self) -> "subprocess.Popen[bytes]":
        self._process = subprocess.Popen(self._program, env=self._user.env, stdin=subprocess.DEVNULL)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
        return self._process

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait(TIMEOUT_S)


@pytest.mark.covers("T3.14")
def test_without_a_hub(user: User) -> None:
    """Looking at it and stopping it make nothing, and what needs none works."""
    done = user.run("hub", "status")
    assert (done.code, done.out) == (NOT_RUNNING, "no hub runs\n")
    done = user.run("--json", "hub", "status")
    assert (done.code, done.json["running"], done.json["home"]) == (NOT_RUNNING, False, str(user.home))
    assert user.run("hub", "stop").out == "no hub was running\n"
    assert user.json("hub", "stop")["stopped"] is False
    user.json("register", "ann")
    user.json("send", "--from", "ann", "--to", "ann", "--message", "hello")
    assert bodies(user, "ann") == ["hello"]
    assert not daemons(user)


@pytest.mark.covers("T3.14")
@pytest.mark.parametrize("how", ["option", "variable", "file"])
def test_nothing_is_started_that_shall_not_be(how: str, ann: User) -> None:
    env = {"ACCORD_AUTOSTART": "false"} if how == "variable" else {}
    if how == "file":
        (ann.home / "accord.yml").write_text("autostart: false\n")
    for words in (["listen", "ann"], ["events"]):
        done = ann.run("--json", *(["--no-start"] if how == "option" else []), *words, env=env)
        assert (done.code, done.error) == (UNAVAILABLE, "HUB_NOT_RUNNING")
        assert "hub start" in done.json["error_message"]
    assert not daemons(ann)


@pytest.mark.covers("R10", "T1.3", "T3.14")
@pytest.mark.parametrize("with_port", [False, True])
def test_many_listeners_at_once_start_one_hub(with_port: bool, ann: User) -> None:
    port = ["--hub-port", str(free_port())] if with_port else []
    with ExitStack() as stack:
        listeners = [stack.enter_context(running(ann, "listen", "ben", *port)) for _ in range(CROWD)]
        try:
            wait_until(lambda: status(ann)["pid"], "a hub")
            wait_until(lambda: statistics(ann)["listeners"] == CROWD, "all listeners")
            assert daemons(ann) == [status(ann)["pid"]]
        finally:
            for listener in listeners:
                listener.terminate()
        for listener in listeners:
            assert listener.communicate(timeout=TIMEOUT_S)[1] == b""
            assert listener.returncode == 0


@pytest.mark.covers("T2.2")
def test_a_port_that_is_not_the_hubs(hub: User) -> None:
    """The right one is named, whichever verb it is."""
    right = status(hub)["port"]
    wrong = str(free_port())
    for words in (["hub", "status"], ["hub", "start"], ["listen", "ann"], ["check", "ann"], ["discover"], ["events"]):
        done = hub.run("--json", *words, "--hub-port", wrong)
        assert (done.code, done.error) == (UNAVAILABLE, "HUB_NOT_RUNNING"), (words, done)
        assert done.json["details"]["port"] == right
        assert f"port {right}" in done.json["error_message"]
    if right:
        assert hub.run("check", "ann", "--hub-port", str(right)).code == 0


@pytest.mark.covers("T2.2")
@pytest.mark.parametrize("how", ["option", pytest.param("variable", marks=pytest.mark.more)])
def test_a_port_means_the_same_to_every_verb(how: str, hub: User) -> None:
    pid, right = status(hub)["pid"], status(hub)["port"]
    wrong = str(free_port())
    env = {"ACCORD_HUB_PORT": wrong} if how == "variable" else {}
    option = ["--hub-port", wrong] if how == "option" else []
    # One gives the hub this port, and the other halts whatever is wrong with how it is typed.
    verbs = [verb for verb in VERBS if verb not in ("hub restart", "halt")]
    processes = {verb: hub.start("--json", *verb.split(), *option, env=env) for verb in verbs}
    for verb, process in processes.items():
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (UNAVAILABLE, b""), (verb, out, err)
        found = json.loads(out)
        assert (found["error_code"], found["details"]["port"]) == ("HUB_NOT_RUNNING", right), verb
    assert status(hub)["pid"] == pid
    env = {"ACCORD_HUB_PORT": str(right)} if how == "variable" else {}
    option = ["--hub-port", str(right)] if how == "option" else []
    for words in (["check", "ann"], ["hub", "start"], ["hub", "status"], ["hub", "stop"]):
        assert hub.run(*words, *option, env=env).code == 0
    assert not daemons(hub)


@pytest.mark.covers("T1.4", "T3.3")
def test_a_restart_keeps_the_ports_and_the_agents(ann: User) -> None:
    ports = ["--port", str(free_port()), "--http-port", str(free_port())]
    before = ann.json("hub", "start", *ports)
    for _ in range(2):
        after = ann.json("hub", "restart")
        assert after["started"]
        assert after["pid"] != before["pid"]
        assert (after["port"], after["http_port"]) == (before["port"], before["http_port"])
        assert daemons(ann) == [after["pid"]]
    ann.json("send", "--from", "ann", "--to", "ben", "--message", "still here")
    assert bodies(ann, "ben") == ["still here"]


@pytest.mark.covers("T1.4", "T0.2")
@pytest.mark.parametrize("option", ["--port", "--http-port"])
def test_a_restart_on_a_port_that_is_taken_leaves_the_hub_alone(option: str, ann: User) -> None:
    start(ann, "--port", str(free_port()), "--http-port", str(free_port()))  # not those that every other hub would take
    before = status(ann)
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = ann.run("--json", "hub", "restart", option, str(other.getsockname()[1]))
    assert (done.code, done.error) == (UNAVAILABLE, "PORT_IN_USE")
    assert done.json["details"]["blocking_pid"] == os.getpid()
    both = str(before["port"])
    assert ann.run("hub", "restart", "--port", both, "--http-port", both).error == "USAGE"
    assert status(ann) == before
    swapped = ann.json("hub", "restart", "--port", str(before["http_port"]), "--http-port", str(before["port"]))
    assert (swapped["port"], swapped["http_port"]) == (before["http_port"], before["port"])


@pytest.mark.covers("T2.2")
def test_starting_on_another_port_says_what_to_do(hub: User) -> None:
    port = free_port()
    done = hub.run("hub", "start", "--port", str(port))
    assert f"one runs on port {status(hub)['port']}" in done.err
    assert f"accord hub restart --port {port}" in done.err
    assert "hub start" not in done.err


@pytest.mark.covers("T3.14")
@pytest.mark.parametrize("name", ["nobody", "gone"])
def test_listening_for_somebody_who_is_not_there_starts_nothing(name: str, ann: User) -> None:
    ann.json("register", "gone")
    ann.json("unregister", "gone")
    done = ann.run("listen", name)
    assert (done.code, done.error) == (67, "NOT_REGISTERED")
    assert not daemons(ann)


@pytest.mark.covers("T3.14")
@pytest.mark.parametrize("words", [("listen", "ben"), ("hub", "start")], ids=" ".join)
def test_a_hub_that_is_just_stopping_is_waited_for(words: tuple[str, ...], ann: User) -> None:
    before = "import asyncio, accord.hub.core as core\n"
    before += "async def drain(hub, deadline): await asyncio.sleep(1); return True\ncore.Hub.drain = drain"
    with foreground(ann, *daemon_program(ann, before)) as old:
        old.send_signal(signal.SIGTERM)
        wait_until(lambda: status(ann).get("stopping"), "a hub that stops")
        assert ann.run("hub", "status").out.startswith(f"stopping: process {old.pid}")
        with running(ann, "--json", *words):
            new = wait_until(lambda: another(ann, old.pid), "a new one")
            assert old.wait(TIMEOUT_S) == 0
    assert daemons(ann) == [new]


@pytest.mark.covers("T3.12")
def test_a_hub_that_stands_still_is_waited_for_so_long(ann: User) -> None:
    """As long as is set; and the error says for what."""
    before = "import asyncio, accord.hub.core as core\n"
    before += "async def drain(hub, deadline): await asyncio.sleep(60); return True\ncore.Hub.drain = drain"
    with foreground(ann, *daemon_program(ann, before)) as old:
        old.send_signal(signal.SIGTERM)
        wait_until(lambda: status(ann).get("stopping"), "a hub that stops")
        old.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        done = ann.run("--json", "hub", "start", env={"ACCORD_WAIT_TIMEOUT_S": "1"})
        assert (done.error, done.json["details"]["timeout_seconds"]) == ("HUB_FAILED", 1), done
        assert f"process {old.pid}, did not end within 1 s" in done.json["error_message"]
        assert 0.9 < time.monotonic() - began < 8
        old.kill()


def another(user: User, pid: int) -> int:
    """The hub that runs, if it is not the one known."""
    found = status(user)["pid"]
    return int(found) if found and found != pid else 0


@pytest.mark.covers("T3.14")
def test_a_hub_that_runs_and_does_not_answer_is_shown(hub: User) -> None:
    assert hub.json("hub", "status")["answers"] is True
    pid = status(hub)["pid"]
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    done = hub.run("--json", "hub", "status")
    assert (done.code, done.json["running"], done.json["answers"]) == (UNAVAILABLE, True, False)
    assert time.monotonic() - began < 3
    assert f"does not answer (end it with: accord hub stop): process {pid}" in hub.run("hub", "status").out
    doctor = hub.run("--json", "doctor").json
    (check,) = [check for check in doctor["checks"] if check["check"] == "hub"]
    assert (doctor["healthy"], check["ok"], check["error_code"]) == (False, False, "HUB_SILENT")
    assert f"process {pid}" in check["found"]
    hub.json("hub", "restart")
    assert hub.json("doctor")["healthy"]
    hub.json("hub", "stop")
    assert hub.run("--json", "hub", "status").json["answers"] is False


@pytest.mark.covers("R20")
@pytest.mark.parametrize("method", ["mail.listen", "events.listen"])
def test_a_hub_whose_listener_finds_a_newer_store_ends(method: str, hub: User) -> None:
    pid = status(hub)["pid"]
    with closing(operator(hub)) as listener:
        listener.call(method, {"identity": "ann"} if method == "mail.listen" else {}, TIMEOUT_S)
        with closing(sqlite3.connect(hub.home / "store.db", timeout=TIMEOUT_S)) as newer, newer:
            newer.execute("update meta set format = 99")
        assert told(listener) == "hub.stopping"
        assert platform.wait_for_end(pid, TIMEOUT_S)
    assert log(hub, "outdated")


@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_hub_in_the_foreground_says_where_it_is(json_wanted: bool, ann: User) -> None:
    flags = ["--json"] if json_wanted else []
    with running(ann, *flags, "hub", "start", "--foreground") as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = status(ann)
        if json_wanted:
            assert json.loads(line) == {"status": "ok", "started": True, **found}
        else:
            assert line.startswith(f"started: process {process.pid}, port {found['port']}, http {found['http_port']}")
        second = ann.run(*flags, "hub", "start", "--foreground")
        assert (second.code, second.error) == (UNAVAILABLE, "HUB_FAILED")
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout.read() == b""


@pytest.mark.parametrize("port", ["abc", "0", "65536", "1" * 30, "-1"])
def test_what_is_no_port(port: str, user: User) -> None:
    for words in (["hub", "start"], ["hub", "start", "--foreground"], ["hub", "restart"]):
        for option in ("--port", "--http-port"):
            assert "from 1 to 65535" in user.run(*words, f"{option}={port}").err
    assert "from 1 to 65535" in user.run("hub", "status", f"--hub-port={port}").err
    assert not daemons(user)


def test_following_a_log_that_is_not_there_yet(ann: User) -> None:
    """Until somebody ends it, which is no error to speak of."""
    assert ann.run("hub", "logs").out == ""
    with running(ann, "hub", "logs", "-f") as following:
        time.sleep(0.3)
        assert following.poll() is None
        start(ann)
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["event"] in ("started", "another_port")
        following.send_signal(signal.SIGINT)
        assert following.communicate(timeout=TIMEOUT_S)[1] == b""
        assert following.returncode == 130


def test_kinds_of_events_with_commas(hub: User) -> None:
    with running(hub, "events", "--kind", "mail.sent,channel.changed", "--kind", "agent.changed") as watching:
        wait_until(lambda: statistics(hub)["listeners"], "a listener")
        hub.json("channel", "join", "talk", "--identity", "ann")
        hub.json("send", "--from", "ann", "--to", "ben", "--message", "hello")
        hub.json("check", "ben")
        hub.json("register", "cyd")
        assert watching.stdout is not None
        found = [watching.stdout.readline().split()[0].decode() for _ in range(3)]
        assert found == ["channel.changed", "mail.sent", "agent.changed"]
    done = hub.run("events", "--kind", "mail.sent,nonsense")
    assert (done.code, done.error) == (2, "USAGE")
    assert "'nonsense'" in done.err


@pytest.mark.covers("T1.4")
def test_stopping_finishes_what_was_accepted_and_tells_listeners(hub: User) -> None:
    """Many requests are in flight: each that the hub answers is there, and no other."""
    pid = status(hub)["pid"]
    with closing(operator(hub)) as listener, closing(operator(hub)) as waiter, closing(operator(hub)) as sender:
        listener.call("mail.listen", {"identity": "ann"}, TIMEOUT_S)
        waiter.send({"jsonrpc": "2.0", "id": 1, "method": "mail.check", "params": {"identity": "ann", "wait": 60}})
        wait_until(lambda: statistics(hub)["in_progress"], "one who waits")
        sent = b"".join(sending(n) for n in range(2000))
        raw = socket.socket(fileno=os.dup(sender.fileno()))
        with closing(raw):
            raw.setblocking(False)
            written = raw.send(sent)
            with running(hub, "--json", "hub", "stop") as stopping:
                answered = read_answers(raw, sent[written:])
                out = stopping.communicate(timeout=TIMEOUT_S)[0]
        assert json.loads(out)["stopped"] is True
        assert not daemons(hub)
        assert waiter.receive(1)["result"]["messages"] == []  # type: ignore[index]
        assert told(listener) == "hub.stopping"
    assert answered
    found = everything(hub, "ben")
    assert len(found) == len(set(found))
    assert set(found) == {f"number {n}" for n in answered}
    assert log(hub, "stopped")[-1]["in_time"] is True
    assert not platform.process_started(pid)


def sending(n: int) -> bytes:
    params = {"sender": "ann", "to": ["ben"], "message": f"number {n}"}
    return json.dumps({"jsonrpc": "2.0", "id": n, "method": "mail.send", "params": params}).encode() + b"\n"


def read_answers(raw: socket.socket, rest: bytes) -> list[int]:
    """The ids that are answered well until the hub goes away, while more is sent as it takes it."""
    got = b""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        raw.settimeout(0.01)
        try:
            rest = rest[raw.send(rest[:65536]) :] if rest else rest
        except (TimeoutError, BlockingIOError):
            pass
        except OSError:
            rest = b""
        try:
            piece = raw.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            continue
        except ConnectionResetError:
            break
        if not piece:
            break
        got += piece
    else:
        pytest.fail("the hub never went away")
    answers = [json.loads(line) for line in got.splitlines()]
    return [answer["id"] for answer in answers if "result" in answer]


@pytest.mark.covers("T1.4")
def test_stopping_does_not_wait_for_who_goes_on_asking(hub: User) -> None:
    """What comes later is not accepted: it is not answered, and not there."""
    with ExitStack() as stack:
        senders = [stack.enter_context(closing(operator(hub))) for _ in range(3)]
        answered = [0 for _ in senders]
        threads = [
            threading.Thread(target=go_on_asking, args=(sender, n, answered)) for n, sender in enumerate(senders)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(count > 200 for count in answered), "all at work")
        began = time.monotonic()
        assert hub.json("hub", "stop")["stopped"]
        assert time.monotonic() - began < 3
        for thread in threads:
            thread.join(TIMEOUT_S)
    found = everything(hub, "ben")
    assert sorted(found) == sorted(f"{n} {number}" for n, count in enumerate(answered) for number in range(count))


def go_on_asking(connection: Connection, n: int, answered: list[int]) -> None:
    """Have fifty messages in flight at any time, until the hub goes away; what it has answered by then is read."""
    number = 0
    goes_on = True
    try:
        while True:
            while goes_on and number < answered[n] + 50:
                params = {"sender": "ann", "to": ["ben"], "message": f"{n} {number}"}
                goes_on = can_send(
                    connection, {"jsonrpc": "2.0", "id": number, "method": "mail.send", "params": params}
                )
                number += 1
            if connection.receive(TIMEOUT_S) is None:
                return
            answered[n] += 1
    except ConnectionResetError:
        pass  # what it had not read is lost


def can_send(connection: Connection, request: dict[str, Any]) -> bool:
    try:
        connection.send(request)
    except OSError:
        return False
    return True


def told(listener: Any) -> str:
    """The last word of a hub to who listens."""
    last = ""
    while message := listener.receive(1):
        last = message["method"]
    return last


def everything(user: User, name: str) -> list[str]:
    """All that is unread, however much."""
    found: list[str] = []
    while page := user.json("check", name, "--limit", "1000")["messages"]:
        found += [message["message"] for message in page]
    return found


@pytest.mark.covers("T1.4")
def test_stopping_has_a_deadline(hub: User) -> None:
    """Somebody never answers what their command asks them; the hub does not wait for them for ever."""
    pid = status(hub)["pid"]
    with closing(connect(hub)) as stuck:
        message = command(hub, "send", "--from", "ann", "--to", "ben", "-")
        stuck.send({"jsonrpc": "2.0", "id": 1, "method": "cli.run", "params": message})
        while (asked := stuck.receive(TIMEOUT_S)) and asked["method"] != "cli.read_input":
            pass
        began = time.monotonic()
        assert hub.json("hub", "stop", "--deadline", "1")["stopped"]
        assert 0.9 < time.monotonic() - began < 3
    assert not platform.process_started(pid)
    assert log(hub, "stopped")[-1]["in_time"] is False
    assert bodies(hub, "ben") == []


@pytest.mark.covers("T1.4", "T3.14")
def test_a_hub_that_does_not_move(hub: User) -> None:
    """Commands go on without it after two seconds, and it can be ended."""
    pid = status(hub)["pid"]
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    commands = {
        "send": ["send", "--from", "ann", "--to", "ben", "--message", "around it"],
        "check": ["check", "ann"],
        "discover": ["discover"],
        "register": ["register", "cyd"],
        "sent": ["sent", "ann"],
    }
    processes = {verb: hub.start("--json", *words) for verb, words in commands.items()}
    for verb, process in processes.items():
        err = process.communicate(timeout=TIMEOUT_S)[1]
        assert (process.returncode, err) == (0, b""), verb
        assert time.monotonic() - began < 3.5, verb
    began = time.monotonic()
    assert hub.json("hub", "stop", "--deadline", "1")["stopped"]
    assert time.monotonic() - began < 7
    assert not platform.process_started(pid)
    assert hub.run("hub", "status").code == NOT_RUNNING
    assert bodies(hub, "ben") == ["around it"]


@pytest.mark.covers("R20")
def test_a_home_with_a_long_path() -> None:
    with somebody("a" * 60 + "/" + "b" * 60) as user:
        user.json("register", "ann")
        found = user.json("hub", "start")
        path = Path(found["socket"])
        assert len(str(user.home)) > 108 > len(found["socket"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert not was_run_here(user, "send", "--from", "ann", "--to", "ann", "--message", "far away")
        assert not was_run_here(user, "check", "ann", "--peek")
        with running(user, "--json", "listen", "ann") as listener:
            assert listener.stdout is not None
            assert json.loads(listener.stdout.readline())["message"] == "far away"
            listener.terminate()
            assert listener.wait(TIMEOUT_S) == 0
        user.json("hub", "stop")
        assert not path.exists()


@pytest.mark.covers("R20")
def test_only_the_owner_can_reach_what_a_hub_makes(user: User) -> None:
    assert user.run("hub", "start", umask=0).code == 0
    with closing(operator(user)) as connection:
        connection.call("agent.register", {"identity": "ann"}, TIMEOUT_S)
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in [user.home, *user.home.rglob("*")]}
    assert stat.S_ISSOCK((user.home / "hub/socket").stat().st_mode)
    assert {path: oct(mode) for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


@pytest.mark.covers("T3.15", "T4.2")
def test_the_log_is_json_and_holds_neither_messages_nor_tokens(hub: User) -> None:
    secret = "do-not-log-this"
    with closing(operator(hub)) as connection:
        connection.call("mail.send", {"sender": "ann", "to": ["ben"], "message": secret}, TIMEOUT_S)
        refusal(connection, "mail.send", {"sender": "ann", "to": [secret], "message": secret})
        refusal(connection, "session.open", {"operator": secret})
        refusal(connection, "cli.run", {"version": secret, "argv": secret})
        refusal(connection, secret, {secret: secret})
        raw = socket.socket(fileno=os.dup(connection.fileno()))
        raw.sendall(f"{secret}\n".encode() + json.dumps({"jsonrpc": secret, "method": secret}).encode() + b"\n")
        raw.close()
        wait_until(lambda: log(hub, "malformed"), "the note of what was malformed")
    hub.run("send", "--from", "ann", "--to", "ben", "--message", secret)
    hub.run("check", "ben")
    os.kill(status(hub)["pid"], signal.SIGHUP)
    wait_until(lambda: log(hub, "reloaded"), "the note of having reloaded")
    statistics(hub)
    hub.json("hub", "stop")
    text = hub.run("hub", "logs").out
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"started", "malformed", "reloaded", "statistics", "stopping", "stopped"} <= {
        line["event"] for line in lines
    }
    for line in lines:
        assert line["level"] in ("info", "warning", "error")
        assert line["timestamp"].endswith("Z")
    tokens = [token_of(hub, "ann"), token_of(hub, "ben"), (hub.home / "operator/token").read_text().strip()]
    for path in (hub.home / "hub").glob("[lsc]*"):
        written = path.read_text()
        assert not [word for word in (secret, *tokens) if word in written], path
    assert (hub.home / "hub/crash.txt").read_text() == ""


def test_a_log_that_grows_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_log, "MOST_BYTES", 1000)
    written = hub_log.Log(str(tmp_path / "log"))
    for n in range(200):
        written.info("counted", n=n)
    written.close()
    again = hub_log.Log(str(tmp_path / "log"))
    again.info("counted", n=200)
    again.close()
    names = [f"log.{n}" for n in range(hub_log.KEPT, 0, -1)] + ["log"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all(0 < path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    lines = [json.loads(line) for name in names for line in (tmp_path / name).read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(201 - len(lines), 201))
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_full_disk_does_not_keep_from_logging_later(tmp_path: Path) -> None:
    written = hub_log.Log(str(tmp_path / "folder/log"))
    written.info("lost")
    (tmp_path / "folder").mkdir()
    written.info("found")
    written.close()
    assert json.loads((tmp_path / "folder/log").read_text())["event"] == "found"


@pytest.mark.covers("T3.15")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_end_a_hub(number: int, ann: User) -> None:
    with foreground(ann) as process, closing(operator(ann)) as listener:
        listener.call("mail.listen", {"identity": "ann"}, TIMEOUT_S)
        process.send_signal(number)
        assert told(listener) == "hub.stopping"
        assert process.wait(TIMEOUT_S) == 0
    assert ann.run("hub", "status").code == NOT_RUNNING
    assert not (ann.home / "hub/socket").exists()


@pytest.mark.parametrize("what", ["home", "hub"])
def test_a_hub_whose_home_is_removed_ends_and_does_not_make_it_again(what: str, ann: User) -> None:
    gone = {"home": ann.home, "hub": ann.home / "hub"}[what]
    with foreground(ann) as process:
        status(ann)
        shutil.rmtree(gone)
        assert process.wait(TIMEOUT_S) == 0
    assert not gone.exists(), list(gone.rglob("*"))


@pytest.mark.covers("T3.15")
def test_signals_that_a_hub_lives_through(ann: User) -> None:
    """One reads the settings anew, also for who is connected already; one tells statistics."""
    with foreground(ann) as process, closing(operator(ann)) as connection:
        message = {"sender": "ann", "to": ["ben"], "message": "x" * 100}
        connection.call("mail.send", message, TIMEOUT_S)
        (ann.home / "accord.yml").write_text("message_limit: 50\n")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: log(ann, "reloaded"), "the note of having reloaded")
        with closing(operator(ann)) as another:
            assert refusal(another, "mail.send", message) == "MESSAGE_TOO_LARGE"
        assert refusal(connection, "mail.send", message) == "MESSAGE_TOO_LARGE"
        (ann.home / "accord.yml").write_text("message_limit: many\n")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: log(ann, "not_reloaded"), "the note of not having reloaded")
        assert refusal(connection, "mail.send", message) == "MESSAGE_TOO_LARGE"
        found = statistics(ann)
        assert found["requests"] >= 5
        assert found["changes"] >= 1
        assert process.poll() is None


@pytest.mark.covers("T3.15", "T3.3")
def test_signals_to_a_listener(hub: User) -> None:
    """One makes it connect anew, one tells statistics, one ends it; it misses nothing."""
    with running(hub, "--json", "listen", "ben") as listener:
        assert listener.stdout is not None
        assert listener.stderr is not None
        for n in range(3):
            hub.json("send", "--from", "ann", "--to", "ben", "--message", f"number {n}")
            assert json.loads(listener.stdout.readline())["message"] == f"number {n}"
            listener.send_signal(signal.SIGHUP)
        listener.send_signal(signal.SIGUSR1)
        found = json.loads(listener.stderr.readline())
        assert found["event"] == "statistics"
        assert found["connections"] >= 2
        listener.send_signal(signal.SIGTERM)
        assert listener.wait(TIMEOUT_S) == 0
        assert listener.stdout.read() == b""
    assert bodies(hub, "ben") == []


def test_a_hub_that_cannot_start_says_why(ann: User) -> None:
    """So does each of those who wait for it."""
    (ann.home / "accord.yml").write_text("engine: nonsense:here\n")
    processes = [ann.start("--json", "hub", "start") for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert err == b""
        assert process.returncode != 0
        assert json.loads(out)["error_code"] not in ("INTERNAL", "HUB_FAILED")
    assert not daemons(ann)
    assert subprocess.run([ACCORD, "hub", "status"], env=ann.env, check=False).returncode == NOT_RUNNING


@pytest.mark.covers("T1.3")
def test_a_second_hub_is_refused(hub: User) -> None:
    """Also one that is started past the command; the first one does not notice."""
    pid = status(hub)["pid"]
    done = subprocess.run(daemon_program(hub), env=hub.env, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == UNAVAILABLE
    assert b"HUB_FAILED" in done.stderr
    assert status(hub)["pid"] == pid
    assert not was_run_here(hub, "check", "ann")
    signal_to(pid, signal.SIGTERM)
    assert platform.wait_for_end(pid, TIMEOUT_S)


@pytest.mark.covers("T3.15", "T3.3")
def test_a_listener_told_to_connect_anew_while_there_is_no_hub(hub: User) -> None:
    with running(hub, "listen", "ben", "--json") as listener:
        wait_until(lambda: hub.json("discover")["identities"][2]["listener"], "a listener")
        kill(status(hub)["pid"])
        for _ in range(5):
            listener.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        assert listener.poll() is None
        start(hub)
        wait_until(lambda: hub.json("discover")["identities"][2]["listener"], "a listener again")


@pytest.mark.covers("R20")
def test_another_version_on_the_disk_changes_nothing_for_a_hub_that_runs(ann: User) -> None:
    """All that it may ever need of accord is loaded; also what nobody had asked for when the files were changed."""
    package = ann.folder / "package/accord"
    shutil.copytree(Path(accord.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**ann.env, "PYTHONPATH": str(package.parent), "ACCORD_METRICS": "true"}
    with foreground(ann, env=env) as process:
        wait_until(lambda: not statistics(ann)["in_progress"], "all loaded")
        for path in package.rglob("*.py"):
            path.write_text("raise ImportError('another version')\n")
        for path in list(package.rglob("__pycache__")):
            shutil.rmtree(path)
        with closing(operator(ann)) as connection:
            for group, words in operations.NAMES.items():
                for word in words:
                    if f"{group}.{word}" not in ("hub.stop", "halt.set"):
                        refused_or_done(ann, connection, f"{group}.{word}")
            connection.call("events.listen", {}, TIMEOUT_S)
            connection.call("mail.send", {"sender": "ann", "to": ["ben"], "message": "hello"}, TIMEOUT_S)
            connection.call("mail.search", {"query": "hello"}, TIMEOUT_S)
        port = status(ann)["http_port"]
        token = (ann.home / "operator/token").read_text().strip()
        for page in ("healthz", "metrics"):
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/{page}", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
                assert answer.status == 200
        with closing(Connection(str(status(ann)["socket"]), TIMEOUT_S)) as connection:
            connection.call("mcp.open", {}, TIMEOUT_S)
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            connection.send({"jsonrpc": "2.0", "method": "mcp.message", "params": ping})
            assert (connection.receive(TIMEOUT_S) or {})["params"] == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert log(ann, "failure") == []
        assert process.poll() is None


def refused_or_done(user: User, connection: Connection, method: str) -> None:
    """What an operation says that is given nothing; not that it failed."""
    code = ""
    try:
        connection.call(method, {}, TIMEOUT_S)
    except errors.AccordError as error:
        code = error.code
    assert code != "INTERNAL", (method, [list(one.values()) for one in log(user, "failure")])


@pytest.mark.covers("T1.1")
def test_an_agent_listens_for_itself_alone(hub: User) -> None:
    hub.json("send", "--from", "ann", "--to", "ben", "--message", "for ben alone")
    for words in (("ben",), ("ben", "--no-ack"), ("human",), ("ben", "--exec", "cat")):
        done = hub.run("listen", *words, env={"ACCORD_AGENT": "ann"})
        assert (done.code, done.error) == (77, "NOT_PERMITTED")
        assert "ann" in done.err
        assert "for ben alone" not in done.out
    assert hub.json("check", "ben", "--peek")["message_count"] == 1


@pytest.mark.parametrize("program", ["", " ", "./not-there", "/etc/passwd", '"'])
def test_a_program_that_cannot_be_run_is_refused_at_once(hub: User, program: str) -> None:
    done = hub.run("listen", "ben", "--exec", program)
    assert (done.code, done.error) == (2, "USAGE")


@pytest.mark.covers("T3.15")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hub_that_stands_still_keeps_no_listener_from_ending(hub: User, number: int) -> None:
    pid = status(hub)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with running(hub, "listen", "ben") as listener:
            wait_until(lambda: "socket:" in " ".join(files_of(listener.pid)), "a connection")
            time.sleep(0.2)
            listener.send_signal(number)
            assert listener.wait(TIMEOUT_S / 4) == 0
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.covers("T3.3", "T3.14")
def test_a_hub_that_stands_still_is_no_hub_that_listens_or_started(hub: User) -> None:
    """Who has never heard of it ends; who was connected says so once, and goes on when it moves again."""
    pid = status(hub)["pid"]
    with running(hub, "--json", "listen", "ben") as connected:
        wait_until(lambda: hub.json("discover")["identities"][2]["listener"], "a listener")
        os.kill(pid, signal.SIGSTOP)
        try:
            connected.send_signal(signal.SIGHUP)  # it connects anew
            with running(hub, "--json", "listen", "ann") as new:
                done = hub.run("--json", "hub", "start")
                assert (done.code, done.error) == (UNAVAILABLE, "HUB_SILENT")
                assert done.json["details"]["pid"] == pid
                out = new.communicate(timeout=TIMEOUT_S)[0]
                assert (new.returncode, json.loads(out)["error_code"]) == (UNAVAILABLE, "HUB_SILENT")
            complaint(connected, "[HUB_SILENT]")
        finally:
            os.kill(pid, signal.SIGCONT)
        hub.json("send", "--from", "ann", "--to", "ben", "--message", "at last")
        assert connected.stdout is not None
        assert json.loads(connected.stdout.readline())["message"] == "at last"
    assert hub.json("hub", "start")["started"] is False


def files_of(pid: int) -> list[str]:
    """What a process has open."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(path))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found
