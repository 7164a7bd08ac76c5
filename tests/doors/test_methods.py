"""What one caller can ask of a hub, over its socket: requests side by side, sessions, and what is pushed."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import accord
from accord import errors, operations
from accord.client import Connection
from accord.doors import methods
from accord.doors.rpc import MOST_BYTES
from accord.hub.core import REQUEST_S
from accord.operations.context import local
from accord.services import events
from accord.store.contract import TRIM_EVERY, Put
from accord.store.engines import memory
from tests.hubs import TIMEOUT_S, Hub

MANY = 100


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub of its own, in a home of its own; it starts when it is first needed."""
    for name in [name for name in os.environ if name.startswith("ACCORD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    hub = Hub(tmp_path / "accord", os.environ)
    yield hub
    hub.close()


@pytest.fixture
def operator(hub: Hub) -> Iterator[Connection]:
    """A connection that may do everything, in a home with the agents ann and ben."""
    with closing(hub.operator()) as connection:
        for name in ("ann", "ben"):
            ask(connection, "agent.register", identity=name)
        yield connection


def ask(connection: Connection, method: str, **params: Any) -> dict[str, Any]:
    return connection.call(method, params, TIMEOUT_S)


def refused(connection: Connection, method: str, **params: Any) -> str:
    """The code of the error that there must be."""
    with pytest.raises(errors.AccordError) as caught:
        ask(connection, method, **params)
    return caught.value.code


def send(connection: Connection, message: str, to: str = "ben", sender: str = "ann", **more: Any) -> str:
    return str(ask(connection, "mail.send", sender=sender, to=[to], message=message, **more)["message_id"])


def request(number: Any, method: str, name: str = "", **params: Any) -> dict[str, Any]:
    """A request, which may have a name of the caller's, by which it is done once."""
    named = {"request": name} if name else {}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params, **named}


def receive(connection: Connection) -> dict[str, Any]:
    """The next message; a heartbeat may come between any two."""
    while True:
        message = connection.unheard.pop(0) if connection.unheard else connection.receive(TIMEOUT_S)
        assert message is not None, "the hub closed the connection"
        if message.get("method") != "hub.alive":
            return message


def answers(connection: Connection, count: int) -> dict[Any, dict[str, Any]]:
    """The next answers, by their ids; each comes once."""
    found = [receive(connection) for _ in range(count)]
    assert len({message["id"] for message in found}) == count
    return {message["id"]: message for message in found}


def code_of(answer: dict[str, Any]) -> str:
    return str(answer["error"]["data"]["error_code"]) if "error" in answer else "ok"


def texts(connection: Connection, name: str = "ben") -> list[str]:
    found = ask(connection, "mail.check", identity=name, peek=True, limit=1000)
    return [message["message"] for message in found["messages"]]


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@contextmanager
def agent(hub: Hub, name: str, token: str = "") -> Iterator[Connection]:
    """A connection of somebody who shows their token."""
    token = token or (hub.home / f"agents/{name}.token").read_text().strip()
    with closing(hub.connect()) as connection:
        assert ask(connection, "session.open", agent=name, token=token) == {"agent": name, "right": "agent"}
        yield connection


# Requests side by side.


@pytest.mark.covers("R6")
def test_a_hundred_in_flight_are_all_answered(hub: Hub, operator: Connection) -> None:
    """Reading and writing, on one connection and before any was answered; the writing in its order."""
    for n in range(MANY):
        if n % 2:
            operator.send(request(n, "agent.discover"))
        else:
            operator.send(request(n, "mail.send", sender="ann", to=["ben"], message=str(n)))
    found = answers(operator, MANY)
    assert {id: code_of(answer) for id, answer in found.items()} == dict.fromkeys(range(MANY), "ok")
    assert texts(operator) == [str(n) for n in range(0, MANY, 2)]
    assert all("identities" in found[n]["result"] for n in range(1, MANY, 2))


@pytest.mark.covers("R6")
def test_more_in_flight_than_are_read_at_once(operator: Connection) -> None:
    """Who has too many in flight is read later, and loses nothing."""
    count = 1000
    lines = [json.dumps(request(n, "mail.send", sender="ann", to=["ben"], message=str(n))) for n in range(count)]
    operator.raw.sendall("".join(f"{line}\n" for line in lines).encode())
    assert {code_of(answer) for answer in answers(operator, count).values()} == {"ok"}
    assert texts(operator) == [str(n) for n in range(count)]


@pytest.mark.covers("R6")
def test_a_request_that_fails_leaves_its_neighbours_alone(hub: Hub, operator: Connection) -> None:
    """They share a commit: what fails has changed nothing, and fails nobody else."""
    before = hub.statistics()
    wrong: dict[int, dict[str, Any]] = {
        3: {"to": ["nobody"]}, 7: {"message": " "}, 11: {"sender": "zoe"}, 12: {"id": "not an id"}, 19: {"x": 1},
    }  # fmt: skip
    codes = {
        3: "RECIPIENT_NEVER_REGISTERED", 7: "EMPTY_MESSAGE_NOT_ALLOWED", 11: "NOT_REGISTERED", 12: "INVALID_ID",
        19: "USAGE",
    }  # fmt: skip
    lines = []
    for n in range(MANY):
        params: dict[str, Any] = {"sender": "ann", "to": ["ben"], "message": str(n), **wrong.get(n, {})}
        lines.append(json.dumps(request(n, "mail.send", **params)))
    operator.raw.sendall("".join(f"{line}\n" for line in lines).encode())
    found = answers(operator, MANY)
    assert {n: code_of(found[n]) for n in range(MANY)} == {n: codes.get(n, "ok") for n in range(MANY)}
    assert texts(operator) == [str(n) for n in range(MANY) if n not in wrong]
    after = hub.statistics()
    assert after["changes"] - before["changes"] == MANY
    assert after["commits"] - before["commits"] < MANY / 2, "they shared no commit"


@pytest.mark.covers("R6")
def test_a_batch_over_the_socket(operator: Connection) -> None:
    batch = [request(n, "mail.send", sender="ann", to=["ben"], message=str(n)) for n in range(20)]
    batch[5]["params"]["to"] = ["nobody"]
    del batch[6]["id"]
    operator.raw.sendall(json.dumps([*batch, 1]).encode() + b"\n")
    found: Any = receive_any(operator)
    assert isinstance(found, list)
    assert len(found) == 20
    codes = {answer["id"]: code_of(answer) for answer in found}
    assert codes.pop(None) == "INVALID_REQUEST"
    assert codes == {n: "ok" for n in range(20) if n != 6} | {5: "RECIPIENT_NEVER_REGISTERED"}
    assert texts(operator) == [str(n) for n in range(20) if n != 5], "a notification is done, and not answered"


def receive_any(connection: Connection) -> Any:
    return connection.receive(TIMEOUT_S)


def test_parameters_in_a_list_are_in_the_order_of_the_operation(operator: Connection) -> None:
    operator.send({"jsonrpc": "2.0", "id": 1, "method": "agent.register", "params": ["zoe"]})
    assert receive(operator)["result"]["identity"] == "zoe"
    operator.send({"jsonrpc": "2.0", "id": 2, "method": "agent.discover", "params": ["zoe"]})
    assert code_of(receive(operator)) == "USAGE"


@pytest.mark.covers("R6", "T3.11")
def test_a_malformed_line_is_answered_and_its_connection_lives_on(hub: Hub, operator: Connection) -> None:
    """It is counted and logged, and who it was from."""
    good = json.dumps(request("good", "hub.ping")).encode()
    lines = [b"nonsense", b"\xff\xfe", b"{}", b'{"jsonrpc":"2.0"}', b"[]", b"[" * 100_000, b"\0" * 9, b'"\\ud800"']
    for bad in lines:
        operator.raw.sendall(bad + b"\n" + good + b"\n")
        answer = receive(operator)
        assert answer["id"] is None, bad
        assert code_of(answer) in ("PARSE_ERROR", "INVALID_REQUEST"), bad
        assert receive(operator) == {"jsonrpc": "2.0", "id": "good", "result": {}}
    assert texts(operator) == [], "and it is still the operator's"
    until(lambda: sum(line["times"] for line in hub.log("malformed")) == len(lines), "not all are in the log")
    assert {line["pid"] for line in hub.log("malformed")} == {os.getpid()}
    assert hub.statistics()["malformed"] == len(lines)


def test_lines_with_nothing_in_them(operator: Connection) -> None:
    operator.raw.sendall(b"\n\r\n  \n" + json.dumps(request("good", "hub.ping")).encode() + b"\r\n")
    assert receive(operator)["id"] == "good"


@pytest.mark.covers("T3.11")
def test_a_line_without_an_end(hub: Hub, operator: Connection) -> None:
    """It is refused when it is too long, once, and skipped to its end; what follows is served."""
    operator.raw.settimeout(TIMEOUT_S)
    for _ in range(3):
        operator.raw.sendall(b"x" * MOST_BYTES)
    answer = receive(operator)
    assert (answer["id"], code_of(answer)) == (None, "PARSE_ERROR")
    operator.raw.sendall(b'"}\n' + json.dumps(request(1, "hub.ping")).encode() + b"\n")
    assert receive(operator) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_line_in_pieces(operator: Connection) -> None:
    line = json.dumps(request("é", "hub.ping")).encode() + b"\n"
    for byte in line:
        operator.raw.sendall(bytes([byte]))
    assert receive(operator)["id"] == "é"


@pytest.mark.covers("R6")
@pytest.mark.parametrize(
    "method",
    ["", "mail", "mail.", ".send", "mail.nothing", "mail._wait", "mail.operation", "context.local", "__init__.call",
     "hub.start", "hub.restart", "config.trust", "cli.read_file", "x" * 10_000],
    ids=lambda method: method[:20],
)  # fmt: skip
def test_what_there_is_not(method: str, operator: Connection) -> None:
    """Nor what only a process of the caller's own can do."""
    operator.send(request(1, method, path="/etc/passwd"))
    answer = receive(operator)
    assert (code_of(answer), answer["error"]["code"]) == ("METHOD_NOT_FOUND", -32601)
    assert len(answer["error"]["message"]) < 300


@pytest.mark.parametrize("wait", [10**400, -1, "x", [1], {}, 1e300, "nan"], ids=lambda wait: str(wait)[:9])
def test_what_is_no_time_to_wait(wait: Any, operator: Connection) -> None:
    assert refused(operator, "mail.check", identity="ann", wait=wait) == "USAGE"
    assert texts(operator) == []


# One effect.


@pytest.mark.covers("R6")
def test_a_registration_that_is_asked_for_again_is_one(hub: Hub, operator: Connection) -> None:
    """Under one name of the caller's for it; on this connection, and on another when this one was lost."""
    operator.send(request(1, "agent.register", "r1", identity="zoe"))
    first = receive(operator)
    token = (hub.home / "agents/zoe.token").read_text()
    operator.send(request(2, "agent.register", "r1", identity="zoe"))
    with closing(hub.operator()) as other:
        other.send(request(3, "agent.register", "r1", identity="zoe"))
        again = [receive(operator), receive(other)]
    assert [code_of(first), *map(code_of, again)] == ["ok"] * 3, again
    assert (hub.home / "agents/zoe.token").read_text() == token
    operator.send(request(4, "agent.register", "r2", identity="zoe"))
    assert code_of(receive(operator)) == "IDENTITY_ALREADY_REGISTERED"
    operator.send(request(5, "agent.register", "r1", identity="zed"))
    assert code_of(receive(operator)) == "ID_REUSED"


@pytest.mark.covers("R6")
def test_a_name_that_is_given_back_again_is_given_back_once(operator: Connection) -> None:
    operator.send(request(1, "agent.unregister", "r1", identity="ann"))
    operator.send(request(2, "agent.unregister", "r2", identity="ben"))
    assert {code_of(answer) for answer in answers(operator, 2).values()} == {"ok"}
    operator.send(request(3, "agent.register", identity="ben"))
    receive(operator)
    # Somebody else has it by now: asking again must not take it from them.
    operator.send(request(4, "agent.unregister", "r2", identity="ben"))
    receive(operator)
    assert "ben" in [one["identity"] for one in ask(operator, "agent.discover")["identities"]]
    operator.send(request(5, "agent.unregister", "r3", identity="ann"))
    assert code_of(receive(operator)) == "NOT_REGISTERED"


@pytest.mark.covers("R6")
def test_a_message_that_is_sent_again_is_one(operator: Connection) -> None:
    """Ten times at once, which may all be in one commit."""
    for n in range(10):
        operator.send(request(n, "mail.send", sender="ann", to=["ben"], message="once", id="mine"))
    found = answers(operator, 10)
    assert {answer["result"]["message_id"] for answer in found.values()} == {"mine"}
    assert texts(operator) == ["once"]


# Who goes away, and who waits.


def waiting(hub: Hub) -> int:
    return int(hub.statistics()["in_progress"])


@pytest.mark.covers("R6")
@pytest.mark.parametrize("name", ["", "r1"], ids=["plain", "with a request id"])
def test_a_caller_that_goes_away_ends_its_wait(name: str, hub: Hub, operator: Connection) -> None:
    with closing(hub.operator()) as caller:
        for n in range(5):
            caller.send(request(n, "mail.check", name and f"{name}{n}", identity="ben", wait=300))
        until(lambda: waiting(hub) == 5, "it does not wait")
    gone_at = time.monotonic()
    until(lambda: waiting(hub) == 0, "it waits for nobody")
    assert time.monotonic() - gone_at < 10
    assert hub.log("failure") == []


@pytest.mark.covers("R6")
def test_a_caller_that_goes_away_leaves_the_others_alone(hub: Hub, operator: Connection) -> None:
    """What it asked for is done; what others asked for, in the same commits, is done and answered."""
    for _ in range(10):
        with closing(hub.operator()) as caller:
            lines = [request(n, "mail.send", sender="ann", to=["ben"], message="theirs") for n in range(20)]
            caller.raw.sendall("".join(f"{json.dumps(line)}\n" for line in lines).encode())
            operator.send(request("mine", "mail.send", sender="ann", to=["ben"], message="mine"))
        assert code_of(receive(operator)) == "ok"
    until(lambda: waiting(hub) == 0, "something is still in progress")
    assert texts(operator).count("mine") == 10
    assert hub.log("failure") == []
    started = time.monotonic()
    os.kill(hub.pid, signal.SIGTERM)
    assert hub.start().wait(TIMEOUT_S) == 0
    assert time.monotonic() - started < 5, "it waited for answers to those who are gone"


@pytest.mark.covers("R6")
def test_waiting_is_no_slow_request(operator: Connection) -> None:
    """A wait is answered when it is over, and others meanwhile."""
    operator.send(request("wait", "mail.check", identity="ben", wait=2.5))  # longer than a hub looks for slow ones
    started = time.monotonic()
    operator.send(request("quick", "hub.ping"))
    assert receive(operator)["id"] == "quick"
    assert time.monotonic() - started < 2
    answer = receive(operator)
    assert (answer["id"], answer["result"]["messages"]) == ("wait", [])
    assert 2.5 <= time.monotonic() - started < 10


@pytest.mark.covers("R6")
def test_how_long_a_request_may_take() -> None:
    """30 s, and what it asked to wait on top: looked at where it is decided, since nobody wants to wait for it."""
    sent: list[str] = []
    hub = Mock()  # which never answers
    hub.stopping.is_set.return_value = False
    connection = methods.Connection(hub, sent.append, lambda: None)
    now = time.monotonic()
    connection.peer.receive(json.dumps(request(1, "agent.discover")).encode())
    connection.peer.receive(json.dumps(request(2, "mail.check", identity="ann", wait=600)).encode())
    deadlines = {call.id: call.deadline - now for call in connection.peer.open_calls}
    assert deadlines == {"1": pytest.approx(REQUEST_S, abs=1), "2": pytest.approx(REQUEST_S + 600, abs=1)}
    assert REQUEST_S == 30
    connection.peer.sweep(now + REQUEST_S + 2)
    assert [(json.loads(text)["id"], code_of(json.loads(text))) for text in sent] == [(1, "REQUEST_TIMEOUT")]
    connection.peer.sweep(now + REQUEST_S + 602)
    assert [json.loads(text)["error"]["data"]["details"]["timeout_seconds"] for text in sent] == [30, 630]


def test_a_check_looks_up_one_listener_and_not_all(tmp_path: Path) -> None:
    context = local({"HOME": str(tmp_path)}, str(tmp_path))
    context.hub = hub = Mock()
    hub.listener.return_value = {"connected": True}
    operations.call(context, "agent.register", {"identity": "ann"})
    assert operations.call(context, "mail.check", {"identity": "ann"})["listener"] == {"connected": True}
    hub.listener.assert_called_once_with("ann")
    hub.listeners.assert_not_called()
    context.close()


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("mail.sned", "did you mean mail.send"),
        ("mail_listen", "did you mean mail.listen"),
        ("hub.start", "process of one's own"),
        ("qqq", "docs/operations.md"),
    ],
)
def test_a_method_that_is_not_there(method: str, said: str, operator: Connection) -> None:
    with pytest.raises(errors.MethodNotFound, match=said):
        ask(operator, method)


