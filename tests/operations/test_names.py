"""Registering, taking over, coming back, leaving."""

import os
from pathlib import Path
from typing import Any

import pytest

from accord import errors
from accord.home import Tokens
from accord.services import agents
from tests.operations.people import refusal, register, send, texts, token_file, token_of, unread
from tests.operations.ways import Python, Way


@pytest.mark.covers("T1.1")
def test_a_name_is_registered_once(way: Way, user_home: Path) -> None:
    answer = way.do("agent.register", identity="ann")
    assert answer["identity"] == "ann"
    assert answer["token_file"] == str(token_file(user_home, "ann"))
    assert os.stat(answer["token_file"]).st_mode & 0o777 == 0o600
    refused = refusal("IDENTITY_ALREADY_REGISTERED", way.do, "agent.register", identity="ANN")
    assert refused.details["identity"] == "ann"
    send(way, "ann", "ann")  # the token of the first is still good


@pytest.mark.covers("T1.1")
def test_force_takes_a_name_over_with_its_inbox(way: Way, user_home: Path) -> None:
    register(way, "ann", "ben")
    old = way.acting("ann", token_of(user_home, "ann"))
    mine = send(way, "ben", "ann")
    way.do("agent.register", identity="ann", force=True)
    assert unread(way, "ann") == [mine]
    refusal("IDENTITY_TAKEN_OVER", send, old, "ann", "ben")
    refusal("IDENTITY_TAKEN_OVER", unread, old, "ann")
    refusal("IDENTITY_TAKEN_OVER", old.do, "mail.ack", identity="ann", ids=[mine])
    refusal("IDENTITY_TAKEN_OVER", old.do, "agent.register", identity="ann", resume=True)
    refusal("IDENTITY_TAKEN_OVER", old.do, "agent.unregister", identity="ann")
    assert unread(way, "ann") == [mine]
    new = way.acting("ann", token_of(user_home, "ann"))
    send(new, "ann", "ben")


@pytest.mark.covers("T1.1")
def test_resume_gives_name_inbox_and_cursor_back(way: Way, user_home: Path) -> None:
    register(way, "ann", "ben")
    ids = [send(way, "ben", "ann", str(n)) for n in range(4)]
    way.do("mail.ack", identity="ann", ids=[ids[0], ids[2]])
    token = token_of(user_home, "ann")
    token_file(user_home, "ann").unlink()
    refusal("TOKEN_MISSING", way.do, "agent.register", identity="ann", resume=True)
    back = way.acting("ann", token)
    assert back.do("agent.register", identity="ann", resume=True)["identity"] == "ann"
    assert unread(back, "ann") == [ids[1], ids[3]]
    send(back, "ann", "ben")


@pytest.mark.covers("T1.1")
def test_resume_needs_a_registration_and_a_token_of_it(way: Way, user_home: Path) -> None:
    refusal("NOT_REGISTERED", way.do, "agent.register", identity="ann", resume=True)
    register(way, "ann")
    stranger = way.acting("ann", "0" * 32)
    refusal("TOKEN_INVALID", stranger.do, "agent.register", identity="ann", resume=True)
    refusal("TOKEN_INVALID", send, stranger, "ann", "ann")


@pytest.mark.covers("T1.1")
def test_a_registration_cut_short_can_be_resumed(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill between the commit and the token's last move."""
    with monkeypatch.context() as patch:
        patch.setattr(Tokens, "keep", lambda *_: None)
        here.do("agent.register", identity="ann")
    refusal("IDENTITY_ALREADY_REGISTERED", here.do, "agent.register", identity="ann")
    here.do("agent.register", identity="ann", resume=True)
    send(here, "ann", "ann")


@pytest.mark.covers("T1.2")
def test_a_registered_name_sends_and_receives_at_once(way: Way) -> None:
    register(way, "ann")
    first = send(way, "human", "ann")
    assert unread(way, "ann") == [first]
    register(way, "ben")
    second = send(way, "ben", "ann")
    assert unread(way, "ann") == [first, second]


@pytest.mark.covers("T2.5")
def test_what_no_name_may_be(way: Way) -> None:
    for name in ("", "-", "a-", "-a", "1a", "a b", "a_b", "a.b", "ä", "a/b", "a" * 65, "a\n", "ann "):
        refused = refusal("INVALID_IDENTITY", way.do, "agent.register", identity=name)
        assert "1 to 64 of a-z, 0-9 and -" in refused.text
    for name in ("hub", "all", "broadcast", "human", "Human"):
        assert "reserved" in refusal("INVALID_IDENTITY", way.do, "agent.register", identity=name).text


@pytest.mark.covers("T2.5")
def test_names_are_lower_cased_on_entry(way: Way) -> None:
    for name, stored in (("a", "a"), ("Ann", "ann"), ("B-2", "b-2"), ("C" * 64, "c" * 64)):
        assert way.do("agent.register", identity=name)["identity"] == stored
    there = [who["identity"] for who in way.do("agent.discover")["identities"]]
    assert sorted(there) == ["a", "ann", "b-2", "c" * 64, "human"]
    id = send(way, "ANN", "B-2")
    assert unread(way, "b-2") == unread(way, "B-2") == [id]


@pytest.mark.covers("T2.5")
def test_human_is_always_there(way: Way) -> None:
    register(way, "ann")
    id = send(way, "ann", "human")
    assert unread(way, "human") == [id]
    way.do("mail.ack", identity="human", ids=[id])
    assert unread(way, "human") == []
    send(way, "human", "ann")
    assert len(unread(way, "ann")) == 1


@pytest.mark.covers("T3.2")
def test_unregister_revokes_the_token_and_keeps_the_inbox(way: Way, user_home: Path) -> None:
    register(way, "ann", "ben")
    kept, seen = send(way, "ben", "ann", "kept"), send(way, "ben", "ann", "seen")
    way.do("mail.ack", identity="ann", ids=[seen])
    old = way.acting("ann", token_of(user_home, "ann"))
    way.do("agent.unregister", identity="ann")
    assert not list((user_home / "accord").rglob("ann.token"))
    refusal("NOT_REGISTERED", send, old, "ann", "ben")
    refusal("NOT_REGISTERED", unread, old, "ann")
    assert "ann" not in [who["identity"] for who in way.do("agent.discover")["identities"]]
    register(way, "ann")
    assert unread(way, "ann") == [kept]
    refusal("TOKEN_INVALID", unread, old, "ann")  # nobody took it over: it had been given back
    assert texts(way, "ann") == ["kept"]


@pytest.mark.covers("T3.2")
def test_only_the_holder_unregisters(way: Way, user_home: Path) -> None:
    refusal("NOT_REGISTERED", way.do, "agent.unregister", identity="ann")
    register(way, "ann")
    token = token_of(user_home, "ann")
    token_file(user_home, "ann").unlink()
    refusal("TOKEN_MISSING", way.do, "agent.unregister", identity="ann")
    way.acting("ann", token).do("agent.unregister", identity="ann")


@pytest.mark.covers("T1.1")
def test_a_registration_that_may_have_happened_can_be_resumed(memory: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is made, and whether it is kept is not known."""
    done = agents.register

    def register_and_lose_the_answer(*params: Any) -> None:
        done(*params)
        raise errors.OutcomeUnknown(path="store", reason="the flush failed")

    monkeypatch.setattr(agents, "register", register_and_lose_the_answer)
    refusal("OUTCOME_UNKNOWN", memory.do, "agent.register", identity="ann")
    memory.do("agent.register", identity="ann", resume=True)
    send(memory, "ann", "ann")
