"""One lock that many processes want, some of which are killed or stopped: one has it, and late writes are refused."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hubs import Hub
from tests.operations.conftest import url_of
from tests.operations.processes import until_it_waits, wakes
from tests.operations.test_killed import Process
from tests.operations.test_locks import acquire, release, until_waiting, waiting
from tests.operations.ways import CommandLine, HubCommandLine, Python
from tests.readable import readable

pytestmark = pytest.mark.covers("S6")

WORKER = str(Path(__file__).with_name("worker.py"))
TTL_S = 0.3
TICKET_S = 0.3  # so that a kill costs the others little time in a test
CREW = 4


def test_processes_get_it_in_the_order_in_which_they_came(shell: CommandLine) -> None:
    way = Python(shell.engine)
    token = acquire(way, "first")
    names = [f"n{n}" for n in range(6)]
    processes = []
    for n, name in enumerate(names):
        processes.append(shell.start(["lock", "acquire", "build", f"--owner={name}", "--ttl=0.1", "--timeout=60"]))
        until_waiting(way, n + 1)
    assert waiting(way) == names
    release(way, "first", token)
    for n, process in enumerate(processes):
        assert f'"token":{token + 1 + n},'.encode() in process.communicate(timeout=60)[0]


def test_one_who_waited_and_was_killed_holds_up_the_others_for_seconds(shell: CommandLine) -> None:
    way = Python(shell.engine)
    token = acquire(way, "first")
    killed = shell.start(["lock", "acquire", "build", "--owner=killed", "--timeout=600"])
    until_waiting(way, 1)
    other = shell.start(["lock", "acquire", "build", "--owner=other", "--timeout=60"])
    until_waiting(way, 2)
    killed.kill()
    killed.communicate()
    release(way, "first", token)
    began = time.monotonic()
    assert f'"token":{token + 1},'.encode() in other.communicate(timeout=60)[0]
    assert time.monotonic() - began < 10


def test_who_hangs_up_waits_no_longer(tmp_path: Path, hub_of: Callable[[str], Hub]) -> None:
    url = url_of("sqlite", tmp_path)
    hub = hub_of(url)
    way = Python(url)
    acquire(way, "first")
    connection = hub.connect()
    connection.call("session.open", {"operator": hub.operator_token()}, 20)
    connection.send({"jsonrpc": "2.0", "id": 1, "method": "lock.acquire", "params": {"name": "build", "owner": "ben"}})
    until_waiting(way, 1)
    connection.close()
    began = time.monotonic()
    while waiting(way):
        assert time.monotonic() - began < 4, "sooner than its ticket ends"
        time.sleep(0.05)


def test_one_who_waits_does_next_to_nothing(shell: CommandLine) -> None:
    way = Python(shell.engine)
    acquire(way, "first")
    process = shell.start(["lock", "acquire", "build", "--owner=other", "--timeout=60"])
    until_waiting(way, 1)
    until_it_waits(process.pid)
    before = wakes(process.pid)
    time.sleep(3)
    assert wakes(process.pid) - before < 30  # looking every 50 ms would be more
    process.kill()
    process.communicate()


def test_one_who_waits_goes_on_without_its_hub(tmp_path: Path, hub_of: Callable[[str], Hub]) -> None:
    url = url_of("sqlite", tmp_path)
    shell = HubCommandLine(url, hub=hub_of(url))
    way = Python(url)
    token = acquire(way, "first")
    waiter = shell.start(["lock", "acquire", "build", "--owner=other", "--timeout=60"])
    until_waiting(way, 1)
    began = time.monotonic()
    assert shell.run(["hub", "stop"]).returncode == 0
    assert time.monotonic() - began < 8  # it does not wait for who waits
    until_waiting(way, 1)
    assert waiter.poll() is None
    release(way, "first", token)
    assert f'"token":{token + 1},'.encode() in waiter.communicate(timeout=60)[0]


def test_a_holder_that_was_killed_is_replaced_after_its_lease(lone_shell: CommandLine) -> None:
    way = Python(lone_shell.engine)
    holder = Process(lone_shell, "late", "build", "1")
    holder.wait_for(1)
    holder.kill()
    began = time.monotonic()
    assert acquire(way, "next", wait=30) == 2
    assert time.monotonic() - began < 5


def test_a_holder_that_was_stopped_past_its_lease_writes_nothing(shell: CommandLine) -> None:
    way = Python(shell.engine)
    command = [sys.executable, WORKER, "late", "build", "0.5"]
    holder = subprocess.Popen(command, env=shell.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert holder.stdout
    assert readable([holder.stdout], 20)
    assert holder.stdout.read(100) == b"has 1\n"
    holder.send_signal(signal.SIGSTOP)
    assert acquire(way, "next", wait=30) == 2
    way.do("doc.write", name="log", text="next", fence="build:2")
    holder.send_signal(signal.SIGCONT)
    said = holder.communicate(b"!", timeout=30)[0].split()
    assert said[-1] == b"FENCED"
    assert way.do("doc.read", name="log")["text"] == "next"


def test_mutual_exclusion_under_kills_and_stops(lone_shell: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    contend(lone_shell, monkeypatch, faults=14, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 5))
def test_mutual_exclusion_for_long(lone_shell: CommandLine, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    contend(lone_shell, monkeypatch, faults=150, seed=seed)


def contend(shell: CommandLine, monkeypatch: pytest.MonkeyPatch, faults: int, seed: int) -> None:
    """Kill or stop one of the crew now and then, and look at what all of them did."""
    monkeypatch.setenv("ACCORD_BACKUP_COUNT", "1000")
    source = random.Random(seed)
    crew = Crew(shell)
    for n in range(faults):
        crew.work(3 * CREW + source.randrange(3 * CREW))
        time.sleep(source.random() * 0.005)  # so that it comes at any point of a step
        victim = source.choice(crew.working())
        if n % 2:
            crew.replace(victim)
        else:
            crew.stop(victim, source.random() * 2 * TTL_S)
    history = crew.end()
    way = Python(shell.engine)
    versions = way.do("doc.history", name="log")["versions"]
    texts = [way.do("doc.read", name="log", revision=one["revision"])["text"] for one in reversed(versions)]
    check(history, [text.replace(" ", "_") for text in texts])
    granted = [step for step in history if step.operation == "lock.acquire" and step.code == "OK"]
    assert len(granted) > faults
    assert any(step.code == "FENCED" for step in history) or faults < 100


class Crew:
    def __init__(self, shell: CommandLine) -> None:
        self._shell = shell
        self._runs = 0
        self._all: list[Process] = []
        self._there: list[Process] = []
        self._stopped: list[tuple[float, Process]] = []  # until when
        for _ in range(CREW):
            self._start()

    def working(self) -> list[Process]:
        """Those who have said something, and are not stopped."""
        stopped = [process for _, process in self._stopped]
        return [process for process in self._there if process.lines and process not in stopped]

    def work(self, lines: int) -> None:
        """Have them say so many lines more, and let those go on whose time has come."""
        wanted = self._said() + lines
        deadline = time.monotonic() + 30
        while self._said() < wanted or not self.working():
            assert time.monotonic() < deadline, "nothing goes on"
            for process in self._there:
                process.listen(0.005)
            for until, process in list(self._stopped):
                if until < time.monotonic():
                    process.signal(signal.SIGCONT)
                    self._stopped.remove((until, process))

    def stop(self, process: Process, seconds: float) -> None:
        process.signal(signal.SIGSTOP)
        self._stopped.append((time.monotonic() + seconds, process))

    def replace(self, process: Process) -> None:
        process.kill()
        self._there.remove(process)
        self._start()

    def end(self) -> "list[Step]":
        for process in self._there:
            process.kill()
        return [step for process in self._all for step in steps(process.lines)]

    def _said(self) -> int:
        return sum(len(process.lines) for process in self._all)

    def _start(self) -> None:
        words = ["lock", f"w{self._runs}", "build", str(TTL_S), str(TICKET_S)]
        self._there.append(Process(self._shell, *words))
        self._all.append(self._there[-1])
        self._runs += 1


class Step(NamedTuple):
    operation: str
    number: int
    text: str
    called: float
    returned: float  # infinite when nobody was told
    code: str  # "": nobody was told


def steps(lines: list[list[str]]) -> list[Step]:
    found = [
        Step(operation, int(number), text, float(called), float(returned), code)
        for word, operation, number, text, *rest in lines
        if word == "did"
        for called, returned, code in [rest]
    ]
    if lines and lines[-1][0] == "asks":
        _, operation, number, text = lines[-1]
        found.append(Step(operation, int(number), text, 0.0, float("inf"), ""))
    return found


def check(history: list[Step], texts: list[str]) -> None:
    """Some order of all steps, each between its call and its return, explains them."""
    grants = {step.number: step for step in history if step.operation == "lock.acquire" and step.code == "OK"}
    assert len(grants) == sum(step.operation == "lock.acquire" and step.code == "OK" for step in history), (
        "one number twice"
    )
    for number, grant in grants.items():
        earlier = [other for other, step in grants.items() if step.returned < grant.called]
        assert all(other < number for other in earlier), "a number that does not grow"
    released = {step.number: step for step in history if step.operation == "lock.release" and step.code == "OK"}
    for write in [step for step in history if step.operation == "doc.write" and step.code == "OK"]:
        later = [step for number, step in grants.items() if number > write.number]
        assert all(write.called < step.returned for step in later), f"written after another had it: {write}"
        gone = released.get(write.number)
        assert gone is None or write.called < gone.returned, f"written after it was released: {write}"
    for number, gone in released.items():
        later = [step for other, step in grants.items() if other > number]
        assert all(gone.called < step.returned for step in later), f"released after another had it: {gone}"
    check_leases(history, grants)
    check_writes(history, texts)


def check_leases(history: list[Step], grants: dict[int, Step]) -> None:
    """What was not given back went to the next only when its lease was over."""
    asked = {
        step.number: step.called for step in history if step.operation == "lock.release" and step.code in ("OK", "")
    }
    granted_at = 0.0  # at the earliest
    for number, after in pairwise(sorted(grants)):
        granted_at = max(granted_at, grants[number].called)
        if number not in asked:
            assert grants[after].returned >= granted_at + TTL_S, f"{after} was granted before {number} was over"
            granted_at += TTL_S
        else:
            granted_at = max(granted_at, asked[number])


def check_writes(history: list[Step], texts: list[str]) -> None:
    """What was acknowledged is there, once; nothing is there that was refused; and in the order of the numbers."""
    assert len(set(texts)) == len(texts)
    writes = {step.text: step for step in history if step.operation == "doc.write"}
    kept = [writes[text] for text in texts]
    assert [step for step in kept if step.code not in ("OK", "")] == []
    assert {text for text, step in writes.items() if step.code == "OK"} <= set(texts)
    numbers = [step.number for step in kept]
    assert numbers == sorted(numbers), "a late write came through"


GRANTS = [Step("lock.acquire", 1, "-", 0, 1, "OK"), Step("lock.acquire", 2, "-", 4, 5, "OK")]


@pytest.mark.parametrize(
    ("more", "texts"),
    [
        ([Step("lock.acquire", 2, "-", 8, 9, "OK")], []),
        ([Step("lock.acquire", 3, "-", 2, 3, "OK")], []),
        ([Step("doc.write", 1, "x", 6, 7, "OK")], ["x"]),
        ([Step("doc.write", 1, "x", 2, 3, "OK")], []),
        ([Step("doc.write", 1, "x", 6, 7, "FENCED")], ["x"]),
        ([Step("doc.write", 1, "x", 2, 3, "OK")], ["x", "x"]),
        ([Step("doc.write", 1, "x", 2, 9, "OK"), Step("doc.write", 2, "y", 6, 7, "OK")], ["y", "x"]),
        ([Step("lock.release", 1, "-", 6, 7, "OK")], []),
        ([Step("lock.acquire", 3, "-", 4.1, 4.2, "OK")], []),
        ([Step("lock.release", 2, "-", 6, 7, "OK"), Step("doc.write", 2, "x", 8, 9, "OK")], ["x"]),
    ],
)
def test_a_bad_history_is_found(more: list[Step], texts: list[str]) -> None:
    check(GRANTS, [])
    with pytest.raises(AssertionError):
        check([*GRANTS, *more], texts)