def test_errors_tell_callers_of_any_kind_what_to_do(hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as nobody, pytest.raises(errors.TokenMissing, match=r"session\.open") as caught:
        ask(nobody, "mail.check", identity="ann")
    assert "ACCORD_TOKEN" in str(caught.value)
    with pytest.raises(errors.Usage, match=r"Read: mail\.check in docs/operations\.md"):
        ask(operator, "mail.check")
    with pytest.raises(errors.Usage, match=r"Read: mail\.listen in docs/rpc\.md"):
        ask(operator, "mail.listen", identity="ann", after="x")


# Who it is.


@pytest.mark.covers("Q1")
def test_nobody_may_look_around_and_nothing_else(hub: Hub, operator: Connection) -> None:
    send(operator, "hello")
    with closing(hub.connect()) as nobody:
        assert ask(nobody, "agent.discover")["identities"]
        assert ask(nobody, "mail.sent", sender="ann")["messages"]
        assert refused(nobody, "mail.check", identity="ben", peek=True) == "TOKEN_MISSING"
        assert refused(nobody, "mail.send", sender="ann", to=["ben"], message="x") == "TOKEN_MISSING"
        assert refused(nobody, "mail.check", identity="human", peek=True) == "NOT_PERMITTED"
        for method in ("halt.lift", "halt.engage", "hub.stop"):
            assert refused(nobody, method) == "NOT_PERMITTED"
    assert texts(operator) == ["hello"]


@pytest.mark.covers("Q1")
@pytest.mark.parametrize("token", ["wrong", "0" * 32, "é" * 16], ids=str)
def test_a_wrong_token_of_the_operator_is_refused(token: str, hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as stranger:
        assert refused(stranger, "session.open", operator=token) == "NOT_PERMITTED"
        assert refused(stranger, "halt.lift") == "NOT_PERMITTED"
        assert refused(stranger, "session.open", operator=hub.operator_token()[:-1]) == "NOT_PERMITTED"
        assert ask(stranger, "session.open") == {"agent": "", "right": "agent"}
        opened = ask(stranger, "session.open", operator=hub.operator_token())
        assert opened == {"agent": "", "right": "operator"}
        assert ask(stranger, "halt.lift") == {"lifted": False}
        assert ask(stranger, "session.open") == {"agent": "", "right": "agent"}, "it can be laid down"
        assert refused(stranger, "halt.lift") == "NOT_PERMITTED"


@pytest.mark.covers("Q1")
def test_an_agent_is_itself_and_no_operator(hub: Hub, operator: Connection) -> None:
    with agent(hub, "ann") as ann:
        assert send(ann, "from ann")
        for method, params in (
            ("mail.send", {"sender": "ben", "to": ["ann"], "message": "x"}),
            ("mail.send", {"sender": "human", "to": ["ann"], "message": "x"}),
            ("mail.check", {"identity": "ben", "peek": True}),
            ("mail.check", {"identity": "human", "peek": True}),
            ("mail.ack", {"identity": "ben", "ids": ["x"]}),
            ("mail.hand_over", {"identity": "ben", "ids": ["x"]}),
            ("agent.unregister", {"identity": "ben"}),
            ("channel.join", {"identity": "ben", "channel": "talk"}),
            ("halt.lift", {}),
            ("halt.engage", {"all": True}),
            ("hub.stop", {}),
        ):
            assert refused(ann, method, **params) == "NOT_PERMITTED", method
        assert refused(ann, "mail.listen", identity="ben") == "NOT_PERMITTED"
        assert refused(ann, "mail.listen", identity="zoe") == "NOT_PERMITTED"
        assert ask(ann, "hub.listeners") == {}
    with closing(hub.connect()) as both:
        # Whoever says that it is an agent is one, whatever else it shows.
        shown = {"agent": "ann", "operator": hub.operator_token()}
        assert ask(both, "session.open", **shown) == {"agent": "ann", "right": "agent"}
        assert refused(both, "halt.lift") == "NOT_PERMITTED"
    assert texts(operator) == ["from ann"]


def test_what_is_no_session(hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as stranger:
        for wrong in ({"agent": 1}, {"token": ["x"]}, {"operator": {"a": 1}}, {"engine": 5}):
            assert refused(stranger, "session.open", **wrong) == "USAGE"
        assert refused(stranger, "session.open", agent="not a name") == "INVALID_IDENTITY"
        assert refused(stranger, "session.open", engine="0" * 64) == "GO_LOCAL"
        assert refused(stranger, "halt.lift") == "NOT_PERMITTED"
        stranger.send({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": ["ann"]})
        assert code_of(receive(stranger)) == "USAGE"


@pytest.mark.covers("T1.1")
def test_a_token_is_looked_at_when_it_is_shown(hub: Hub, operator: Connection) -> None:
    old = (hub.home / "agents/ann.token").read_text().strip()
    ask(operator, "agent.register", identity="ann", force=True)
    with closing(hub.connect()) as stranger:
        assert refused(stranger, "session.open", agent="ann", token="guessed") == "TOKEN_INVALID"
        assert refused(stranger, "session.open", agent="ann", token=old) == "IDENTITY_TAKEN_OVER"
        assert refused(stranger, "session.open", agent="zoe", token=old) == "NOT_REGISTERED"
    with agent(hub, "ben") as ben:
        assert refused(ben, "session.open", agent="ann", token=old) == "IDENTITY_TAKEN_OVER"
        assert send(ben, "as before", to="ann", sender="ben")
        assert refused(ben, "mail.listen", identity="ann") == "NOT_PERMITTED"
    with closing(hub.connect()) as nobody:
        assert refused(nobody, "mail.listen", identity="ann") == "TOKEN_MISSING"
        assert refused(nobody, "mail.listen", identity="human") == "NOT_PERMITTED"
    assert refused(operator, "mail.listen", identity="zoe") == "NOT_REGISTERED"


def test_a_listener_that_stops_before_it_was_let_in(operator: Connection) -> None:
    """What follows on a connection does not wait for the answer to what was before."""
    for number in range(20):
        operator.send(request(f"listen {number}", "mail.listen", identity="ben"))
        operator.send(request(f"stop {number}", "listen.stop"))
    assert {code_of(answer) for answer in answers(operator, 40).values()} == {"ok"}
    assert ask(operator, "hub.listeners") == {}


@pytest.mark.covers("T1.1")
def test_one_connection_knows_whom_it_registered_anew(hub: Hub, operator: Connection) -> None:
    """Its earlier token is no longer good, and it was this connection that took the name over."""
    send(operator, "before")
    assert texts(operator, "ann") == []
    ask(operator, "agent.register", identity="ann", force=True)
    send(operator, "after")
    assert texts(operator, "ann") == []
    operator.send(request("again", "agent.register", "r1", identity="ann", force=True))
    assert code_of(receive(operator)) == "ok"
    send(operator, "after a named request")
    ask(operator, "agent.unregister", identity="ann")
    ask(operator, "agent.register", identity="ann")
    send(operator, "anew")
    assert texts(operator) == ["before", "after", "after a named request", "anew"]


@pytest.mark.covers("T1.1")
def test_a_connection_whose_name_is_taken_over(hub: Hub, operator: Connection) -> None:
    with agent(hub, "ann") as ann:
        send(ann, "before")
        ask(operator, "agent.register", identity="ann", force=True)
        assert refused(ann, "mail.send", sender="ann", to=["ben"], message="x") == "IDENTITY_TAKEN_OVER"
        assert refused(ann, "mail.check", identity="ann") == "IDENTITY_TAKEN_OVER"
    with agent(hub, "ann") as ann:
        send(ann, "after")


# What is pushed.


def mail(connection: Connection) -> str:
    """The text of the next message, which must be what comes next."""
    message = receive(connection)
    assert message["method"] == "mail.message", message
    return str(message["params"]["message"]["message"])


@pytest.mark.covers("T0.1")
def test_mail_is_pushed_in_its_order_and_until_it_is_acknowledged(hub: Hub, operator: Connection) -> None:
    ids = [send(operator, f"before {n}") for n in range(3)]
    with agent(hub, "ben") as ben:
        assert ask(ben, "mail.listen", identity="ben") == {"identity": "ben"}
        assert [mail(ben) for _ in range(3)] == [f"before {n}" for n in range(3)]
        with accord.open(str(hub.home)) as home:  # whoever writes it, in whichever process
            home.mail.send(sender="ann", to=["ben"], message="from elsewhere")
        assert mail(ben) == "from elsewhere"
        ask(ben, "mail.ack", identity="ben", ids=ids[:2])
    with agent(hub, "ben") as ben:
        ask(ben, "mail.listen", identity="ben")
        assert [mail(ben) for _ in range(2)] == ["before 2", "from elsewhere"]
        send(operator, "for one more")
        assert mail(ben) == "for one more"
        assert ask(ben, "listen.stop") == {}
        send(operator, "unheard")
        ask(ben, "hub.ping")
        assert ben.unheard == []


@pytest.mark.covers("T3.2")
def test_who_listens_is_seen(hub: Hub, operator: Connection) -> None:
    def listener() -> Any:
        return ask(operator, "mail.check", identity="ben", peek=True)["listener"]

    def who() -> Any:
        found = ask(operator, "agent.discover")["identities"]
        return next(one for one in found if one["identity"] == "ben")

    assert listener() is None
    with agent(hub, "ben") as ben:
        ask(ben, "mail.listen", identity="ben")
        found = listener()
        assert (found["connected"], found["pid"]) == (True, os.getpid())
        assert who()["listener"]["pid"] == os.getpid()
        ask(ben, "mail.send", sender="ben", to="ann", message="here I am")
        sent_at = ask(operator, "mail.sent", sender="ben")["messages"][0]["timestamp"]
        assert found["last_seen"] <= sent_at
    until(lambda: listener() is None, "it listens though it is gone")
    assert who()["listener"] is None
    assert who()["last_seen"] >= sent_at


@pytest.mark.covers("T3.2", "T1.1")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("agent.register", {"force": True}, "IDENTITY_TAKEN_OVER"),
        ("agent.unregister", {}, "NOT_REGISTERED"),
    ],
    ids=["taken over", "unregistered"],
)
def test_listening_ends_with_the_name(
    method: str, params: dict[str, Any], code: str, hub: Hub, operator: Connection
) -> None:
    with agent(hub, "ben") as ben:
        ask(ben, "mail.listen", identity="ben")
        send(operator, "before")
        assert mail(ben) == "before"
        ask(operator, method, identity="ben", **params)
        ended = receive(ben)
        assert (ended["method"], ended["params"]["data"]["error_code"]) == ("listen.ended", code)
        if "force" not in params:
            ask(operator, "agent.register", identity="ben")
        send(operator, "for the new one")
        ask(ben, "hub.ping")
        assert ben.unheard == []
        assert "ben" not in ask(operator, "hub.listeners")
    assert texts(operator) == ["before", "for the new one"]


@pytest.mark.covers("T3.2")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("agent.register", {"force": True}, "IDENTITY_TAKEN_OVER"),
        ("agent.unregister", {}, "NOT_REGISTERED"),
    ],
    ids=["taken over", "unregistered"],
)
def test_hearing_of_what_happens_ends_with_the_name(
    method: str, params: dict[str, Any], code: str, hub: Hub, operator: Connection
) -> None:
    """For who came in by it; who showed no token has none that could be lost."""
    with agent(hub, "ben") as ben, closing(hub.connect()) as nobody:
        for watcher in (ben, nobody):
            ask(watcher, "events.listen")
        send(operator, "before")
        assert receive(ben)["params"]["event"] == "mail.sent"
        ask(operator, method, identity="ben", **params)
        ended = receive(ben)
        assert (ended["method"], ended["params"]["data"]["error_code"]) == ("listen.ended", code)
        assert [receive(nobody)["params"]["event"] for _ in range(2)] == ["mail.sent", "agent.changed"]


@pytest.mark.covers("T3.2")
def test_a_halt_holds_a_listener_up(hub: Hub, operator: Connection) -> None:
    """It is told, and goes on without a word of its own once it may: after the halt, and after it was engaged."""

    def waits_for() -> str:
        message = receive(ben)
        assert message["method"] == "listen.waiting", message
        return str(message["params"]["data"]["error_code"])

    with agent(hub, "ben") as ben, agent(hub, "ann") as ann:
        ask(ben, "mail.listen", identity="ben")
        send(ann, "before")
        assert mail(ben) == "before"
        ask(operator, "halt.set", reason="lunch")
        assert refused(ann, "mail.send", sender="ann", to=["ben"], message="x") == "HALTED"
        ask(operator, "channel.join", channel="talk", identity="human")
        with pytest.raises(errors.AccordError):
            send(operator, "from a person", sender="human")
        late(hub)
        assert waits_for() == "HALTED"
        ask(operator, "halt.lift")
        assert waits_for() == "NOT_ENGAGED"
        ask(operator, "halt.engage", identities=["ben"])
        assert mail(ben) == "late"
        ask(operator, "halt.engage", all=True)
        send(ann, "after")
        assert mail(ben) == "after"


def late(hub: Hub) -> None:
    """A message by a sender who had just got past the halt; here, by a user who has none."""
    elsewhere = hub.home.parent / "elsewhere"
    elsewhere.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(elsewhere))
        with accord.open(str(hub.home)) as home:
            home.mail.send(sender="ann", to=["ben"], message="late")


