"""`check --wait`: woken by the message, not by looking again and again."""

import statistics
import subprocess
import threading
import time

import pytest

from tests.operations.people import refusal, register, send, unread
from tests.operations.processes import until_it_waits, wakes
from tests.operations.ways import CommandLine, Python, Refused, Way

LOOKS_ANYWAY_S = 1.0  # a watch on a disk looks that often even when nothing woke it


@pytest.mark.covers("T0.1")
def test_a_command_that_waits_is_woken_at_once(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    sender = Python(shell.engine)
    took_s = []
    for n in range(7):
        waiting = shell.start(["check", "ben", "--wait=30"])
        until_it_waits(waiting.pid)
        id = send(sender, "ann", "ben", str(n))
        sent_at = time.monotonic()
        assert id.encode() in waiting.communicate(timeout=30)[0]
        took_s.append(time.monotonic() - sent_at)
    # Looking once a second would take half of one.
    assert statistics.median(took_s) < LOOKS_ANYWAY_S / 5
    assert unread(shell, "ben") == []


def test_a_command_that_waits_does_next_to_nothing(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    waiting = shell.start(["check", "ben", "--wait=30"])
    until_it_waits(waiting.pid)
    before = wakes(waiting.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    # Looking every 50 ms would wake it 30 times.
    assert wakes(waiting.pid) - before < 12
    waiting.kill()
    waiting.communicate()


def test_a_thread_that_waits_is_woken_at_once(here: Python) -> None:
    register(here, "ann", "ben")
    took_s = []
    for n in range(7):
        found: list[float] = []

        def wait(text: str = str(n), found: list[float] = found) -> None:
            [message] = here.do("mail.check", identity="ben", wait=30)["messages"]
            found.append(time.monotonic())
            assert message["message"] == text

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.05)  # most likely it waits by now; if not, it is only faster
        id = send(here, "ann", "ben", str(n))
        sent_at = time.monotonic()
        waiting.join(30)
        took_s.append(found[0] - sent_at)
        here.do("mail.ack", identity="ben", ids=[id])
    assert statistics.median(took_s) < LOOKS_ANYWAY_S / 5


def test_the_wait_is_over_in_time(way: Way) -> None:
    register(way, "ann", "ben")
    started = time.monotonic()
    found = way.do("mail.check", identity="ben", peek=True, wait=0.3)
    assert 0.3 <= time.monotonic() - started < 3
    assert (found["messages"], found["message_count"], found["remaining"]) == ([], 0, 0)


def test_what_is_there_already_is_not_waited_for(way: Way) -> None:
    register(way, "ann", "ben")
    id = send(way, "ann", "ben")
    started = time.monotonic()
    assert unread(way, "ben", wait=30) == [id]
    assert time.monotonic() - started < 10


def test_mail_for_others_and_what_was_acknowledged_do_not_end_a_wait(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    old = send(shell, "ann", "ben")
    shell.do("mail.ack", identity="ben", ids=[old])
    waiting = shell.start(["check", "ben", "--wait=30"])
    until_it_waits(waiting.pid)
    send(shell, "ben", "ann")
    shell.do("mail.ack", identity="ben", ids=[old])
    until_it_waits(waiting.pid)
    assert waiting.poll() is None
    new = send(shell, "ann", "ben")
    assert new.encode() in waiting.communicate(timeout=30)[0]


@pytest.mark.covers("T1.1")
def test_one_who_waits_and_loses_the_name_gets_nothing_more(memory: Python) -> None:
    register(memory, "ann", "ben")
    said: list[object] = []

    def wait() -> None:
        try:
            said.append(memory.do("mail.check", identity="ben", wait=5)["messages"])
        except Refused as error:
            said.append(error.code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)  # until it waits
    memory.do("agent.register", identity="ben", force=True)
    send(memory, "ann", "ben", "for the new one")
    waiting.join(20)
    assert said == ["IDENTITY_TAKEN_OVER"]


@pytest.mark.parametrize("wait", ["-1", "x", "nan", "inf", "1e99"])
def test_what_is_no_time_to_wait(memory: Python, wait: str) -> None:
    register(memory, "ann")
    refusal("USAGE", memory.do, "mail.check", identity="ann", wait=wait)
