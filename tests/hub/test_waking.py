"""The hub wakes agents that are idle, by the way in that their session has. Here it is a socket or a queue of ours."""

import fcntl
import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import accord
from accord.client import Connection
from accord.hub.waker import Waker
from accord.services import processes, sessions
from accord.services.halt import Halt
from accord.store.open import open_store
from accord.wake import TEXT, claude
from tests.cli.users import User
from tests.hub.hubs import TIMEOUT_S, operator

pytestmark = pytest.mark.covers("I3")

QUIET_S = 1.5  # in which a wake would have come
THREAD_HOPS_LIMIT = 50


class Session:
    """One of an agent, as far as a hub can tell: it is of this process."""

    brain = ""

    def __init__(self, hub: Connection) -> None:
        self._hub = hub
        self.id = str(uuid.uuid4())
        self.reach = ""
        self.name = ""

    def start(self, project: Path, process: str = "") -> None:
        process = process or processes.named(os.getpid())
        more = {"project": str(project), "process": process, "reach": self.reach}
        self.name = self._call("hook.start", **more)["identity"]

    def step(self, event: str) -> list[str]:
        found = self._call("hook.step", event=event, proves=True)
        ids = [message["message_id"] for message in found["messages"]]
        if ids:
            self._call("hook.given", event=event, ids=ids)
        return [message["message"] for message in found["messages"]]

    def send(self, text: str, **more: str) -> None:
        self._hub.call("mail.send", {"sender": "ann", "to": self.name, "message": text, **more}, TIMEOUT_S)

    def heard(self, timeout_s: float = TIMEOUT_S) -> list[str]:
        """What it was woken with; nothing when nobody wakes it in time."""
        raise NotImplementedError

    def counts(self) -> tuple[int, int]:
        """How often the hub woke somebody, and how often it refused to."""
        found = self._hub.call("hub.statistics", {}, TIMEOUT_S)
        return found.get("wakes", 0), found.get("wakes_refused", 0)

    def close(self) -> None:
        """End it."""

    def _call(self, operation: str, **given: object) -> dict[str, Any]:
        found: dict[str, Any] = self._hub.call(operation, {"brain": self.brain, "session": self.id, **given}, TIMEOUT_S)
        return found


class Claude(Session):
    """It has a socket."""

    brain = "claude"

    def __init__(self, hub: Connection, folder: Path, name: str = "cc-socks") -> None:
        super().__init__(hub)
        path = folder / name / f"{os.getpid()}.sock"
        path.parent.mkdir()
        self.reach = f"token {path}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()

    def heard(self, timeout_s: float = TIMEOUT_S) -> list[str]:
        self._listening.settimeout(timeout_s)
        try:
            connection, _ = self._listening.accept()
        except TimeoutError:
            return []
        with connection, connection.makefile() as lines:
            connection.settimeout(timeout_s)
            auth, prompt = (json.loads(line) for line in lines)
        assert auth == {"type": "auth", "token": "token"}
        assert prompt == {"type": "user", "message": {"role": "user", "content": prompt["message"]["content"]}}
        return [prompt["message"]["content"]]

    def close(self) -> None:
        self._listening.close()


