"""One inbox has one order, that of commitment; from one sender it is the order of sending."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.operations.people import register, send, unread
from tests.operations.ways import CommandLine, Python, Way

WORKER = str(Path(__file__).with_name("worker.py"))
SENDERS = ("s0", "s1", "s2", "s3")
EACH = 25


@pytest.mark.covers("T3.18", "T1.5")
def test_four_senders_at_once(shell: CommandLine) -> None:
    register(shell, *SENDERS, "ben")
    processes = [
        subprocess.Popen(
            [sys.executable, WORKER, "send", sender, "ben", "1", str(EACH)], env=shell.env(), stdout=subprocess.PIPE
        )
        for sender in SENDERS
    ]
    seen: list[list[str]] = [unread(shell, "ben")]
    for process in processes:
        process.communicate(timeout=60)
        seen.append(unread(shell, "ben"))
    assert [process.returncode for process in processes] == [0] * len(SENDERS)
    last = seen[-1]
    for sender in SENDERS:
        assert [id for id in last if id.startswith(sender)] == [f"{sender}-{n}" for n in range(1, EACH + 1)]
    assert len(last) == EACH * len(SENDERS)
    for before in seen:  # whenever somebody looked, it was the beginning of the same order
        assert before == last[: len(before)]
    assert Python(shell.engine).do("mail.check", identity="ben", peek=True)["messages"][0]["message_id"] == last[0]


@pytest.mark.covers("T3.18")
def test_every_reader_sees_one_order(way: Way) -> None:
    register(way, "ann", "ben")
    ids = [send(way, "ann", "ben", str(n), id=f"z{9 - n}") for n in range(5)]  # not the order of their ids
    assert unread(way, "ben") == unread(way.acting("ben"), "ben") == ids
    assert unread(way, "ben", limit=2) == ids[:2]


@pytest.mark.covers("T1.7")
def test_discover_is_one_moment(here: Python) -> None:
    """Each message reaches both or neither, so both always have the same number waiting."""
    register(here, "ann", "ben", "cal")
    over = threading.Event()

    def send_on() -> None:
        while not over.is_set():
            send(here, "ann", ["ben", "cal"])

    sender = threading.Thread(target=send_on)
    sender.start()
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 20
    try:
        # On a busy machine the sender may not get its turn at once.
        while len(found) < 40 or found[-1]["revision"] == found[0]["revision"]:
            assert time.monotonic() < deadline, "nothing was sent meanwhile"
            found.append(here.do("agent.discover"))
    finally:
        over.set()
        sender.join()
    pending = [{who["identity"]: who["pending"] for who in one["identities"]} for one in found]
    assert all(counts["ben"] == counts["cal"] for counts in pending)
    assert pending[-1]["ben"] > pending[0]["ben"]
    # The later the revision, the more there is; the same revision, the same answer.
    revisions = [int(str(one["revision"]).rpartition(".")[2]) for one in found]
    assert revisions == sorted(revisions)
    assert all(
        counts["ben"] - pending[0]["ben"] == revision - revisions[0]
        for revision, counts in zip(revisions, pending, strict=True)
    )


@pytest.mark.covers("T1.7")
def test_discover_says_who_is_there_and_when(way: Way) -> None:
    before = way.do("agent.register", identity="ann")["revision"]
    found = way.do("agent.discover")
    assert found["revision"] == before
    assert {who["identity"]: who["pending"] for who in found["identities"]} == {"human": 0, "ann": 0}
    send(way, "ann", ["ann", "human"])
    later = way.do("agent.discover")
    assert later["revision"] != before
    assert {who["identity"]: who["pending"] for who in later["identities"]} == {"human": 1, "ann": 1}
    assert os.path.isdir(os.environ["ACCORD_HOME"])


@pytest.mark.covers("T1.7")
def test_discover_with_more_agents_than_a_commit_has_checks(here: Python) -> None:
    register(here, *[f"n{n}" for n in range(120)])
    assert len(here.do("agent.discover")["identities"]) == 121
