"""What tests of operations say often."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.operations import call
from accord.operations.context import Context
from tests.operations.ways import Refused, Way


def register(way: Way, *names: str) -> None:
    for name in names:
        way.do("agent.register", identity=name)


def send(way: Way, sender: str, to: "str | list[str]", message: str = "hello", **more: Any) -> str:
    return str(way.do("mail.send", sender=sender, to=to, message=message, **more)["message_id"])


def unread(way: Way, name: str, **more: Any) -> list[str]:
    """The ids of the unread messages, which stay so."""
    return [message["message_id"] for message in way.do("mail.check", identity=name, peek=True, **more)["messages"]]


def texts(way: Way, name: str) -> list[str]:
    return [message["message"] for message in way.do("mail.check", identity=name, peek=True)["messages"]]


def states(way: Way, sender: str) -> list[dict[str, str]]:
    """How far each message got with each recipient, newest first."""
    return [
        {state["identity"]: state["state"] for state in message["states"]}
        for message in way.do("mail.sent", sender=sender)["messages"]
    ]


def token_file(home: Path, name: str) -> Path:
    [found] = (home / "accord" / "agents").rglob(f"{name}.token")
    return found


def token_of(home: Path, name: str) -> str:
    return token_file(home, name).read_text().strip()


def insist(context: Context, operation: str, params: Mapping[str, object]) -> dict[str, Any]:
    """The result, asked for by the name of the request until it is told."""
    while True:
        try:
            return call(context, operation, params)
        except errors.OutcomeUnknown:
            assert context.caller.request


def refusal(code: str, do: Callable[..., object], *args: Any, **params: Any) -> Refused:
    """The error, which must have this code."""
    with pytest.raises(Refused) as caught:
        do(*args, **params)
    assert caught.value.code == code, caught.value
    return caught.value
