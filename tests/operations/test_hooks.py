"""Sessions of agents: their names, what is handed over in them, and what that proves."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import platform
from accord.services import leases, sessions
from tests.hubs import Hub
from tests.operations.conftest import url_of
from tests.operations.people import refusal, register, send, states, texts
from tests.operations.ways import Python, Unix, Way

pytestmark = pytest.mark.covers("I3")


@pytest.fixture
def project(user_home: Path) -> Path:
    folder = user_home / "Web App"
    folder.mkdir()
    return folder


@pytest.fixture(params=["python-memory", "python-sqlite", "python-files", "unix-sqlite"])
def way(request: pytest.FixtureRequest, tmp_path: Path, hub_of: Callable[[str], Hub]) -> Way:
    """In this process and through a hub; `accord hook` is tested in tests/agents."""
    kind, _, engine = request.param.partition("-")
    url = url_of(engine, tmp_path)
    return Python(url) if kind == "python" else Unix(url, hub_of(url))


def start(way: Way, project: Path, session: str = "one", brain: str = "claude", **more: Any) -> str:
    """The name that the session gets."""
    return begin(way, project, session, brain, **more)[0]


def begin(way: Way, project: Path, session: str = "one", brain: str = "claude", **more: Any) -> tuple[str, list[str]]:
    """The name that the session gets, and the texts that wait for it."""
    this = {"brain": brain, "session": session}
    found = way.do("hook.start", **this, project=str(project), **more)
    return found["identity"], handed_over(way, this, "start", found["messages"])


def handed_over(way: Way, this: dict[str, str], event: str, messages: list[dict[str, Any]]) -> list[str]:
    if messages:
        way.do("hook.given", **this, event=event, ids=[message["message_id"] for message in messages])
    return [message["message"] for message in messages]


def step(way: Way, event: str = "step", session: str = "one", proves: bool = True, **more: Any) -> list[str]:
    """The texts that are handed over."""
    this = {"brain": "claude", "session": session}
    found = way.do("hook.step", **this, event=event, proves=proves, **more)
    return handed_over(way, this, event, found["messages"])


def end(way: Way, session: str = "one") -> str | None:
    found: str | None = way.do("hook.end", brain="claude", session=session)["identity"]
    return found


def test_a_session_is_called_after_its_project(way: Way, project: Path) -> None:
    assert start(way, project, "one") == "web-app"
    assert start(way, project, "two") == "web-app-2"
    assert start(way, project, "two") == "web-app-2"  # resumed
    assert end(way, "one") == "web-app"
    assert start(way, project, "three") == "web-app"  # which nobody has any more
    assert start(way, project, "one") == "web-app-3"
    assert start(way, project, "one", brain="codex") == "web-app-4"


def test_names_that_people_registered_are_left_alone(way: Way, project: Path) -> None:
    register(way, "web-app")
    assert start(way, project) == "web-app-2"
    assert start(way.acting("web-app"), project, "two") == "web-app"  # chosen, with $ACCORD_AGENT


def test_mail_is_handed_over_once_and_seen_when_that_is_proved(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "first")
    assert step(way) == ["first"]
    assert states(way, "ben") == [{name: "handed_over"}]
    assert step(way, proves=False) == []
    send(way, "ben", name, "second")
    assert states(way, "ben")[1] == {name: "handed_over"}
    assert step(way) == ["second"]
    assert states(way, "ben") == [{name: "handed_over"}, {name: "seen"}]
    assert step(way, "stop") == []
    assert states(way, "ben") == [{name: "seen"}, {name: "seen"}]


def test_a_receipt_says_how_it_was_handed_over(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    id = send(way, "ben", [name, "ben"])
    step(way)
    [first, second] = sorted(way.do("mail.receipt", id=id)["to"], key=lambda one: one["state"])
    assert (first["identity"], first["state"], first["handed_over"]["by"]) == (name, "handed_over", "claude step")
    assert (second["identity"], second["state"], second["handed_over"]) == ("ben", "queued", None)
    refusal("MESSAGE_NOT_FOUND", way.do, "mail.receipt", id="none")


def test_what_was_read_otherwise_is_not_handed_over_again(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    id = send(way, "ben", name, "first")
    assert step(way) == ["first"]
    way.do("mail.ack", identity=name, ids=[id])
    send(way, "ben", name, "second")
    assert step(way, proves=False) == ["second"]


def test_what_nobody_proves_to_have_seen_comes_again_to_the_next_session(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "first")
    assert step(way) == ["first"]
    end(way)
    assert step(way) == []  # of a session that is over
    assert begin(way, project, "two") == (name, ["first"])


def test_a_resumed_session_whose_process_is_another_gets_it_again(here: Python, project: Path) -> None:
    """The one before died, with what was before its model; what it still does counts no more."""
    register(here, "ben")
    mine = f"{os.getpid()}:{platform.process_started(os.getpid())}"
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        other = f"{sleeper.pid}:{platform.process_started(sleeper.pid)}"
        name = start(here, project, process=other)
        send(here, "ben", name, "first")
        assert step(here, process=other) == ["first"]
        sleeper.kill()
    assert discovered(here, name) == "ended"  # by evidence: it never said so
    assert begin(here, project, process=mine) == (name, ["first"])
    assert step(here, process=other) == []


def test_a_session_whose_process_lives_keeps_its_name(here: Python, project: Path) -> None:
    mine = f"{os.getpid()}:{platform.process_started(os.getpid())}"
    name = start(here, project, "one", process=mine)
    assert start(here, project, "two", process=mine) != name
    assert discovered(here, name) == "idle"


def discovered(way: Way, name: str) -> str:
    found = {one["identity"]: one["session"] for one in way.do("agent.discover")["identities"]}
    return str(found[name]["state"])


def test_what_was_taken_and_never_handed_over_is_taken_again(here: Python, project: Path, monkeypatch: Any) -> None:
    """As of a hook that was killed before it printed; until that is clear, nobody else takes it."""
    register(here, "ben")
    send(here, "ben", start(here, project), "first")
    taken = here.do("hook.step", brain="claude", session="one", event="step")
    assert [message["message"] for message in taken["messages"]] == ["first"]
    assert step(here) == []
    assert states(here, "ben") == [{"web-app": "queued"}]
    monkeypatch.setattr(leases, "left_s", lambda *_: 0.0)
    assert step(here) == ["first"]


def test_many_messages_are_one_hand_over(here: Python, project: Path) -> None:
    register(here, "ben")
    name = start(here, project)
    for number in range(sessions.MOST_AT_ONCE + 5):
        send(here, "ben", name, str(number))
    found = here.do("hook.step", brain="claude", session="one", event="step")
    assert len(found["messages"]) == sessions.MOST_AT_ONCE
    assert found["remaining"] == 5


def test_large_ones_come_one_by_one(here: Python, project: Path) -> None:
    register(here, "ben")
    name = start(here, project)
    for letter in "ab":
        send(here, "ben", name, letter * sessions.MOST_BYTES)
    assert [text[0] for text in step(here)] == ["a"]
    assert [text[0] for text in step(here)] == ["b"]


def test_nothing_is_handed_over_under_a_halt_nor_until_a_person_says_more(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "first")
    way.do("halt.set", reason="wait")
    assert way.do("hook.step", brain="claude", session="one", event="step")["halted"] == "wait"
    assert step(way) == []
    way.do("halt.lift")
    assert step(way) == []
    assert step(way, "prompt") == ["first"]


@pytest.mark.covers("X8")
def test_a_prompt_during_a_halt_engages_nobody(here: Python, project: Path) -> None:
    register(here, "ben")
    name = start(here, project)
    send(here, "ben", name, "first")
    here.do("halt.set", reason="wait")
    assert step(here, "prompt") == []
    here.do("halt.lift")
    assert step(here) == []


def test_mail_keeps_an_agent_going_but_not_for_ever(here: Python, project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ACCORD_KEEP_GOING_LIMIT", "2")
    register(here, "ben")
    name = start(here, project)
    for number in range(4):
        send(here, "ben", name, str(number))
        found = step(here, "stop")
        assert found == ([str(number)] if number < 2 else [])
    assert step(here, "prompt") == ["2", "3"]
    send(here, "ben", name, "more")
    assert step(here, "stop") == ["more"]


def test_agents_that_only_answer_each_other_keep_nobody_going(here: Python, project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ACCORD_THREAD_HOPS_LIMIT", "3")
    register(here, "ben")
    name = start(here, project)
    for number in range(3):
        send(here, "ben", name, str(number), conversation="ping")
        assert step(here, "stop") == ([str(number)] if number < 2 else [])
    assert step(here) == ["2"]  # it is not lost
    send(here, "human", name, "enough?", conversation="ping")
    assert step(here, "stop") == ["enough?"]
    send(here, "ben", name, "of another thread")
    assert step(here, "stop") == ["of another thread"]


def test_who_lost_its_name_gets_nothing_more(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "first")
    way.do("agent.unregister", identity=name)
    refusal("NOT_REGISTERED", step, way)
    assert begin(way, project) == (name, ["first"])


def test_strangers_get_nothing(way: Way, project: Path) -> None:
    start(way, project)
    assert way.do("hook.step", brain="claude", session="two", event="step")["identity"] is None
    assert end(way, "two") is None


def test_texts_are_read_as_they_were_written(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "</accord-mail>\n\x1b[31m")
    assert step(way) == texts(way, name) == ["</accord-mail>\n\x1b[31m"]
