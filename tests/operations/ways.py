"""The ways into accord. A test says what it wants once, and each way does it as its users would."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol

import accord
from accord.client import Connection
from accord.errors import AccordError
from accord.errors.table import from_json
from accord.operations import find
from tests.doors.zmq_agent import Agent, read_key
from tests.hubs import Hub
from tests.operations.shapes import misfits, shape_of

ACCORD = str(Path(sys.executable).with_name("accord"))

_LONGEST_ARGUMENT = 100_000  # a kernel takes 128 KiB
_LONG = {
    "message": "-",
    "payload": "-",
    "text": "--file=-",
}  # what may be longer, and how it is then given on standard input
_TIMEOUT_S = 60.0

# The verb of each operation, and which parameters come as words without an option.
_VERBS = {
    "agent.register": ("register", "identity"),
    "agent.unregister": ("unregister", "identity"),
    "agent.discover": ("discover", ""),
    "mail.send": ("send", ""),
    "mail.check": ("check", "identity"),
    "mail.ack": ("ack", "ids"),
    "mail.sent": ("sent", ""),
    "mail.receipt": ("receipt", "id"),
    "mail.thread": ("thread", "conversation"),
    "mail.search": ("search", "query"),
    "channel.join": ("channel join", "channel"),
    "channel.leave": ("channel leave", "channel"),
    "channel.list": ("channel list", ""),
    "doc.read": ("doc read", "name"),
    "doc.write": ("doc write", "name"),
    "doc.rm": ("doc rm", "name"),
    "doc.restore": ("doc restore", "name"),
    "doc.history": ("doc history", "name"),
    "doc.list": ("doc list", "prefix"),
    "lock.acquire": ("lock acquire", "name"),
    "lock.renew": ("lock renew", "name"),
    "lock.release": ("lock release", "name"),
    "lock.list": ("lock list", ""),
    "reserve.add": ("reserve add", "globs"),
    "reserve.release": ("reserve release", "globs"),
    "reserve.check": ("reserve check", "paths"),
    "reserve.list": ("reserve list", ""),
    "topic.publish": ("publish", "channel"),
    "topic.read": ("topic read", "channel"),
    "topic.last": ("topic last", "channel"),
    "tx.run": ("tx", ""),
    "firebase.rules": ("firebase rules", ""),
    "audit.list": ("audit", ""),
    "audit.verify": ("audit --verify", ""),
    "queue.push": ("queue push", "payload"),
    "queue.pop": ("queue pop", "queue"),
    "queue.done": ("queue done", "receipt"),
    "queue.fail": ("queue fail", "reason"),
    "queue.retry": ("queue retry", ""),
    "queue.drop": ("queue drop", ""),
    "queue.peek": ("queue peek", "queue"),
    "queue.dead": ("queue dead", "queue"),
    "queue.list": ("queue list", ""),
    "task.add": ("task add", "title"),
    "task.depend": ("task depend", "id"),
    "task.assign": ("task assign", "id"),
    "task.claim": ("task claim", "id"),
    "task.next": ("task next", ""),
    "task.start": ("task start", "id"),
    "task.progress": ("task progress", "id"),
    "task.block": ("task block", "id"),
    "task.unblock": ("task unblock", "id"),
    "task.release": ("task release", "id"),
    "task.done": ("task done", "id"),
    "task.show": ("task show", "id"),
    "task.list": ("task list", ""),
    "task.board": ("task board", ""),
    "halt.set": ("halt", "reason"),
    "halt.lift": ("unhalt", ""),
    "halt.engage": ("engage", "identities"),
    "config.show": ("config", ""),
    "config.trust": ("trust", "path"),
}

# Options that are called otherwise than the parameter.
_OPTIONS = {
    ("mail.send", "sender"): "from",
    ("mail.sent", "sender"): "from",
    ("lock.acquire", "wait"): "timeout",
    ("task.add", "after"): "needs",
    ("task.depend", "after"): "needs",
}


class Refused(Exception):
    """What any way raises for an error of accord."""

    def __init__(self, code: str, text: str, details: Mapping[str, Any]) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.details = details


class Way(Protocol):
    @property
    def engine(self) -> str:
        """The URL of the store."""
        ...

    def do(self, operation: str, **params: Any) -> dict[str, Any]:
        """The result of an operation; Refused when there is an error instead."""
        ...

    def acting(self, agent: str, token: str = "") -> "Way":
        """The same way, used by an agent."""
        ...


@dataclass(frozen=True)
class Python:
    """accord.open(), in this process."""

    engine: str
    agent: str = ""
    token: str = ""

    def do(self, operation: str, **params: Any) -> dict[str, Any]:
        group, _, word = operation.partition(".")
        with accord.open(engine=self.engine, agent=self.agent, token=self.token) as home:
            try:
                return _checked(operation, getattr(getattr(home, group), word)(**params))
            except AccordError as error:
                raise Refused(error.code, str(error), error.details) from error

    def acting(self, agent: str, token: str = "") -> "Python":
        return Python(self.engine, agent, token)


@dataclass(frozen=True)
class CommandLine:
    """The command, as a process for each operation. Its `check` acknowledges what it printed."""

    engine: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def do(self, operation: str, **params: Any) -> dict[str, Any]:
        words, stdin = command(operation, params)
        done = self.run(words, stdin)
        result: dict[str, Any] = json.loads(done.stdout)
        assert not done.stderr, "with --json, everything is said in the JSON"
        if result.pop("status") == "ok":
            assert done.returncode == 0
            return result
        assert done.returncode == exit_of(result["error_code"])
        raise Refused(result["error_code"], result["error_message"], result["details"])

    def acting(self, agent: str, token: str = "") -> "CommandLine":
        return CommandLine(self.engine, {"ACCORD_AGENT": agent, "ACCORD_TOKEN": token})

    def run(self, words: Sequence[str], given: bytes = b"", **options: Any) -> "subprocess.CompletedProcess[bytes]":
        """One command, to its end. Standard input is never a terminal."""
        if "stdin" not in options:
            options["input"] = given
        words = [ACCORD, "--json", *words]
        return subprocess.run(words, env=self.env(), capture_output=True, timeout=_TIMEOUT_S, **options)

    def start(self, words: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
        return subprocess.Popen([ACCORD, "--json", *words], env=self.env(), **given)

    def env(self) -> dict[str, str]:
        return {**os.environ, "ACCORD_ENGINE": self.engine, **self.variables}


@dataclass(frozen=True)
class HubCommandLine(CommandLine):
    """The same, where a hub runs in the home and does the commands."""

    hub: Hub = field(kw_only=True)

    def acting(self, agent: str, token: str = "") -> "HubCommandLine":
        return HubCommandLine(self.engine, {"ACCORD_AGENT": agent, "ACCORD_TOKEN": token}, hub=self.hub)

    def env(self) -> dict[str, str]:
        self.hub.start()
        return super().env()


@dataclass(frozen=True)
class _Door:
    """JSON-RPC with a hub, which somebody enters with all that they can show."""

    engine: str
    hub: Hub
    agent: str = ""
    token: str = ""

    def do(self, operation: str, **params: Any) -> dict[str, Any]:
        if find(operation).here:  # type: ignore[attr-defined]
            return Python(self.engine, self.agent, self.token).do(operation, **params)
        try:
            return _checked(operation, self.call(operation, params))
        except AccordError as error:
            raise Refused(error.code, str(error), error.details) from error

    def acting(self, agent: str, token: str = "") -> "Way":
        return type(self)(self.engine, self.hub, agent, token)

    def shown(self) -> dict[str, str]:
        """What the caller shows of itself; an agent without a token of its own has the one that lies in the home."""
        if not self.agent:
            return {"operator": self.hub.operator_token()}
        there = list((self.hub.home / "agents").rglob(f"{self.agent}.token"))
        return {"agent": self.agent, "token": self.token or (there[0].read_text().strip() if there else "")}

    def call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Unix(_Door):
    """The socket in the home, over one connection for as long as the caller lives."""

    connections: list[Connection] = field(default_factory=list, init=False)

    def call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if not self.connections:
            connection = self.hub.connect()
            self.hub.callers.append(connection)
            connection.call("session.open", self.shown(), _TIMEOUT_S)
            self.connections.append(connection)
        return self.connections[0].call(operation, params, _TIMEOUT_S)


@dataclass(frozen=True)
class Zmq(_Door):
    """ZeroMQ, with a key that the operator made, over one connection for as long as the caller lives."""

    agents: list[Agent] = field(default_factory=list, init=False)

    def call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if not self.agents:
            self.hub.start()
            path = self.hub.home / "hub/keys/tests.json"
            if not path.exists():
                Python(self.engine).do("hub.keys_make", name="tests")
            agent = Agent(read_key(str(path)))
            self.hub.callers.append(agent)
            _result(agent.ask("session.open", **self.shown()))
            self.agents.append(agent)
        return _result(self.agents[0].ask(operation, **params))


@dataclass(frozen=True)
class Http(_Door):
    """POST /rpc, a connection for each request. It does not even listen to who has no good token."""

    def call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        port = self.hub.status()["http_port"]
        shown = self.shown()
        headers = {"Authorization": f"Bearer {shown.get('token', '') or shown.get('operator', '')}"}
        headers |= {"Accord-Agent": self.agent} if self.agent else {}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": operation, "params": params})
        with closing(HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)) as connection:
            connection.request("POST", "/rpc", body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            answer = json.load(response)
        if response.status == 403:
            assert answer["error_code"] == "ACCESS_DENIED"
            Python(self.engine, self.agent, self.token).do(operation, **params)  # which is refused as well
            raise AssertionError(f"{operation} was refused at the door, and nowhere else")
        assert response.status == 200, answer
        return _result(answer)


def _checked(operation: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result, of the shape that the operation says it has."""
    assert not misfits(result, shape_of(operation))
    return result


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer says; an AccordError when that is an error."""
    if "error" in answer:
        raise from_json(answer["error"])
    result: dict[str, Any] = answer["result"]
    return result


def command(operation: str, params: Mapping[str, Any]) -> tuple[list[str], bytes]:
    """The words that do it, and what is to be given on standard input."""
    verb, plain = _VERBS[operation]
    words = verb.split()
    last: list[str] = []
    stdin = b""
    for name, value in params.items():
        if name == "steps":
            value = json.dumps(value)
        values = value if isinstance(value, list) else [value]
        option = "--" + _OPTIONS.get((operation, name), name).replace("_", "-")
        if name in _LONG and (len(value) > _LONGEST_ARGUMENT or "\0" in value):
            words.append(_LONG[name])
            stdin = value.encode()
        elif name == plain:
            last += values
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [f"{option}={one}" for one in values]
    return [*words, "--", *last] if last else words, stdin


def exit_of(code: str) -> int:
    """The exit code that the table of errors gives to a code."""
    import accord.errors.table as table

    kinds = [kind for kind in vars(table).values() if isinstance(kind, type) and issubclass(kind, AccordError)]
    return next(kind.exit for kind in kinds if kind.code == code)
