"""The ways into accord. A test says what it wants once, and each way does it as its users would."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import accord
from accord.errors import AccordError

ACCORD = str(Path(sys.executable).with_name("accord"))

_LONGEST_ARGUMENT = 100_000  # a kernel takes 128 KiB

# The verb of each operation, and which parameters come as words without an option.
_VERBS = {
    "agent.register": ("register", "identity"),
    "agent.unregister": ("unregister", "identity"),
    "agent.discover": ("discover", ""),
    "mail.send": ("send", ""),
    "mail.check": ("check", "identity"),
    "mail.ack": ("ack", "ids"),
    "mail.sent": ("sent", ""),
    "mail.thread": ("thread", "conversation"),
    "mail.search": ("search", "query"),
    "channel.join": ("channel join", "channel"),
    "channel.leave": ("channel leave", "channel"),
    "channel.list": ("channel list", ""),
    "halt.set": ("halt", "reason"),
    "halt.lift": ("unhalt", ""),
    "halt.engage": ("engage", "identities"),
    "config.show": ("config", ""),
    "config.trust": ("trust", "path"),
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
                return dict(getattr(getattr(home, group), word)(**params))
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
        return subprocess.run([ACCORD, "--json", *words], env=self.env(), capture_output=True, timeout=60, **options)

    def start(self, words: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
        return subprocess.Popen([ACCORD, "--json", *words], env=self.env(), **given)

    def env(self) -> dict[str, str]:
        return {**os.environ, "ACCORD_ENGINE": self.engine, **self.variables}


def command(operation: str, params: Mapping[str, Any]) -> tuple[list[str], bytes]:
    """The words that do it, and what is to be given on standard input."""
    verb, plain = _VERBS[operation]
    words = verb.split()
    last: list[str] = []
    stdin = b""
    for name, value in params.items():
        values = value if isinstance(value, list) else [value]
        option = "--" + {"sender": "from"}.get(name, name).replace("_", "-")
        if name == plain:
            last += values
        elif name == "message" and len(value) > _LONGEST_ARGUMENT:
            words.append("-")
            stdin = value.encode()
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
