"""Reading and acknowledging: at least once, and exactly what is named."""

import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from accord.store.open import open_store
from accord.store.protocols import Exclusive
from tests.operations.people import refusal, register, send, unread
from tests.operations.ways import ACCORD, CommandLine, Python, Way


@pytest.mark.covers("T1.5", "T1.6")
def test_peeking_leaves_everything_unread(way: Way) -> None:
    register(way, "ann", "ben")
    ids = [send(way, "ann", "ben", str(n)) for n in range(3)]
    found = way.do("mail.check", identity="ben", peek=True, limit=2)
    assert [message["message"] for message in found["messages"]] == ["0", "1"]
    assert (found["message_count"], found["remaining"]) == (2, 1)
    assert unread(way, "ben") == ids


@pytest.mark.covers("T1.6")
def test_ack_takes_exactly_those_named(way: Way) -> None:
    register(way, "ann", "ben")
    ids = [send(way, "ann", "ben", str(n)) for n in range(5)]
    way.do("mail.ack", identity="ben", ids=[ids[3], ids[1], ids[1]])
    assert unread(way, "ben") == [ids[0], ids[2], ids[4]]
    found = way.do("mail.check", identity="ben", peek=True, limit=1)
    assert (found["message_count"], found["remaining"]) == (1, 2)
    way.do("mail.ack", identity="ben", ids=[ids[1]])  # again
    way.do("mail.ack", identity="ben", ids=[ids[0], ids[2]])
    assert unread(way, "ben") == [ids[4]]


@pytest.mark.covers("T1.6")
def test_ack_is_all_or_nothing(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    mine, others = send(way, "ann", "ben"), send(way, "ann", "cal")
    refused = refusal("MESSAGE_NOT_FOUND", way.do, "mail.ack", identity="ben", ids=[mine, others, "nothing"])
    assert others in refused.text
    assert "nothing" in refused.text
    assert (unread(way, "ben"), unread(way, "cal")) == ([mine], [others])


@pytest.mark.covers("T1.5")
def test_each_reader_has_a_cursor_of_its_own(way: Way) -> None:
    register(way, "ann", "ben", "cal")
    ids = [send(way, "ann", ["ben", "cal"], str(n)) for n in range(3)]
    way.do("mail.ack", identity="ben", ids=ids)
    assert unread(way, "ben") == []
    assert unread(way, "cal") == ids
    assert [message["message_id"] for message in way.do("mail.sent", sender="ann")["messages"]] == ids[::-1]


@pytest.mark.covers("T1.5")
def test_holes_wider_than_a_page(here: Python) -> None:
    register(here, "ann", "ben")
    ids = [send(here, "ann", "ben", str(n)) for n in range(30)]
    here.do("mail.ack", identity="ben", ids=ids[1:12] + ids[13:29])
    assert unread(here, "ben", limit=2) == [ids[0], ids[12]]
    assert unread(here, "ben", limit=3) == [ids[0], ids[12], ids[29]]
    assert here.do("mail.check", identity="ben", peek=True, limit=2)["remaining"] == 1


@pytest.mark.covers("T1.6")
def test_check_acknowledges_what_it_printed(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    ids = [send(shell, "ann", "ben", str(n)) for n in range(3)]
    found = shell.do("mail.check", identity="ben", limit=2)
    assert [message["message_id"] for message in found["messages"]] == ids[:2]
    assert found["remaining"] == 1
    assert unread(shell, "ben") == ids[2:]


@pytest.mark.covers("T1.6")
@pytest.mark.parametrize("output", ["closed", "full", "unread"])
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["check", "ben"], id="text"),
        pytest.param(["check", "ben", "--json"], id="json", marks=pytest.mark.more),
    ],
)
def test_what_could_not_be_printed_stays_unread(
    shell: CommandLine, tmp_path: Path, output: str, words: list[str]
) -> None:
    register(shell, "ann", "ben")
    ids = [send(shell, "ann", "ben", str(n)) for n in range(2)]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert _exit_with_output(shell, output, words) == 74
    assert unread(shell, "ben") == ids
    # Nor was it printed into a file of ours that got the number of standard output.
    changed = [path.name for path, data in before.items() if path.read_bytes() != data and b'"1"' in path.read_bytes()]
    assert changed == []
    assert len(shell.do("mail.check", identity="ben")["messages"]) == 2


@pytest.mark.covers("T1.6")
def test_a_reader_killed_before_it_acknowledged(disk_shell: CommandLine) -> None:
    """The store's write lock is held meanwhile, so that the reader is stopped between the two; a hub would go on."""
    register(disk_shell, "ann", "ben")
    ids = [send(disk_shell, "ann", "ben", str(n)) for n in range(3)]
    with closing(open_store(disk_shell.engine)) as store:
        locked: Exclusive = store  # type: ignore[assignment]  # all engines on a disk can be locked
        with locked.exclusive():
            reader = disk_shell.start(["check", "ben"])
            assert reader.stdout
            printed = reader.stdout.readline()
            assert reader.poll() is None
            reader.send_signal(signal.SIGKILL)
            reader.wait()
    assert all(id.encode() in printed for id in ids)
    assert unread(disk_shell, "ben") == ids
    assert [message["message_id"] for message in disk_shell.do("mail.check", identity="ben")["messages"]] == ids
    assert unread(disk_shell, "ben") == []


@pytest.mark.covers("T1.6")
def test_a_reader_killed_while_it_prints(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    id = send(shell, "ann", "ben", "x" * 1_000_000)  # more than a pipe holds
    reader = shell.start(["check", "ben"])
    assert reader.stdout
    assert reader.stdout.read(1000)
    reader.kill()
    reader.wait()
    reader.stdout.close()
    assert unread(shell, "ben") == [id]


@pytest.mark.covers("T0.1")
def test_a_message_outlives_everybody(shell: CommandLine) -> None:
    register(shell, "ann", "ben")
    waiting = [shell.start(["check", "ben", "--wait=60", "--peek"]) for _ in range(2)]
    id = send(shell, "ann", "ben")
    for process in waiting:
        process.kill()
        process.communicate()
    assert unread(shell, "ben") == [id]


def _exit_with_output(shell: CommandLine, output: str, words: list[str]) -> int:
    """The exit code of a command whose standard output is closed, full, or read by nobody."""
    if output == "closed":
        return _exit(shell, ["sh", "-c", 'exec "$@" >&-', "sh", ACCORD, *words], subprocess.DEVNULL)
    if output == "full":
        with open("/dev/full", "wb") as full:
            return _exit(shell, [ACCORD, *words], full.fileno())
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return _exit(shell, [ACCORD, *words], writing)
    finally:
        os.close(writing)


def _exit(shell: CommandLine, command: list[str], stdout: int) -> int:
    done = subprocess.run(
        command, env=shell.env(), stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.DEVNULL, timeout=60
    )
    return done.returncode