def heard(connection: Connection, count: int) -> list[dict[str, Any]]:
    found = [receive(connection) for _ in range(count)]
    assert {message["method"] for message in found} == {"events.event"}
    return [message["params"] for message in found]


@pytest.mark.covers("R11")
def test_events_from_a_revision_on_without_a_gap(hub: Hub, operator: Connection) -> None:
    """One connection ends anywhere, and the next goes on from the last revision that it saw."""
    ids: list[str] = []
    seen: list[str] = []
    since = ""
    for _ in range(4):
        with closing(hub.connect()) as watcher:
            assert ask(watcher, "events.listen", since=since, kinds=["mail.sent"])["since"]
            ids += [send(operator, "while it listens") for _ in range(3)]
            for event in heard(watcher, len(ids) - len(seen) - 1):
                seen.append(event["message_id"])
                since = event["revision"]
        ids += [send(operator, "while it is away") for _ in range(2)]
    with closing(hub.connect()) as watcher:
        ask(watcher, "events.listen", since=since, kinds=["mail.sent"])
        seen += [event["message_id"] for event in heard(watcher, len(ids) - len(seen))]
    assert seen == ids


@pytest.mark.covers("R11")
def test_every_kind_of_event(hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as watcher:
        ask(watcher, "events.listen")
        id = send(operator, "secret words")
        ask(operator, "mail.hand_over", identity="ben", ids=[id], by="hook")
        ask(operator, "mail.ack", identity="ben", ids=[id])
        ask(operator, "channel.join", channel="talk", identity="ann")
        ask(operator, "channel.leave", channel="talk", identity="ann")
        ask(operator, "agent.unregister", identity="ann")
        ask(operator, "doc.write", name="plan", text="secret words")
        ask(operator, "lock.acquire", name="build", owner="ann")
        ask(operator, "reserve.add", project="/p", globs=["src"], owner="ann")
        ask(operator, "queue.push", queue="work", payload="secret words")
        ask(operator, "task.add", title="secret words")
        ask(operator, "topic.publish", channel="talk", message="secret words")
        ask(operator, "tx.run", steps=[{"operation": "doc.write", "name": "plan", "text": "other secret words"}])
        ask(operator, "hub.keys_make", name="laptop")
        ask(operator, "hub.keys_revoke", name="laptop")
        ask(operator, "halt.set", reason="enough")
        ask(operator, "halt.lift")
        found = heard(watcher, 17)
    assert [event["event"] for event in found] == [
        "mail.sent", "mail.handed_over", "mail.seen", "channel.changed", "channel.changed", "agent.changed",
        "doc.changed", "lock.changed", "reserve.changed", "queue.changed", "task.changed", "topic.changed",
        "tx.changed", "hub.keys_changed", "hub.keys_changed", "halt.changed", "halt.changed",
    ]  # fmt: skip
    assert found[6]["operation"] == "doc.write"
    assert "doc/plan" in found[6]["items"]
    assert [event["operation"] for event in found[13:]] == [
        "hub.keys_make", "hub.keys_revoke", "halt.set", "halt.lift",
    ]  # fmt: skip
    assert set(events.KINDS) == {event["event"] for event in found}
    assert "secret words" not in json.dumps(found)
    assert (found[0]["from"], found[0]["to"], found[0]["message_id"]) == ("ann", ["ben"], id)


@pytest.mark.covers("R11")
def test_one_who_does_not_read_slows_nobody_and_misses_nothing(hub: Hub, operator: Connection) -> None:
    body = "x" * 50_000
    with agent(hub, "ben") as slow, closing(hub.connect()) as quick:
        ask(slow, "mail.listen", identity="ben")
        ask(quick, "events.listen", kinds=["mail.sent"])
        ids = [send(operator, f"{n} {body}") for n in range(100)]  # far more than a socket holds
        assert [event["message_id"] for event in heard(quick, len(ids))] == ids
        assert hub.statistics()["pushed"] < 2 * len(ids), "what the slow one cannot take is in memory"
        got = [receive(slow)["params"]["message"]["message_id"] for _ in ids]
    assert got == ids


@pytest.mark.covers("R11")
@pytest.mark.parametrize("since", ["0123456789abcdef.1", "x.0"])
def test_a_gap_is_said(since: str, hub: Hub, operator: Connection) -> None:
    """Of another store, as after a backup was put back; and it goes on from here."""
    with closing(hub.connect()) as watcher:
        ask(watcher, "events.listen", since=since, kinds=["mail.sent"])
        (gap,) = heard(watcher, 1)
        assert (gap["event"], gap["since"]) == ("gap", since)
        id = send(operator, "after")
        (event,) = heard(watcher, 1)
        assert event["message_id"] == id


@pytest.mark.covers("R11")
def test_a_gap_when_what_happened_is_no_longer_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one who begins too far back, and for one who fell too far behind; both go on from here."""
    monkeypatch.setattr(memory, "KEPT_REVISIONS", 10)
    store = memory.open_store("")

    def change(times: int) -> None:
        for n in range(times):
            store.commit([], [Put("channel/talk", f"n{n}", b"{}")])

    slow = events.Reader(store)
    change(1)
    (event,) = slow.read(1)
    since = slow.since
    assert event["revision"] == since
    change(TRIM_EVERY)
    late = events.Reader(store, since)
    for reader in (slow, late):
        (gap,) = reader.read(5)
        assert (gap["event"], gap["since"], gap["revision"]) == ("gap", since, reader.since)
        assert reader.read(5) == []
    change(3)
    for reader in (slow, late):
        assert [event["identity"] for event in reader.read(5)] == ["n0", "n1", "n2"]
        reader.close()
    store.close()


@pytest.mark.parametrize("since", ["x", "x.", "x.y", ".", ".5", "x.-1", "x.٣", "x." + "9" * 40], ids=ascii)
def test_what_is_no_revision(since: str, hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as watcher:
        assert refused(watcher, "events.listen", since=since) == "USAGE"
        assert ask(watcher, "hub.ping") == {}


def test_kinds_of_events(hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as watcher:
        ask(watcher, "events.listen", kinds="mail.sent,channel.changed")
        ask(operator, "channel.join", identity="ann", channel="talk")
        id = send(operator, "hello")
        assert [event["event"] for event in heard(watcher, 2)] == ["channel.changed", "mail.sent"], id
        for wrong in (["no.such"], "no.such", 5, [5], {"mail.sent": 1}):
            assert refused(watcher, "events.listen", kinds=wrong) == "USAGE"


def test_more_listeners_than_a_connection_may_have(hub: Hub, operator: Connection) -> None:
    with closing(hub.connect()) as watcher:
        for _ in range(100):
            ask(watcher, "events.listen")
        assert refused(watcher, "events.listen") == "TOO_BUSY"
        ask(watcher, "listen.stop")
        ask(watcher, "events.listen", kinds=["mail.sent"])
        send(operator, "once")
        assert len(heard(watcher, 1)) == 1


def test_listeners_are_told_that_the_hub_stops(hub: Hub, operator: Connection) -> None:
    with agent(hub, "ben") as ben:
        ask(ben, "mail.listen", identity="ben")
        send(operator, "before")
        assert mail(ben) == "before"
        os.kill(hub.pid, signal.SIGTERM)
        assert receive(ben)["method"] == "hub.stopping"
        assert ben.receive(TIMEOUT_S) is None
    assert hub.start().wait(TIMEOUT_S) == 0


def test_where_the_socket_is(hub: Hub, tmp_path: Path) -> None:
    """Nobody else may even connect."""
    with closing(hub.connect()) as connection:
        socket = Path(str(connection.raw.getpeername()))
        assert socket.stat().st_mode & 0o777 == 0o600
        assert socket.parent.stat().st_mode & 0o077 == 0


@pytest.mark.covers("R6", "T4.4")
def test_a_message_whose_request_has_a_name_is_sent_once(hub: Hub, operator: Connection) -> None:
    for number in (1, 2):
        operator.send(request(number, "mail.send", "once", sender="ann", to=["ben"], message="hello"))
    operator.send(request(3, "mail.send", "once", sender="ann", to=["ben"], message="other"))
    found = answers(operator, 3)
    assert found[1]["result"]["message_id"] == found[2]["result"]["message_id"]
    assert found[3]["error"]["data"]["error_code"] == "ID_REUSED"
    assert ask(operator, "mail.check", identity="ben")["message_count"] == 1


@pytest.mark.covers("R6")
def test_what_was_asked_before_a_session_was_opened_stays_as_it_was_asked(hub: Hub, operator: Connection) -> None:
    for number in range(20):
        operator.send(request(f"send {number}", "mail.send", sender="ann", to=["ben"], message="hello"))
        token = (hub.home / "agents" / "ben.token").read_text().strip()
        operator.send(request(f"open {number}", "session.open", agent="ben", token=token))
        operator.send(request(f"back {number}", "session.open", operator=hub.operator_token()))
    found = answers(operator, 60)
    assert [id for id, answer in found.items() if "error" in answer] == []


@pytest.mark.covers("T3.7")
def test_more_is_handed_over_than_one_commit_holds(operator: Connection) -> None:
    ids = [send(operator, f"message {n}") for n in range(120)]
    ask(operator, "mail.hand_over", identity="ben", ids=ids)
    sent = ask(operator, "mail.sent", sender="ann", limit=200)["messages"]
    assert {state["state"] for message in sent for state in message["states"]} == {"handed_over"}
    assert {state["by"] for message in sent for state in message["states"]} == {"push"}
