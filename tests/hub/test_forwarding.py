"""Commands that a hub runs: as if they had run themselves, whatever becomes of the hub meanwhile."""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.client import Connection
from tests.cli.users import ACCORD, INTERRUPTED, NOBODY, Done, User
from tests.hub.hubs import (
    TIMEOUT_S,
    bodies,
    command,
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
from tests.robustness.disks import need_root

MAIL = ("send", "--from", "ann", "--to", "ben", "--message")
HUB_LOST = 75
OUTPUT_CLOSED = 74


def finish(process: "subprocess.Popen[bytes]") -> Done:
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert b"Traceback" not in err, err
    return Done(process.returncode, out.decode(), err.decode())


@pytest.mark.covers("T3.1")
def test_a_hub_killed_while_commands_run(ann: User) -> None:
    """They go on without it, and each has one effect."""
    chance = random.Random(1)
    sent = []
    for n in range(15):
        pid = start(ann)
        agent = f"agent-{n}"
        with running(ann, "--json", "register", agent) as registers, running(ann, *MAIL, f"number {n}") as sends:
            time.sleep(chance.random() * 0.04)
            kill(pid)
            registered, done = finish(registers), finish(sends)
        assert (done.code, done.err) == (0, ""), done
        assert (registered.code, registered.err) == (0, ""), registered
        assert registered.json["identity"] == agent
        sent.append(f"number {n}")
        # The token that it left is the one that counts.
        assert ann.run("send", "--to", agent, "--message", "me", env={"ACCORD_AGENT": agent}).code == 0
        assert bodies(ann, agent) == ["me"]
    assert bodies(ann, "ben") == sent


@pytest.mark.covers("T3.1", "T3.2")
def test_a_hub_killed_while_names_are_given_back(ann: User) -> None:
    chance = random.Random(2)
    for n in range(10):
        ann.json("register", f"agent-{n}")
    for n in range(10):
        pid = start(ann)
        with running(ann, "--json", "unregister", f"agent-{n}") as process:
            time.sleep(chance.random() * 0.03)
            kill(pid)
            done = finish(process)
        assert (done.code, done.err) == (0, ""), done
        assert not (ann.home / f"agents/agent-{n}.token").exists()
        assert ann.run("--json", *MAIL[:3], "--to", f"agent-{n}", "--message", "x").error == "RECIPIENT_GONE"


@pytest.mark.covers("T3.1")
def test_a_hub_killed_while_somebody_reads(ann: User) -> None:
    """What was printed may be read again; what was not is never lost."""
    chance = random.Random(3)
    seen: list[str] = []
    for n in range(15):
        ann.json(*MAIL, f"number {n}")
        pid = start(ann)
        with running(ann, "--json", "check", "ben") as process:
            time.sleep(chance.random() * 0.03)
            kill(pid)
            done = finish(process)
        assert done.code in (0, HUB_LOST), done
        lines = [json.loads(line) for line in done.out.splitlines()]
        printed = [message["message"] for line in lines for message in line.get("messages", [])]
        assert done.code != 0 or f"number {n}" in printed
        seen += printed
    left = [message["message"] for message in ann.json("check", "ben")["messages"]]
    assert set(seen + left) == {f"number {n}" for n in range(15)}
    assert bodies(ann, "ben") == []


@pytest.mark.covers("T3.1")
@pytest.mark.parametrize("seed", range(2))
def test_a_hub_that_stands_still_for_a_while(seed: int, hub: User) -> None:
    """The commands do not wait for it; when it goes on it does the same once more, which changes nothing."""
    chance = random.Random(seed)
    pid = status(hub)["pid"]
    processes = {f"number {n}": hub.start("--json", *MAIL, f"number {n}") for n in range(4)}
    names = [f"agent-{n}" for n in range(3)]
    registering = {name: hub.start("--json", "register", name) for name in names}
    time.sleep(0.02 + chance.random() * 0.05)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.6)
    signal_to(pid, signal.SIGCONT)
    for process in (*processes.values(), *registering.values()):
        done = finish(process)
        assert (done.code, done.err) == (0, ""), done
    wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest")
    assert sorted(bodies(hub, "ben")) == sorted(processes)
    for name in names:
        assert hub.run("send", "--to", name, "--message", "me", env={"ACCORD_AGENT": name}).code == 0
        assert bodies(hub, name) == ["me"]


