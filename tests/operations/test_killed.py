"""Senders and readers killed inside their work, again and again: what was promised is there, once and in order."""

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.operations.people import register, unread
from tests.operations.processes import until_it_waits
from tests.operations.ways import CommandLine, Python, Way
from tests.readable import readable

WORKER = str(Path(__file__).with_name("worker.py"))
SENDERS = ("s0", "s1")
READER = "ben"
ENOUGH = "1000000"


class Process:
    """A worker that runs until it is killed, and the lines it said."""

    def __init__(self, shell: CommandLine, *words: str) -> None:
        command = [sys.executable, WORKER, *words]
        self._process = subprocess.Popen(command, env=shell.env(), stdout=subprocess.PIPE, bufsize=0)
        self._rest = b""
        self.lines: list[list[str]] = []

    def listen(self, timeout_s: float) -> None:
        """Take what was said, or wait for the next of it."""
        assert self._process.stdout
        if readable([self._process.stdout], timeout_s):
            self._take(os.read(self._process.stdout.fileno(), 1 << 20))

    def wait_for(self, lines: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.lines) < lines:
            assert time.monotonic() < deadline, "the worker says nothing"
            assert self._process.poll() is None, "the worker ended"
            self.listen(1)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        rest, _ = self._process.communicate()
        self._take(rest)

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.lines += [line.decode().split() for line in lines]


@pytest.mark.covers("T0.1", "T1.6", "T3.18", "T4.4")
def test_kill_loop(shell: CommandLine) -> None:
    kill_loop(shell, kills=36, seed=1)


@pytest.mark.long
@pytest.mark.covers("T0.1", "T1.6", "T3.18", "T4.4")
@pytest.mark.parametrize("seed", range(2, 5))
def test_long_kill_loop(shell: CommandLine, seed: int) -> None:
    kill_loop(shell, kills=400, seed=seed)


def kill_loop(shell: CommandLine, kills: int, seed: int) -> None:
    """One sender after another takes up where the last one was killed, and sends again what may not have been sent."""
    source = random.Random(seed)
    register(shell, *SENDERS, READER)
    sent = dict.fromkeys(SENDERS, 0)
    got: dict[str, None] = {}
    acknowledged: set[str] = set()
    crew = {name: _start(shell, name, sent) for name in (*SENDERS, READER)}
    for n in range(kills):
        name = (*SENDERS, READER)[n % 3]
        victim = crew[name]
        victim.wait_for(source.randrange(1, 6))
        time.sleep(source.random() * 0.003)  # so that the kill comes at any point of a commit
        victim.kill()
        for word, *rest in victim.lines:
            if word == "sent":
                assert int(rest[0]) == sent[name] + 1
                sent[name] += 1
            elif word == "got":
                assert not acknowledged & set(rest), "read again though it was acknowledged"
                got |= dict.fromkeys(rest)
            elif word == "acknowledged":
                acknowledged |= set(rest)
        if n < kills - 3:
            crew[name] = _start(shell, name, sent)
    left = _rest(Python(shell.engine))
    assert not acknowledged & set(left)
    _check_order(list(got) + [id for id in left if id not in got], sent)
    assert acknowledged, "the readers read nothing"


def _start(shell: CommandLine, name: str, sent: dict[str, int]) -> Process:
    if name == READER:
        return Process(shell, "read", name)
    return Process(shell, "send", name, READER, str(sent[name] + 1), ENOUGH)


def _rest(way: Way) -> list[str]:
    """What is unread, a page at a time."""
    ids: list[str] = []
    while page := unread(way, READER, limit=1000):
        way.do("mail.ack", identity=READER, ids=page)
        ids += page
    return ids


def _check_order(ids: list[str], sent: dict[str, int]) -> None:
    """Of each sender everything that was acknowledged, at most one more, each once, in the order of sending."""
    found = defaultdict(list)
    for id in ids:
        sender, _, n = id.partition("-")
        found[sender].append(int(n))
    for sender, last in sent.items():
        assert found[sender] == list(range(1, len(found[sender]) + 1))
        assert last <= len(found[sender]) <= last + 1


@pytest.mark.covers("T0.1", "T4.4")
def test_a_command_killed_after_its_commit_and_given_again(shell: CommandLine) -> None:
    """Nobody reads what it prints, so it is stopped between the two."""
    register(shell, "ann", "ben")
    words = ["send", "--from=ann", "--to=ben", "--message=hello", "--id=mine"]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, bytes(4096))
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    first = shell.start(words, stdout=writing)
    until_it_waits(first.pid)
    first.kill()
    first.wait()
    os.close(reading)
    os.close(writing)
    assert unread(shell, "ben") == ["mine"]
    assert b'"status":"ok"' in shell.run(words).stdout
    assert unread(shell, "ben") == ["mine"]


@pytest.mark.covers("T0.1", "T4.4")
def test_commands_killed_at_any_moment_and_given_again(shell: CommandLine) -> None:
    source = random.Random(1)
    register(shell, "ann", "ben")
    ids = [f"m{n}" for n in range(8)]
    for id in ids:
        words = ["send", "--from=ann", "--to=ben", "--message=hello", f"--id={id}"]
        first = shell.start(words)
        time.sleep(source.random() * 0.05)
        first.kill()
        if first.communicate()[0]:
            assert id in unread(shell, "ben")
        assert b'"status":"ok"' in shell.run(words).stdout
    assert unread(shell, "ben") == ids
