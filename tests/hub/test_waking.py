"""The hub wakes agents that are idle, by the way in that their session has. Here the way in is a socket of ours."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accord import platform
from accord.client import Connection
from accord.wake import TEXT
from tests.cli.users import User
from tests.hub.hubs import TIMEOUT_S, operator

pytestmark = pytest.mark.covers("I3")

QUIET_S = 1.5  # in which a wake would have come
THIS = {"brain": "claude", "session": "one"}


class Session:
    """One of Claude Code, as far as a hub can tell: this process, and its socket."""

    def __init__(self, hub: Connection, folder: Path) -> None:
        self._hub = hub
        folder.mkdir()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / f"{os.getpid()}.sock"))
        self._listening.listen()
        self.reach = f"token {folder / f'{os.getpid()}.sock'}"
        self.name = ""

    def start(self, project: Path, reach: str = "", process: str = "") -> None:
        process = process or f"{os.getpid()}:{platform.process_started(os.getpid())}"
        more = {"project": str(project), "process": process, "reach": reach or self.reach}
        self.name = self._hub.call("hook.start", {**THIS, **more}, TIMEOUT_S)["identity"]

    def step(self, event: str) -> list[str]:
        found = self._hub.call("hook.step", {**THIS, "event": event, "proves": True}, TIMEOUT_S)
        ids = [message["message_id"] for message in found["messages"]]
        if ids:
            self._hub.call("hook.given", {**THIS, "event": event, "ids": ids}, TIMEOUT_S)
        return [message["message"] for message in found["messages"]]

    def send(self, text: str) -> None:
        self._hub.call("mail.send", {"sender": "ann", "to": self.name, "message": text}, TIMEOUT_S)

    def heard(self, timeout_s: float = TIMEOUT_S) -> list[Any]:
        """What was written to the socket; nothing when nobody comes in time."""
        self._listening.settimeout(timeout_s)
        try:
            connection, _ = self._listening.accept()
        except TimeoutError:
            return []
        with connection, connection.makefile() as lines:
            connection.settimeout(timeout_s)
            return [json.loads(line) for line in lines]

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def session_in(hub: User, tmp_path: Path) -> Iterator[Callable[[str], Session]]:
    with closing(operator(hub)) as connection:
        made: list[Session] = []

        def make(folder: str = "cc-socks") -> Session:
            made.append(Session(connection, tmp_path / folder))
            return made[-1]

        yield make
        for session in made:
            session.close()


@pytest.fixture
def session(session_in: Callable[[str], Session], tmp_path: Path) -> Session:
    found = session_in("cc-socks")
    found.start(tmp_path)
    return found


def test_who_is_idle_is_woken_and_gets_the_mail_from_its_hook(session: Session) -> None:
    session.send("first")
    assert session.heard() == [
        {"type": "auth", "token": "token"},
        {"type": "user", "message": {"role": "user", "content": TEXT}},
    ]
    assert session.step("step") == ["first"]
    assert session.step("stop") == []
    session.send("second")
    assert not session.heard(QUIET_S)  # it was woken just now


def test_who_is_busy_is_not_woken(session: Session) -> None:
    session.step("prompt")
    session.send("first")
    assert not session.heard(QUIET_S)
    assert session.step("stop") == ["first"]


def test_nobody_is_woken_under_a_halt(session: Session, hub: User) -> None:
    hub.json("halt")
    assert hub.run("send", "--from", "ann", "--to", session.name, "--message", "x").error == "HALTED"
    hub.json("unhalt")
    hub.json("engage", "ann")
    session.send("first")  # the session itself still waits to be engaged
    assert not session.heard(QUIET_S)


def test_an_agent_cannot_have_the_hub_write_to_another_socket(
    session_in: Callable[[str], Session], hub: User, tmp_path: Path
) -> None:
    session = session_in("elsewhere")
    session.start(tmp_path)
    session.send("first")
    assert not session.heard(QUIET_S)
    with closing(operator(hub)) as connection:
        counts = connection.call("hub.statistics", {}, TIMEOUT_S)
    assert (counts.get("wakes"), counts["wakes_refused"]) == (None, 1)


def test_a_process_that_is_gone_is_not_woken(session_in: Callable[[str], Session], tmp_path: Path) -> None:
    session = session_in("cc-socks")
    session.start(tmp_path, process=f"{os.getpid()}:1")  # another that had its number
    session.send("first")
    assert not session.heard(QUIET_S)
