"""The audit: an entry for every change, and no entry can be changed or taken away unnoticed."""

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from accord.services.audited import AUDIT
from accord.store.contract import Delete, Put, number_id
from accord.store.open import open_store
from tests.operations.people import refusal, register, send
from tests.operations.ways import CommandLine, Python, Way

pytestmark = pytest.mark.covers("S14.3")


def entries(way: Way, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = way.do("audit.list", **more)["entries"]
    return found


def test_every_change_has_an_entry(way: Way) -> None:
    before = len(entries(way))  # one of the ways in needs a key
    register(way, "ann", "ben")
    id = send(way, "ann", "ben")
    way.do("mail.ack", identity="ben", ids=[id])
    way.do("doc.write", name="plan", text="x")
    way.do("doc.read", name="plan")
    refusal("CONFLICT", way.do, "doc.write", name="plan", text="y", base=7)
    way.acting("ann").do("topic.publish", channel="builds", message="x")
    found = entries(way, after=before)
    expected = ["agent.register", "agent.register", "mail.send", "mail.ack", "doc.write", "topic.publish"]
    assert [entry["operation"] for entry in found] == expected
    assert [entry["number"] - before for entry in found] == [1, 2, 3, 4, 5, 6]
    assert [entry["who"] for entry in found] == [f"uid:{os.geteuid()}"] * 5 + ["ann"]
    assert f"messages/{id}" in found[2]["items"]
    assert "doc/plan" in found[4]["items"]
    assert entries(way, after=before + 2, limit=2) == found[2:4]
    assert entries(way, limit=2) == found[4:]


def test_what_lies_in_files_has_an_entry_too(way: Way, user_home: Path) -> None:
    before = len(entries(way))
    register(way, "ann")
    way.do("halt.set", reason="stop")
    way.do("halt.lift")
    found = entries(way, after=before)
    assert [entry["operation"] for entry in found] == ["agent.register", "halt.set", "halt.lift"]
    assert found[1]["items"] == ["reason=stop"]
    assert {entry["uid"] for entry in found} == {os.geteuid()}


def test_a_halt_makes_no_home(lone_shell: CommandLine, user_home: Path) -> None:
    lone_shell.do("halt.set", reason="stop")
    assert not list(user_home.glob("store*"))


@pytest.mark.parametrize("name", ['x"y', "human", "all", "a b", "\x1b[31m"])
def test_nobody_acts_under_a_name_that_no_agent_can_have(lone_shell: CommandLine, name: str) -> None:
    """Nor gets such a name into the audit."""
    fill(lone_shell)
    refusal("INVALID_IDENTITY", lone_shell.acting(name).do, "doc.write", name="plan", text="x")
    refusal("INVALID_IDENTITY", lone_shell.acting(name).do, "topic.publish", channel="c", message="x")
    assert len(entries(lone_shell)) == 5


def test_one_who_is_stopped_at_the_chain_stops_nobody(lone_shell: CommandLine, user_home: Path) -> None:
    fill(lone_shell)
    [chain] = (user_home / "accord/audit").iterdir()
    with chain.open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        lone_shell.do("doc.write", name="plan", text="while it is held")
        assert time.monotonic() - started < 5
    assert lone_shell.do("audit.verify")["entries"] == 6


def test_what_is_read_is_noted_where_that_is_wanted(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_AUDIT", "reads")
    before = len(entries(way))
    way.do("doc.write", name="plan", text="x")
    way.do("doc.read", name="plan")
    way.do("config.show")
    found = entries(way, after=before)
    assert [entry["operation"] for entry in found] == ["doc.write", "doc.read"]
    assert found[1]["items"] == ["name=plan"]


def fill(way: Way) -> None:
    for text in "abcde":
        way.do("doc.write", name="plan", text=text)


def test_verify_says_that_all_is_well_and_where_it_ends(lone_shell: CommandLine) -> None:
    fill(lone_shell)
    found = lone_shell.do("audit.verify")
    assert (found["entries"], found["compared"], found["kept"]) == (5, 5, False)
    fill(lone_shell)
    assert lone_shell.do("audit.verify", head=found["head"])["kept"]
    other = f"5:{'0' * 64}"
    assert "entry 5" in refusal("AUDIT_BROKEN", lone_shell.do, "audit.verify", head=other).text
    refusal("USAGE", lone_shell.do, "audit.verify", head="nonsense")


def tampered(way: Way, *writes: "Put | Delete") -> None:
    store = open_store(way.engine)
    store.commit([], writes)
    store.close()


@pytest.mark.parametrize("number", [1, 3, 5])
def test_one_changed_byte_is_found(lone_shell: CommandLine, number: int) -> None:
    """With no look in between: each command leaves the chain as long as the audit."""
    fill(lone_shell)
    store = open_store(lone_shell.engine)
    with store.snapshot() as snapshot:
        item = snapshot.get(AUDIT, number_id(number))
    store.close()
    assert item is not None
    changed = item.value.replace(b"uid:", b"uie:")
    tampered(lone_shell, Put(AUDIT, number_id(number), changed))
    assert f"entry {number} was changed" in refusal("AUDIT_BROKEN", lone_shell.do, "audit.verify").text
    tampered(lone_shell, Put(AUDIT, number_id(number), item.value))
    lone_shell.do("audit.verify")


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_missing_entry_is_found(lone_shell: CommandLine, number: int) -> None:
    fill(lone_shell)
    tampered(lone_shell, Delete(AUDIT, number_id(number)))
    assert f"entry {number} " in refusal("AUDIT_BROKEN", lone_shell.do, "audit.verify").text


def test_a_changed_chain_is_found_and_one_cut_short_goes_on(lone_shell: CommandLine, user_home: Path) -> None:
    fill(lone_shell)
    head = lone_shell.do("audit.verify")["head"]
    [chain] = (user_home / "accord/audit").iterdir()
    whole = chain.read_bytes()
    assert chain.stat().st_mode & 0o777 == 0o600
    for damage in (whole[:-30], whole[:-65], whole[:-40] + b"\0" * 40, b""):
        chain.write_bytes(damage)
        assert lone_shell.do("audit.verify")["head"] == head
        assert chain.read_bytes() == whole
    chain.write_bytes(whole.replace(whole[70:75], b"00000", 1))
    refusal("AUDIT_BROKEN", lone_shell.do, "audit.verify")


def test_many_at_once_make_one_chain(tmp_path: Path) -> None:
    """Threads that write, and threads that make the chain longer, in every order."""
    here = Python(f"sqlite:{tmp_path}/store.db")

    def work(name: str) -> None:
        for number in range(10):
            here.do("doc.write", name=name, text=str(number))

    threads = [threading.Thread(target=work, args=[f"d{number}"]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = here.do("audit.verify")
    assert found["entries"] == 40
    assert found["compared"] > 0


def test_the_hub_makes_the_chain_longer(shell: CommandLine, user_home: Path) -> None:
    fill(shell)
    found = shell.do("audit.verify")
    assert found["entries"] == 5


def test_a_chain_that_cannot_be_written_fails_nothing(lone_shell: CommandLine, user_home: Path) -> None:
    (user_home / "accord").mkdir(mode=0o700)
    (user_home / "accord/audit").write_text("no folder")
    fill(lone_shell)
    assert len(entries(lone_shell)) == 5


def test_follow(lone_shell: CommandLine) -> None:
    fill(lone_shell)
    following = lone_shell.start(["audit", "--follow"])
    assert following.stdout is not None
    assert [b'"number":%d' % n in following.stdout.readline() for n in range(1, 6)] == [True] * 5
    lone_shell.do("doc.write", name="plan", text="more")
    assert b'"number":6' in following.stdout.readline()
    following.terminate()
    following.wait(20)
