"""Hubs killed while they work: what they acknowledged is there, once and in order, and who listens misses nothing."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.users import User
from tests.hub.hubs import TIMEOUT_S, foreground, kill, running, start, status, wait_until
from tests.hub.sender import RECIPIENTS
from tests.robustness.homes import ROOT

SENDERS = ["s0", "s1", "s2"]
ENDLESS = 1_000_000


@pytest.fixture
def crowd(user: User) -> User:
    """Somebody whose home has senders and recipients."""
    for name in (*SENDERS, *RECIPIENTS):
        user.json("register", name)
    return user


class Sender:
    """A process that sends, and what it says of it."""

    def __init__(self, user: User, name: str, count: int) -> None:
        self.name = name
        self._said = (user.folder / f"{name}.said").open("w+b")
        path = f"{ROOT}:{user.env.get('PYTHONPATH', '')}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub.sender", str(user.home), name, str(count)],
            stdout=self._said,
            env={**user.env, "PYTHONPATH": path},
        )

    def acknowledged(self) -> int:
        return Path(self._said.name).read_bytes().count(b"\n")

    def close(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self._said.close()


@contextmanager
def sending(user: User, count: int) -> Iterator[list[Sender]]:
    senders = [Sender(user, name, count) for name in SENDERS]
    try:
        yield senders
    finally:
        for sender in senders:
            sender.close()


def by_sender(texts: list[str]) -> dict[str, list[int]]:
    """The numbers of the messages of each sender, as they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for text in texts:
        name, number = text.split()
        found[name].append(int(number))
    return found


def inbox(user: User, name: str) -> list[str]:
    """All that is unread, oldest first; it is read then."""
    found: list[str] = []
    while page := user.json("check", name, "--limit", "1000")["messages"]:
        found += [message["message"] for message in page]
    return found


@pytest.mark.covers("T3.1", "T3.3")
@pytest.mark.parametrize("listeners", [False, True])
def test_a_hub_killed_again_and_again(listeners: bool, crowd: User) -> None:
    kill_loop(crowd, kills=10, seed=1, listeners=listeners)


@pytest.mark.long
@pytest.mark.covers("T3.1", "T3.3")
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_hub_killed_very_often(seed: int, crowd: User) -> None:
    kill_loop(crowd, kills=50, seed=seed, listeners=True)


def kill_loop(user: User, kills: int, seed: int, listeners: bool) -> None:
    """Every kill comes while all send: after some acknowledgements and before the last."""
    chance = random.Random(seed)
    pid = start(user)
    heard: dict[str, list[str]] = {}
    with ExitStack() as stack:
        printed = {name: user.folder / f"{name}.heard" for name in RECIPIENTS if listeners}
        listening = []
        for name, path in printed.items():
            out = stack.enter_context(path.open("wb"))
            listening.append(stack.enter_context(running(user, "--json", "listen", name, out=out.fileno())))
        with sending(user, ENDLESS) as senders:
            for _ in range(kills):
                wait_for_more(senders, [chance.randrange(1, 20) for _ in senders])
                time.sleep(chance.random() * 0.005)
                kill(pid)
                pid = start(user)
            wait_for_more(senders, [20 for _ in senders])
        promised = {sender.name: sender.acknowledged() for sender in senders}
        if listeners:
            wait_until(lambda: not any(unread(user).values()), "all read")
        for listener in listening:
            listener.terminate()
            assert listener.wait(TIMEOUT_S) == 0
            assert listener.stderr is not None
            assert all(b"the hub is gone" in line for line in listener.stderr.read().splitlines())
        heard = {
            name: [json.loads(line)["message"] for line in path.read_bytes().splitlines()]
            for name, path in printed.items()
        }
    for name in RECIPIENTS:
        check_promised(heard[name] if listeners else inbox(user, name), promised)
    if listeners:
        assert heard["ben"] == heard["cyd"]


def wait_for_more(senders: list[Sender], more: list[int]) -> None:
    """Until each has been acknowledged so many more."""
    enough = [sender.acknowledged() + count for sender, count in zip(senders, more, strict=True)]
    wait_until(
        lambda: all(sender.acknowledged() >= count for sender, count in zip(senders, enough, strict=True)), "more"
    )


def check_promised(texts: list[str], promised: dict[str, int]) -> None:
    """What was acknowledged is there once and in order; of each sender one more may be, that was on its way."""
    found = by_sender(texts)
    for name, count in promised.items():
        assert found[name] == list(range(len(found[name]))), name
        assert count <= len(found[name]) <= count + 1, name


def unread(user: User) -> dict[str, int]:
    return {agent["identity"]: agent["pending"] for agent in user.json("discover")["identities"]}


@pytest.mark.covers("T1.4", "T3.15")
def test_a_hub_that_is_told_to_end_under_load(crowd: User) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        with foreground(crowd) as process, sending(crowd, ENDLESS) as senders:
            wait_until(lambda: all(sender.acknowledged() > 5 for sender in senders), "all at work")
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(TIMEOUT_S) == 0
            assert time.monotonic() - began < 5
        promised = {sender.name: sender.acknowledged() for sender in senders}
        for name in RECIPIENTS:
            check_promised(inbox(crowd, name), promised)
        assert not status(crowd)["running"]


@pytest.mark.covers("T3.3")
def test_a_listener_never_starts_a_hub_anew(crowd: User) -> None:
    """It waits for one, and then takes what came meanwhile; what it had is not printed again."""
    pid = start(crowd)
    with running(crowd, "--json", "listen", "ben") as listener:
        assert listener.stdout is not None
        for n in range(3):
            crowd.json("send", "--from", "s0", "--to", "ben", "--message", f"before {n}")
            assert json.loads(listener.stdout.readline())["message"] == f"before {n}"
            kill(pid)
            crowd.json("send", "--from", "s0", "--to", "ben", "--message", f"meanwhile {n}")
            time.sleep(0.2)
            assert not status(crowd)["running"]
            pid = start(crowd)
            assert json.loads(listener.stdout.readline())["message"] == f"meanwhile {n}"
        listener.terminate()
        assert listener.wait(TIMEOUT_S) == 0
        assert listener.stdout.read() == b""
    assert inbox(crowd, "ben") == []