class Codex(Session):
    """It looks into a table, and has a lock on its thread."""

    brain = "codex"

    def __init__(self, hub: Connection, home: Path, id: str = "", known: int = 2) -> None:
        super().__init__(hub)
        self.id = id or self.id
        folder = home / ".codex"
        (folder / "thread-writer-locks").mkdir(parents=True)
        self.reach = str(folder)
        self.queue = folder / "queue_1.sqlite"
        with closing(sqlite3.connect(self.queue)) as connection, connection:
            connection.executescript(QUEUE)
            connection.execute("INSERT INTO _sqlx_migrations VALUES (?)", (known,))
        self._lock = (folder / f"thread-writer-locks/{self.id}.lock").open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def heard(self, timeout_s: float = TIMEOUT_S) -> list[str]:
        deadline = time.monotonic() + timeout_s
        while not (found := self.queued()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def queued(self) -> list[str]:
        with closing(sqlite3.connect(self.queue)) as connection, connection:
            rows = connection.execute("SELECT payload_json FROM queued_items WHERE thread_id = ?", (self.id,))
            said = [json.loads(payload)["UserInput"]["content"] for (payload,) in rows]
        assert all(content == [{**content[0], "type": "text", "text_elements": []}] for content in said)
        return [content[0]["text"] for content in said]

    def take(self) -> None:
        with closing(sqlite3.connect(self.queue)) as connection, connection:
            connection.execute("DELETE FROM queued_items")

    def close(self) -> None:
        self._lock.close()


QUEUE = """
CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY);
CREATE TABLE queued_items (
    id TEXT PRIMARY KEY NOT NULL, thread_id TEXT NOT NULL, payload_json TEXT NOT NULL, queue_order INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX queued_items_thread_order_idx ON queued_items(thread_id, queue_order);
"""


@pytest.fixture
def connection(hub: User) -> Iterator[Connection]:
    with closing(operator(hub)) as connection:
        yield connection


@pytest.fixture
def held() -> Iterator[Callable[[Session], Session]]:
    """Holds sessions until the test is over."""
    sessions: list[Session] = []

    def hold(session: Session) -> Session:
        sessions.append(session)
        return session

    yield hold
    for session in sessions:
        session.close()


@pytest.fixture(params=["claude", "codex"])
def session(
    request: pytest.FixtureRequest,
    hub: User,
    connection: Connection,
    held: Callable[[Session], Session],
    tmp_path: Path,
) -> Session:
    is_claude = request.param == "claude"
    found = held(Claude(connection, tmp_path) if is_claude else Codex(connection, hub.folder))
    found.start(tmp_path)
    return found


def test_who_is_idle_is_woken_and_gets_the_mail_from_its_hook(session: Session) -> None:
    session.send("first")
    assert session.heard() == [TEXT]
    if isinstance(session, Codex):
        session.take()
    assert session.step("step") == ["first"]
    assert session.step("stop") == []
    session.send("second")
    assert not session.heard(QUIET_S)  # it was woken just now


def test_a_wake_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing else happens in the home."""
    tries: list[str] = []

    def wake(session: dict[str, Any], text: str) -> bool:
        tries.append(text)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return len(tries) > 2

    monkeypatch.setattr(sessions, "WAKE_S", 1.0)  # the next looks come before that
    monkeypatch.setattr(claude, "wake", wake)
    monkeypatch.setenv("HOME", str(tmp_path))
    with accord.open(home=str(tmp_path / "home")) as one:
        one.agent.register(identity="ann")
        name = one.hook.start(brain="claude", session="1", project=str(tmp_path / "web-app"), reach="a b")["identity"]
        one.mail.send(sender="ann", to=[str(name)], message="first")
    counted: list[str] = []
    settings = {"keep_going_limit": 20, "thread_hops_limit": THREAD_HOPS_LIMIT}
    store = open_store(f"sqlite:{tmp_path}/home/store.db")
    hub: Any = SimpleNamespace(store=store, halt=Halt(str(tmp_path)), settings=settings, count=counted.append)
    waker = Waker(hub, os.getuid())
    try:
        until(lambda: counted == ["wakes_failed", "wakes_refused", "wakes"])
    finally:
        waker.close(TIMEOUT_S)
        store.close()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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


def test_agents_that_only_answer_each_other_wake_nobody(session: Session) -> None:
    session.step("prompt")
    for number in range(THREAD_HOPS_LIMIT):
        session.send(str(number), conversation="ping")
    while session.step("step"):
        pass
    session.send("one more", conversation="ping")
    assert session.step("stop") == []
    assert not session.heard(QUIET_S)
    session.send("of another thread")
    assert session.heard() == [TEXT]


def test_a_process_that_is_gone_is_not_woken(session: Session, tmp_path: Path) -> None:
    session.start(tmp_path, process=processes.named(os.getpid()).replace(":", ":1"))  # another that had its number
    session.send("first")
    assert not session.heard(QUIET_S)


def check_refused(session: Session, project: Path) -> None:
    session.start(project)
    session.send("first")
    assert not session.heard(QUIET_S)
    assert session.counts() == (0, 1)


def test_an_agent_cannot_have_the_hub_write_to_another_socket(
    connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    check_refused(held(Claude(connection, tmp_path, "elsewhere")), tmp_path)


def test_an_agent_cannot_have_the_hub_write_to_another_queue(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    check_refused(held(Codex(connection, hub.work)), tmp_path)


def test_a_queue_that_is_a_link_to_another_file_is_left_alone(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    session = Codex(connection, hub.folder)
    held(session)
    session.queue.rename(hub.work / "other")
    session.queue.symlink_to(hub.work / "other")
    check_refused(session, tmp_path)


@pytest.mark.parametrize("id", ["../x", "not-an-id"])
def test_a_session_whose_name_is_no_thread_is_not_woken(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path, id: str
) -> None:
    check_refused(held(Codex(connection, hub.folder, id)), tmp_path)


def test_a_thread_that_no_codex_has_open_is_not_woken(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    session = held(Codex(connection, hub.folder))
    session.close()
    check_refused(session, tmp_path)


def test_the_queue_of_a_codex_that_has_changed_it_is_left_alone(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    check_refused(held(Codex(connection, hub.folder, known=3)), tmp_path)


def test_one_word_in_the_queue_is_enough(
    hub: User, connection: Connection, held: Callable[[Session], Session], tmp_path: Path
) -> None:
    session = Codex(connection, hub.folder)
    held(session)
    for text in ("first", "second"):
        session.start(tmp_path)  # so that it may be woken again
        session.send(text)
        assert session.heard() == [TEXT]
    deadline = time.monotonic() + TIMEOUT_S
    while session.counts() != (2, 0):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert session.queued() == [TEXT]
