"""Sessions of agents: their names, what is handed over in them, and what that proves."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord.operations import waiting
from accord.services import leases, processes, sessions
from tests.hubs import Hub
from tests.operations.conftest import url_of
from tests.operations.people import refusal, register, send, states, texts
from tests.operations.ways import Python, Unix, Way

pytestmark = pytest.mark.covers("I3")

TIMEOUT_S = 20.0


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
    mine = processes.named(os.getpid())
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        other = processes.named(sleeper.pid)
        name = start(here, project, process=other)
        send(here, "ben", name, "first")
        assert step(here, process=other) == ["first"]
        sleeper.kill()
    assert discovered(here, name) == "ended"  # by evidence: it never said so
    assert begin(here, project, process=mine) == (name, ["first"])
    assert step(here, process=other) == []


def test_a_session_whose_process_lives_keeps_its_name(here: Python, project: Path) -> None:
    mine = processes.named(os.getpid())
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
    assert halted(way) == "wait"
    assert halted(way) is None  # it was told
    assert step(way) == []
    way.do("halt.lift")
    assert step(way) == []
    way.do("halt.set", reason="again")
    assert halted(way) == "again"
    way.do("halt.lift")
    assert step(way, "prompt") == ["first"]


def halted(way: Way) -> str | None:
    """What a step is to tell of a HALT."""
    found: str | None = way.do("hook.step", brain="claude", session="one", event="step")["halted"]
    return found


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


def test_agents_that_answer_each_other_at_length_hide_nobody(here: Python, project: Path, monkeypatch: Any) -> None:
    """Who is stopped by what they say is not heard only once all of that was handed over."""
    monkeypatch.setenv("ACCORD_THREAD_HOPS_LIMIT", "1")
    register(here, "ben")
    name = start(here, project)
    ping = "ping" + " " * sessions.MOST_BYTES
    for _ in range(2):
        send(here, "ben", name, ping, conversation="ping")
    assert step(here, "stop") == []
    assert not woken(here)
    send(here, "human", name, "enough?")
    assert woken(here)
    assert step(here, "stop") == [ping]


class Later:
    """The end of a turn that waits, meanwhile."""

    def __init__(self, way: Way, name: str, **more: Any) -> None:
        self._texts: list[str] = []
        step(way, "step")
        other = way.acting("")
        self._thread = threading.Thread(target=lambda: self._texts.extend(step(other, "stop", **more)))
        self._thread.start()
        until(lambda: discovered(way, name) == "idle")

    def texts(self) -> list[str]:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        return self._texts


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_end_of_a_turn_can_wait_for_mail(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    later = Later(way, name, wait=60)
    send(way, "ben", name, "first")
    assert later.texts() == ["first"]
    assert discovered(way, name) == "busy"
    assert states(way, "ben") == [{name: "handed_over"}]
    assert step(way, "stop", wait=0.1) == []
    assert states(way, "ben") == [{name: "seen"}]


def test_a_prompt_ends_the_wait_and_gets_what_comes(way: Way, project: Path) -> None:
    """As of a program that has let go of its hook, which does not know."""
    register(way, "ben")
    name = start(way, project)
    later = Later(way, name, wait=60)
    assert step(way, "prompt") == []
    send(way, "ben", name, "first")
    assert later.texts() == []
    assert step(way) == ["first"]


def test_only_the_newest_end_of_a_turn_waits(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    older = Later(way, name, wait=60)
    newer = Later(way, name, wait=60)
    assert older.texts() == []
    send(way, "ben", name, "first")
    assert newer.texts() == ["first"]


def test_a_halt_ends_the_wait(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    later = Later(way, name, wait=60)
    way.do("halt.set", reason="wait")
    assert later.texts() == []


def test_who_may_not_go_on_does_not_wait(here: Python, project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ACCORD_KEEP_GOING_LIMIT", "0")
    monkeypatch.setattr(waiting, "until", None)
    start(here, project)
    assert step(here, "stop", wait=60) == []


def test_a_wait_is_not_ended_by_agents_that_only_answer_each_other(
    here: Python, project: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ACCORD_THREAD_HOPS_LIMIT", "1")
    register(here, "ben")
    name = start(here, project)
    send(here, "ben", name, "ping", conversation="ping")
    assert step(here, "stop", wait=0.1) == []
    assert not woken(here)
    assert step(here) == ["ping"]


def test_who_waits_by_its_own_hook_is_not_woken_besides(here: Python, project: Path, monkeypatch: Any) -> None:
    register(here, "ben")
    name = start(here, project)
    found = []
    real = waiting.until

    def until(*_: object) -> None:
        send(here, "ben", name, "first")
        monkeypatch.setattr(waiting, "until", real)
        found.append(woken(here))

    monkeypatch.setattr(waiting, "until", until)
    assert step(here, "stop", wait=60) == []
    assert found == [False]
    assert woken(here)  # now that the hook has given up


@pytest.mark.parametrize("said", ["", "1"])
def test_what_a_cancelled_turn_was_given_comes_again(way: Way, project: Path, said: str) -> None:
    """It ends with what was said before it, or with nothing."""
    register(way, "ben")
    name = start(way, project)
    assert step(way, "stop", said="1") == []
    send(way, "ben", name, "first")
    assert step(way) == ["first"]
    assert step(way, "stop", said=said, wait=60) == []  # and does not wait, either
    assert states(way, "ben") == [{name: "handed_over"}]
    assert step(way, "prompt") == ["first"]
    assert step(way, "stop", said="1") == []  # to a person's words, the same answer is a new one
    assert states(way, "ben") == [{name: "seen"}]


def woken(way: Way, wait: float = 0, session: str = "one", **more: Any) -> bool:
    return bool(way.do("hook.wait", brain="claude", session=session, wait=wait, **more)["woken"])


def test_a_session_can_wait_to_be_woken(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    found: list[bool] = []
    other = way.acting("")
    thread = threading.Thread(target=lambda: found.append(woken(other, 60)))
    thread.start()
    send(way, "ben", name, "first")
    thread.join(TIMEOUT_S)
    assert found == [True]
    assert not woken(way)  # just now
    assert step(way) == ["first"]


def test_who_is_busy_or_has_no_mail_is_not_woken(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    assert not woken(way, 0.1)
    step(way, "prompt")
    send(way, "ben", name, "first")
    assert not woken(way)


def test_nobody_is_woken_under_a_halt_nor_until_a_person_says_more(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    send(way, "ben", name, "first")
    way.do("halt.set", reason="wait")
    assert not woken(way)
    way.do("halt.lift")
    assert not woken(way)
    way.do("halt.engage", identities=[name])
    assert woken(way)


def test_nobody_is_woken_for_ever(here: Python, project: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ACCORD_KEEP_GOING_LIMIT", "1")
    monkeypatch.setattr(sessions, "WAKE_S", 0.0)
    register(here, "ben")
    send(here, "ben", start(here, project), "first")
    assert [woken(here), woken(here)] == [True, False]


def test_a_person_is_heard_however_long_agents_have_kept_one_going(
    here: Python, project: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ACCORD_KEEP_GOING_LIMIT", "1")
    register(here, "ben")
    name = start(here, project)
    send(here, "ben", name, "first")
    assert step(here, "stop") == ["first"]
    send(here, "ben", name, "second")
    assert step(here, "stop") == []
    assert not woken(here)
    send(here, "human", name, "third")
    assert woken(here)
    assert step(here, "stop") == ["second", "third"]
    send(here, "ben", name, "fourth")
    assert step(here, "stop") == []
    monkeypatch.setenv("ACCORD_KEEP_GOING_LIMIT", "0")
    send(here, "human", name, "fifth")
    assert step(here, "stop") == []


def test_the_wait_of_a_session_that_is_over_ends(here: Python, project: Path) -> None:
    """Also where it could not say so: its process is gone."""
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        process = processes.named(sleeper.pid)
        start(here, project, process=process)
        sleeper.kill()
    here.do("halt.set", reason="wait")
    this = {"brain": "claude", "session": "one", "process": process}
    assert here.do("hook.wait", **this, wait=60) == {"identity": None, "woken": False}
    end(here)
    assert here.do("hook.wait", **this, wait=60) == {"identity": None, "woken": False}
    assert here.do("hook.wait", brain="claude", session="two", wait=60) == {"identity": None, "woken": False}


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


def test_what_an_agent_starts_gets_a_name_of_its_own(here: Python, project: Path) -> None:
    """It inherits the variable that says who its starter is."""
    register(here, "ben")
    mine = processes.named(os.getpid())
    with subprocess.Popen(["/bin/sleep", "60"]) as sleeper:
        theirs = processes.named(sleeper.pid)
        name = start(here, project, "one", process=mine)
        within = here.acting(name)
        assert start(within, project, "two", process=theirs) == f"{name}-2"
        send(here, "ben", [name, f"{name}-2"], "first")
        assert step(within, session="two", process=theirs) == ["first"]
        assert step(here, session="one", process=mine) == ["first"]
        assert end(within, "two") == f"{name}-2"
        sleeper.kill()
    assert start(within, project, "one", process=mine) == name
    end(here)
    assert start(within, project, "three") == name


def test_two_that_start_at_once_do_not_get_one_name(here: Python, project: Path, monkeypatch: Any) -> None:
    name = start(here, project, "one")
    end(here)
    real = sessions.free_name
    names = []

    def free_name(*args: Any) -> Any:
        found = real(*args)
        monkeypatch.setattr(sessions, "free_name", real)
        names.append(start(here, project, "two"))  # which is faster
        return found

    monkeypatch.setattr(sessions, "free_name", free_name)
    names.append(start(here, project, "three"))
    assert names == [name, f"{name}-2"]


@pytest.mark.covers("X8")
def test_a_session_that_lost_its_name_engages_nobody(here: Python, project: Path) -> None:
    name = start(here, project, "one")
    end(here)
    assert start(here, project, "two") == name
    register(here, "ben")
    send(here, "ben", name, "first")
    here.do("halt.set", reason="wait")
    here.do("halt.lift")
    assert step(here, "prompt", session="one") == []
    assert step(here, session="two") == []
    assert step(here, "prompt", session="two") == ["first"]


def test_what_an_agent_was_shown_by_a_tool_no_hook_hands_over_again(way: Way, project: Path) -> None:
    register(way, "ben")
    name = start(way, project)
    id = send(way, "ben", name, "first")
    way.do("mail.hand_over", identity=name, ids=[id], by="mcp")
    send(way, "ben", name, "second")
    assert step(way) == ["second"]
    assert step(way, "stop") == []
    assert states(way, "ben") == [{name: "seen"}, {name: "handed_over"}]  # the first is for itself to acknowledge
    assert not woken(way)
    end(way)
    assert begin(way, project, "two") == (name, ["first"])


def test_what_a_listener_was_told_is_handed_over(here: Python, project: Path) -> None:
    register(here, "ben")
    name = start(here, project)
    id = send(here, "ben", name, "first")
    here.do("mail.hand_over", identity=name, ids=[id])
    assert step(here) == ["first"]


def test_a_session_that_starts_again_in_its_process_gets_nothing_twice(here: Python, project: Path) -> None:
    """As one whose program has cut its context short."""
    register(here, "ben")
    mine = processes.named(os.getpid())
    name = start(here, project, process=mine)
    send(here, "ben", name, "first")
    assert step(here, process=mine) == ["first"]
    id = send(here, "ben", name, "second")
    here.do("mail.hand_over", identity=name, ids=[id], by="mcp")
    assert begin(here, project, process=mine) == (name, [])