@pytest.mark.covers("T3.1", "Q3")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_standard_input_outlives_a_hub(how: int, hub: User) -> None:
    """It can be read once, and the hub that wanted it goes away: all of it is sent, once."""
    pid = status(hub)["pid"]
    process = subprocess.Popen(
        [ACCORD, *MAIL[:-1], "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=hub.env
    )
    try:
        wait_until(lambda: statistics(hub)["in_progress"], "the command in the hub")
        wait_until(lambda: Path(f"/proc/{process.pid}/wchan").read_text().endswith("pipe_read"), "the command reading")
        os.kill(pid, how)
        out, err = process.communicate(b"hello " * 1000, timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b""), (out, err)
    finally:
        process.kill()
        signal_to(pid, signal.SIGCONT)
    if how == signal.SIGSTOP:
        wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest")
    assert bodies(hub, "ben") == ["hello " * 1000]


@pytest.mark.parametrize("how", [signal.SIGKILL])
def test_too_much_standard_input_is_refused_also_after_a_hub(how: int, hub: User) -> None:
    """None of what is left to read may pass for the message."""
    pid = status(hub)["pid"]
    limit = 1 << 20
    process = subprocess.Popen(
        [ACCORD, *MAIL[:-1], "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=hub.env
    )
    try:
        wait_until(lambda: statistics(hub)["in_progress"], "the command in the hub")
        wait_until(lambda: Path(f"/proc/{process.pid}/wchan").read_text().endswith("pipe_read"), "the command reading")
        os.kill(pid, how)
        err = process.communicate(b"x" * (limit + limit // 2), timeout=TIMEOUT_S)[1]
    finally:
        process.kill()
    assert process.returncode == 65
    assert b"MESSAGE_TOO_LARGE" in err
    assert bodies(hub, "ben") == []


@pytest.mark.covers("T3.1")
def test_a_hub_of_another_version(ann: User) -> None:
    """Commands run here then, and are right."""
    with foreground(ann, *daemon_program(ann, "import accord\naccord.__version__ = '9'")):
        assert status(ann)["version"] == "9"
        assert was_run_here(ann, *MAIL, "hello")
        assert was_run_here(ann, "register", "cyd")
        assert bodies(ann, "ben") == ["hello"]
        with closing(connect(ann)) as connection:
            assert refusal(connection, "cli.run", command(ann, "discover")) == "GO_LOCAL"
            assert refusal(connection, "cli.run", {}) == "GO_LOCAL"


@pytest.mark.covers("T2.2")
def test_a_command_for_another_home(hub: User) -> None:
    with somebody() as other:
        home = str(other.home)
        hub.json("--home", home, "register", "zoe")
        hub.json("--home", home, "send", "--from", "zoe", "--to", "zoe", "--message", "there")
        hub.json("send", "--home", home, "--from", "zoe", "--to", "zoe", "--message", "there too")
        assert bodies(other, "zoe") == ["there", "there too"]
        assert hub.run("check", "zoe").code != 0
        hub.json("--home", home, "hub", "start")
        assert not was_run_here(hub, "--home", home, "check", "zoe")
        assert bodies(other, "zoe") == []
        # Through the wrong door: the hub itself says no.
        with closing(connect(hub)) as connection:
            assert refusal(connection, "cli.run", command(hub, "--home", home, "discover")) == "GO_LOCAL"


@pytest.mark.covers("T3.1")
def test_a_command_for_another_store(hub: User) -> None:
    engine = f"sqlite:{hub.folder}/other/store.db"
    (hub.folder / "other").mkdir(mode=0o700)
    assert was_run_here(hub, "--engine", engine, "register", "zoe")
    assert was_run_here(hub, "register", "yan", env={"ACCORD_ENGINE": engine})
    assert hub.run("discover").out.count("zoe") == 0
    assert hub.run("discover", "--engine", engine).out.count("zoe") == 1
    assert not was_run_here(hub, "discover")


@pytest.mark.covers("T3.1")
def test_a_command_of_somebody_with_another_halt(hub: User) -> None:
    """A HALT lies in the user's own folder, wherever the accord home is."""
    other = hub.folder / "another-user"
    other.mkdir()
    assert was_run_here(hub, *MAIL, "hello", env={"HOME": str(other)})
    hub.json("halt", env={"HOME": str(other)})
    assert hub.run("--json", *MAIL, "halted", env={"HOME": str(other)}).error == "HALTED"
    hub.json(*MAIL, "not halted")
    hub.json("halt")
    assert hub.run("--json", *MAIL, "halted").error == "HALTED"
    assert bodies(hub, "ben") == ["hello", "not halted"]


def shell(user: User, program: str) -> Done:
    return user.run(command=("/bin/sh", "-c", program))


@pytest.mark.covers("T1.6", "Q3")
@pytest.mark.parametrize("how", [">&-", ">/dev/full", ">&- <&-", "| :"])
def test_what_nobody_read_comes_again(how: str, hub: User) -> None:
    """An answer that could not be printed leaves the messages unread."""
    assert hub.run(*MAIL[:-1], "-", stdin=b"x" * 500_000).code == 0
    for options in ("", "--json"):
        program = (
            f"accord check ben {options} {how}" if how != "| :" else f"(accord check ben {options}; echo $? >code) | :"
        )
        done = shell(hub, program)
        code = int((hub.work / "code").read_text()) if how == "| :" else done.code
        assert code == OUTPUT_CLOSED, done
        assert "OUTPUT_CLOSED" in done.err or options
    wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest")
    assert len(hub.json("check", "ben")["messages"]) == 1


@pytest.mark.covers("T1.6", "Q3")
def test_a_reader_that_goes_away(hub: User) -> None:
    for n in range(5):
        assert hub.run(*MAIL[:-1], "-", stdin=b"%d" % n * 300_000).code == 0
    done = shell(hub, "accord check ben | head -c 10")
    assert len(done.out) == 10
    wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest")
    assert len(bodies(hub, "ben")) == 5


@pytest.mark.covers("Q3")
def test_control_c_during_a_wait(hub: User) -> None:
    """The hub notices that nobody waits any more, and keeps what came."""
    with running(hub, "check", "ben", "--wait", "30") as process:
        wait_until(lambda: statistics(hub)["in_progress"], "the command in the hub")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert (done.code, done.out) == (INTERRUPTED, "")
    assert done.err.count("\n") == 1
    assert "INTERRUPTED" in done.err
    wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest", 5)
    hub.json(*MAIL, "later")
    assert bodies(hub, "ben") == ["later"]


@pytest.mark.covers("T3.14")
def test_a_wait_through_the_hub_is_longer_than_its_patience(hub: User) -> None:
    """A hub that is at it says so, and the command does not take it for dead."""
    with running(hub, "--json", "check", "ben", "--wait", "20") as process:
        time.sleep(2.6)
        assert statistics(hub)["in_progress"] == 1
        hub.json(*MAIL, "at last")
        done = finish(process)
    assert [message["message"] for message in done.json["messages"]] == ["at last"]


@pytest.mark.covers("Q3")
def test_an_answer_of_a_hundred_megabytes(hub: User) -> None:
    """It comes whole, in a few seconds, and is acknowledged."""
    with closing(operator(hub)) as connection:
        for n in range(100):
            params = {"sender": "ann", "to": ["ben"], "message": f"{n:03}" + "x" * ((1 << 20) - 3)}
            connection.call("mail.send", params, TIMEOUT_S)
    pid = status(hub)["pid"]
    began = time.monotonic()
    found = hub.json("check", "ben")["messages"]
    assert time.monotonic() - began < 12
    assert [(message["message"][:3], len(message["message"])) for message in found] == [
        (f"{n:03}", 1 << 20) for n in range(100)
    ]
    assert bodies(hub, "ben") == []
    assert status(hub)["pid"] == pid


@pytest.mark.covers("Q3")
def test_files_are_read_by_whoever_names_them(hub: User) -> None:
    (hub.work / "note").write_text("from a file")
    (hub.work / "binary").write_bytes(bytes(range(256)))
    with open(hub.work / "huge", "wb") as huge:
        huge.truncate(2 << 30)
    pid = status(hub)["pid"]
    name = MAIL[:-1]
    assert not was_run_here(hub, *name, "--message-file", "note")
    assert hub.run("--json", *name, "--message-file", "binary").error == "INVALID_ENCODING"
    began = time.monotonic()
    assert hub.run("--json", *name, "--message-file", "huge").error == "MESSAGE_TOO_LARGE"
    assert hub.run("--json", *name, "--message-file", "/dev/zero").error == "MESSAGE_TOO_LARGE"
    assert time.monotonic() - began < 2
    assert hub.run("--json", *name, "--message-file", "nowhere").error == "FILE_UNREADABLE"
    assert hub.run("--json", *name, "--message-file", ".").error == "FILE_UNREADABLE"
    assert hub.run(*name, "-", stdin=b"from a pipe").code == 0
    assert hub.run(*name, "--message-file", "-", stdin=b"from a pipe too").code == 0
    assert hub.run("--json", *name, "-", stdin=b"x" * ((1 << 20) + 1)).error == "MESSAGE_TOO_LARGE"
    assert bodies(hub, "ben") == ["from a file", "from a pipe", "from a pipe too"]
    assert status(hub)["pid"] == pid


@pytest.mark.covers("R20")
def test_a_caller_without_the_operators_token(hub: User) -> None:
    """It has the owner's uid, as an agent in a sandbox may: it can look around, and act for nobody."""
    secret = hub.folder / "secret"
    secret.write_text("not for everybody")
    with closing(connect(hub)) as connection:
        operations: dict[str, dict[str, Any]] = {
            "halt.lift": {},
            "halt.engage": {},
            "hub.stop": {},
            "mail.send": {"sender": "human", "to": ["ann"], "message": "x"},
            "agent.unregister": {"identity": "human"},
        }
        for method, params in operations.items():
            assert refusal(connection, method, params) in ("NOT_PERMITTED", "USAGE", "INVALID_IDENTITY"), method
        for method in ("hub.start", "hub.restart", "config.trust", "no.such"):
            code = refusal(connection, method, {"path": str(secret)} if method == "config.trust" else {})
            assert code in ("METHOD_NOT_FOUND", "NOT_PERMITTED"), method
        params = {"sender": "ann", "to": ["ben"], "message": "x"}
        assert refusal(connection, "mail.send", params) == "TOKEN_MISSING"
        assert refusal(connection, "session.open", {"operator": "guessed"}) == "NOT_PERMITTED"
        assert refusal(connection, "session.open", {"agent": "ann", "token": "guessed"}) == "TOKEN_INVALID"
        assert refusal(connection, "mail.send", params) == "TOKEN_MISSING", "it is who it was before"
        connection.call("session.open", {"agent": "ann", "token": token_of(hub, "ann")}, TIMEOUT_S)
        connection.call("mail.send", params, TIMEOUT_S)
        assert refusal(connection, "mail.check", {"identity": "ben"}) == "NOT_PERMITTED"
        assert refusal(connection, "halt.lift", {}) == "NOT_PERMITTED"
        assert refusal(connection, "hub.stop", {}) == "NOT_PERMITTED"
    assert bodies(hub, "ben") == ["x"]


@pytest.mark.covers("R20")
def test_a_caller_that_runs_commands_without_the_operators_token(hub: User) -> None:
    """What needs its own process is not run by the hub for anybody, and the hub opens no path that it is told."""
    pid = status(hub)["pid"]
    touched = hub.folder / "touched"
    secret = hub.folder / "secret"
    secret.write_text("not for everybody")
    for words in (
        ["hub", "start", "--foreground"],
        ["--json", "hub", "--json", "start", "--foreground"],
        ["hub", "restart"],
        ["hub", "logs", "--follow"],
        ["listen", "ann", "--exec", f"touch {touched}"],
        ["events"],
        ["demo"],
        ["trust", str(secret)],
        ["doctor"],
        ["completion", "bash"],
    ):
        with closing(connect(hub)) as connection:
            assert refusal(connection, "cli.run", command(hub, *words)) == "GO_LOCAL", words
    for words in (["engage", "ann"], ["unhalt"], ["send", "--from", "ann", "--to", "ben", "--message", "x"]):
        done = ask_to_run(hub, *words)
        assert done.code == 77, (words, done)
    asked: list[dict[str, Any]] = []
    done = ask_to_run(hub, *MAIL[:-1], "--message-file", str(secret), asked=asked)
    assert [one["method"] for one in asked if one["method"] == "cli.read_file"], "the hub read it itself"
    assert done.code == 77
    assert status(hub)["pid"] == pid
    assert log(hub, "started")[-1]["pid"] == pid
    assert len(log(hub, "started")) == 1
    assert not touched.exists()
    assert bodies(hub, "ben") == []


def ask_to_run(
    user: User,
    *words: str,
    asked: list[dict[str, Any]] | None = None,
    proof: str = "",
    answers: dict[str, dict[str, Any]] | None = None,
) -> Done:
    """What comes of a command when the caller shows no token, and gives a text for each file."""
    out = {1: "", 2: ""}
    with closing(connect(user)) as connection:
        connection.send({"jsonrpc": "2.0", "id": 1, "method": "cli.run", "params": command(user, *words)})
        while message := connection.receive(TIMEOUT_S):
            if "method" not in message:
                for fd, text in message["result"]["write"]:
                    out[fd] += text
                return Done(message["result"]["exit"], out[1], out[2])
            if asked is not None:
                asked.append(message)
            if "id" in message:
                usual = {"cli.token": {"token": ""}, "cli.proof": {"proof": proof}, "cli.read_file": {"data": "aGk="}}
                answer = {**usual, **(answers or {})}.get(message["method"], {})
                connection.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
    pytest.fail("no answer")


@pytest.mark.covers("R20")
def test_another_user_is_not_served(hub: User) -> None:
    need_root()
    for path in (hub.home, hub.home / "hub", hub.home / "hub/socket"):
        path.chmod(0o777)
    program = "import os, socket, sys; os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))\n"
    program += "s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])\n"
    program += 'try:\n s.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"hub.ping"}\\n\'); got = s.recv(100)\n'
    program += "except ConnectionError: got = b''\n"
    program += "print(repr(got))"
    for user, expected in ((NOBODY, "b''"), (0, 'b\'{"jsonrpc":"2.0","id":1,"result":{}}\\n\'')):
        done = subprocess.run(
            [sys.executable, "-c", program, str(hub.home / "hub/socket"), str(user)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.stdout.strip() == expected, done
    assert wait_until(lambda: log(hub, "refused"), "the note")[0]["uid"] == NOBODY
    assert statistics(hub)["refused"] == 1


@pytest.mark.covers("R20")
def test_a_socket_that_another_user_made_is_not_spoken_to() -> None:
    """In the folder for short names, which anybody could have made; what is sent holds the operator's token."""
    with somebody("a" * 60 + "/" + "b" * 60) as user:
        user.json("register", "ann")
        path = Path(user.json("hub", "start")["socket"])
        assert not was_run_here(user, "discover")
        mode = path.parent.stat().st_mode
        try:
            path.parent.chmod(0o777)
            assert was_run_here(user, "discover")
        finally:
            path.parent.chmod(mode & 0o7777)


@pytest.mark.covers("T3.14")
def test_a_crowd_of_waiting_commands_keeps_nobody_from_the_hub(hub: User) -> None:
    """They take the hub's threads; whoever finds none left runs on its own."""
    waiting = []
    try:
        token = token_of(hub, "ben")
        for _ in range(600):
            connection = connect(hub)
            waiting.append(connection)
            connection.call("hub.ping", {}, TIMEOUT_S)  # which is answered once it was accepted
            params = command(hub, "check", "ben", "--wait", "60")
            params["env"]["ACCORD_TOKEN"] = token
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "cli.run", "params": params})
        time.sleep(1.0)
        began = time.monotonic()
        hub.json(*MAIL[:3], "--to", "ann", "--message", "hello")
        assert bodies(hub, "ann") == ["hello"]
        with closing(operator(hub)) as connection:
            connection.call("mail.check", {"identity": "ann"}, TIMEOUT_S)
        assert time.monotonic() - began < 3
    finally:
        for connection in waiting:
            connection.close()
    wait_until(lambda: not statistics(hub)["in_progress"], "the hub at rest")
    assert daemons(hub) == [status(hub)["pid"]]


def test_a_hub_that_talks_nonsense(ann: User) -> None:
    """Something else listens in the hub's place: commands do what they would without."""
    path = ann.home / "hub/socket"
    path.parent.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(path))
        other.listen()
        for n, answer in enumerate([b"", b"nonsense\n", b'{"jsonrpc":"2.0","id":1,"error":{}}\n', b"[]\n"]):
            with running(ann, *MAIL, f"number {n}") as process:
                other.settimeout(TIMEOUT_S)
                connection = other.accept()[0]
                with closing(connection):
                    connection.recv(65536)
                    connection.sendall(answer)
                done = finish(process)
            assert (done.code, done.err) == (0, ""), (answer, done)
    path.unlink()
    assert bodies(ann, "ben") == [f"number {n}" for n in range(4)]


@pytest.mark.covers("R20")
def test_whoever_sits_at_the_socket_learns_no_token_and_gets_no_file(ann: User) -> None:
    """As an agent in a sandbox could, which may write to the home and not see the operator's folder."""
    ann.json("halt", "--status")
    ann.json("config")
    start(ann)
    token = (ann.home / "operator/token").read_text().strip()
    ann.json("hub", "stop")
    secret = ann.home / "secret"
    secret.write_text("a secret\n")
    with fake_hub(ann) as fake, running(ann, "discover") as process:
        heard, *answers = fake.hear(
            ("cli.read_file", {"path": str(secret), "most": 100}),
            ("cli.read_input", {"most": 100}),
            ("cli.token", {"path": str(ann.home / "agents/../operator/token")}),
            ("cli.token", {"path": str(ann.home / "agentsx/a.token")}),
            ("cli.proof", {"nonce": "f00\0unhalt"}),
            ("cli.proof", {"nonce": ["f00"]}),
        )
        done = finish(process)
    assert done.code == 0, "it did it without"
    assert [answer["result"] for answer in answers] == [{}, {}, {"token": ""}, {"token": ""}] + [{"proof": ""}] * 2
    text = json.dumps([heard, *answers])
    assert token not in text
    assert "proof:" not in text
    assert "a secret" not in text


class Fake:
    """Somebody who sits where the hub should be."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening

    def was_asked(self) -> bool:
        """Whether somebody has connected."""
        return bool(select.select([self._listening], [], [], 0)[0])

    def hear(
        self, *asked: tuple[str, dict[str, Any]], then: Callable[[], object] = lambda: None
    ) -> list[dict[str, Any]]:
        """The first thing that the next caller says, and what it answers to questions; then it is left alone."""
        caller = self._listening.accept()[0]
        caller.settimeout(TIMEOUT_S)
        with closing(caller), caller.makefile("rwb") as line:
            heard = [json.loads(line.readline())]
            for number, (method, params) in enumerate(asked):
                line.write(
                    json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
                )
                line.flush()
                heard.append(json.loads(line.readline()))
            then()
            return heard


@contextmanager
def fake_hub(user: User) -> Iterator[Fake]:
    path = user.home / "hub/socket"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(TIMEOUT_S)
        yield Fake(listening)


@pytest.mark.covers("R20", "X8")
@pytest.mark.parametrize(
    ("words", "may"),
    [
        (("events",), {"listen": False, "send": False, "stop": False}),
        (("listen", "ben"), {"listen": False, "send": False, "stop": False}),
        (("listen", "human"), {"listen": True, "send": False, "stop": False}),
        (("hub", "stop"), {"listen": False, "send": False, "stop": True}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_person_shows_to_a_false_hub_is_good_for_that_and_nothing_else(
    words: tuple[str, ...], may: dict[str, bool], hub: User
) -> None:
    socket_path = hub.home / "hub/socket"
    aside = hub.home / "hub/aside"
    os.rename(socket_path, aside)
    pid = status(hub)["pid"]
    with fake_hub(hub) as fake, running(hub, *words) as process:
        if words == ("hub", "stop"):
            os.kill(pid, signal.SIGSTOP)  # it will be told to end by a signal, and is to be there still

        def end() -> None:
            """While it waits for an answer: left alone it would send that signal."""
            process.kill()
            process.wait(TIMEOUT_S)

        (shown,) = fake.hear(then=end)
    os.rename(aside, socket_path)
    os.kill(pid, signal.SIGCONT)
    params = shown["params"]
    assert shown["method"] == "session.open"
    with closing(connect(hub)) as thief:
        opened = thief.call("session.open", params, TIMEOUT_S)
        assert opened["right"] == "agent"
        allowed = {
            "listen": can(thief, "mail.listen", {"identity": "human"}),
            "send": can(thief, "mail.send", {"sender": "human", "to": ["ann"], "message": "x"}),
        }
        assert refusal(thief, "halt.lift", {}) == "NOT_PERMITTED"
        assert refusal(thief, "halt.engage", {}) == "NOT_PERMITTED"
        assert refusal(thief, "hub.keys_make", {"name": "mine"}) == "NOT_PERMITTED"
        assert refusal(thief, "mail.check", {"identity": "human"}) == "NOT_PERMITTED"
        assert refusal(thief, "mail.check", {"identity": "ann"}) in ("TOKEN_MISSING", "TOKEN_INVALID")
        if "operator" in params:
            for other in ("", "hub.stop", "listen:human", "listen:ann"):
                if other != params["purpose"]:
                    assert refusal(thief, "session.open", {**params, "purpose": other}) in ("NOT_PERMITTED", "USAGE")
        allowed["stop"] = can(thief, "hub.stop", {})
    assert allowed == may


def can(connection: Connection, method: str, params: dict[str, Any]) -> bool:
    try:
        connection.call(method, params, TIMEOUT_S)
    except errors.NotPermitted:
        return False
    return True


@pytest.mark.covers("R20")
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("cli.token", {}),
        ("cli.token", {"token": 5}),
        ("cli.read_file", {}),
        ("cli.read_file", {"data": "a"}),
        ("cli.read_file", {"data": None}),
        ("cli.proof", {}),
    ],
    ids=str,
)
def test_a_caller_that_answers_strangely_is_told_so(asked: str, answer: dict[str, Any], hub: User) -> None:
    words = ("unhalt",) if asked == "cli.proof" else (*MAIL[:-1], "--message-file", "x")
    done = ask_to_run(hub, *words, answers={asked: answer})
    assert (done.code, "USAGE" in done.err) == (2, True), done
    assert log(hub, "failure") == []


@pytest.mark.covers("R20")
@pytest.mark.parametrize("request_id", ["1" * 16, "x" * 32, "\u00e9" * 32, "0" * 500])
def test_what_is_no_name_of_a_request(request_id: str, hub: User) -> None:
    with closing(connect(hub)) as connection:
        assert refusal(connection, "cli.run", command(hub, *MAIL, "x", request=request_id)) == "USAGE"


@pytest.mark.covers("R20", "X8")
def test_a_proof_for_a_command_is_good_once_and_for_that_command(hub: User) -> None:
    """A false hub that asks for one gets nothing that the real one takes."""
    hub.json("halt", "--reason", "enough")
    os.rename(hub.home / "hub/socket", hub.home / "hub/aside")
    with fake_hub(hub) as fake, running(hub, "unhalt", "--json") as process:
        _, answer = fake.hear(("cli.proof", {"nonce": "0" * 32}))
        process.kill()
        process.wait(TIMEOUT_S)
    hub.json("halt")
    os.rename(hub.home / "hub/aside", hub.home / "hub/socket")
    stolen = answer["result"]["proof"]
    assert stolen.startswith("proof:")
    for words in (("unhalt", "--json"), ("unhalt",), ("engage", "ann")):
        assert ask_to_run(hub, *words, proof=stolen).code == 77
    assert hub.json("halt", "--status")["halted"]
    assert not was_run_here(hub, "unhalt"), "the real one takes one that is for it"
    assert not hub.json("halt", "--status")["halted"]


@pytest.mark.covers("R20")
def test_only_a_command_that_needs_it_shows_who_the_operator_is(hub: User) -> None:
    asked: list[dict[str, Any]] = []
    for words in (("discover",), (*MAIL, "x"), ("check", "ben"), ("halt", "--status")):
        ask_to_run(hub, *words, asked=asked)
    assert "cli.proof" not in [one["method"] for one in asked]
    ask_to_run(hub, "unhalt", asked=asked)
    ask_to_run(hub, "engage", "ann", asked=asked)
    proofs = [one["params"]["nonce"] for one in asked if one["method"] == "cli.proof"]
    assert len(set(proofs)) == 2


@pytest.mark.covers("S10")
@pytest.mark.parametrize(
    "engine", ["redis://ben:s3cr3t@host/0", "redis://ben:s3c/r3t@host/0", "redis://h?password=s3c"]
)
def test_a_hub_is_told_which_store_is_meant_and_no_password(engine: str, ann: User) -> None:
    told = {"COMMUNICATION_BACKEND": "sqlite", "SQLITE_DB": "x.db", "REDIS_HOST": "h", "REDIS_PORT": "1"}
    told |= {"FIREBASE_PROJECT_ID": "p", "GOOGLE_APPLICATION_CREDENTIALS": "k", "FIREBASE_DATABASE_EMULATOR_HOST": "e"}
    ann.env |= {**told, "ACCORD_ENGINE": engine, "ACCORD_ENGINE_PASSWORD": "s3c0nd"}
    with fake_hub(ann) as fake, running(ann, "discover") as process:
        (heard,) = fake.hear()
        finish(process)
    env = heard["params"]["env"]
    assert {name: env[name] for name in told} == told
    assert "s3c" not in json.dumps(heard)
    if "@" in engine and "c/r" not in engine:
        assert env["ACCORD_ENGINE"] == "redis://ben@host/0"


@pytest.mark.covers("S10")
def test_a_password_in_a_flag_does_not_reach_the_hub(ann: User) -> None:
    for words in (["--engine", "redis://:s3cr3t@host"], ["--engine=redis://:s3cr3t@host"]):
        with fake_hub(ann) as fake:
            done = ann.run(*words, "discover")
            assert not fake.was_asked()
        assert (done.error, "s3cr3t" in done.err) == ("INVALID_CONFIG", False)


@pytest.mark.covers("S10")
def test_a_command_with_another_backend_is_run_without_the_hub(hub: User) -> None:
    other = {"COMMUNICATION_BACKEND": "sqlite", "SQLITE_DB": str(hub.folder / "other-store.db")}
    assert was_run_here(hub, "register", "zoe", env=other)
    assert (hub.folder / "other-store.db").exists()
    assert not was_run_here(hub, "discover", env={"COMMUNICATION_BACKEND": "sqlite"}), "which is the hub's own store"
    assert not was_run_here(hub, "discover", env={"REDIS_HOST": "elsewhere"}), "which says nothing of sqlite"
    assert not was_run_here(hub, "discover", env={"ACCORD_ENGINE_PASSWORD": "of no use here"})


@pytest.mark.covers("S10")
@pytest.mark.parametrize(
    "env",
    [{"ACCORD_ENGINE": "sqlite:own-store.db"}, {"COMMUNICATION_BACKEND": "sqlite", "SQLITE_DB": "own-store.db"}],
    ids=["URL", "backend"],
)
@pytest.mark.parametrize("foreground_too", [False, True])
def test_a_hub_finds_what_is_relative_where_it_was_started(
    env: dict[str, str], foreground_too: bool, user: User
) -> None:
    user.env |= env
    if foreground_too:
        with foreground(user, ACCORD, "hub", "start", "--foreground", cwd=user.work):
            assert not was_run_here(user, "register", "ann")
    else:
        pid = start(user)
        assert not was_run_here(user, "register", "ann")
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert (user.work / "own-store.db").exists()
