"""Many who push and work at once, and some who die of it: each entry is numbered once, and done once."""

import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import accord
from accord.api import Accord
from accord.store.contract import Item, number_id
from accord.store.open import open_store
from tests.operations.people import refusal
from tests.operations.processes import until_it_waits
from tests.operations.queue_worker import QUEUE
from tests.operations.test_queues import counts, done, is_empty, pop, push
from tests.operations.ways import CommandLine, Python, Refused, Way

if TYPE_CHECKING:
    from accord.store.contract import Content

pytestmark = pytest.mark.covers("S7")

WORKER = "tests.operations.queue_worker"
CHECKOUT = Path(__file__).parent.parent.parent


def start(shell: CommandLine, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", WORKER, *words]
    return subprocess.Popen(
        command, env=shell.env(), cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )


def lines(data: bytes) -> list[list[str]]:
    """What a worker said; the last line may be cut short."""
    return [line.decode().split() for line in data.split(b"\n")[:-1]]


def said(shell: CommandLine, crew: list[list[str]]) -> list[list[str]]:
    """Everything that a crew says while it works to its end."""
    workers = [start(shell, *words) for words in crew]
    found = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(crew)
    return [line for data in found for line in lines(data)]


def test_20_commands_push(shell: CommandLine) -> None:
    started = [shell.start(["queue", "push", QUEUE, str(n)]) for n in range(20)]
    answers = [process.communicate(timeout=60)[0] for process in started]
    numbers = sorted(int(answer.partition(b'"sequence":')[2].rstrip(b"}\n")) for answer in answers)
    assert numbers == list(range(1, 21))
    assert counts(shell) == [0, 20, 0, 0, 0, 0, 20]


def test_20_processes_push_to_one_queue(lone_shell: CommandLine) -> None:
    told = said(lone_shell, [["push", f"w{n}", "5"] for n in range(20)])
    assert sorted(int(number) for _, number, _ in told) == list(range(1, 101))
    way = Python(lone_shell.engine)
    found = [pop(way) for _ in range(100)]
    assert {(one["sequence"], one["payload"]) for one in found} == {(int(n), payload) for _, n, payload in told}
    assert [one["sequence"] for one in found] == list(range(1, 101))


def test_10_processes_race(lone_shell: CommandLine) -> None:
    race(lone_shell, entries=10)


@pytest.mark.more
def test_10_processes_race_100_times(lone_shell: CommandLine) -> None:
    race(lone_shell, entries=100)


def race(shell: CommandLine, entries: int) -> None:
    check_race(said(shell, [["race", f"w{n}", str(entries)] for n in range(10)]), 10 * entries)
    assert counts(Python(shell.engine)) == [0] * 7


def check_race(told: list[list[str]], entries: int) -> None:
    pushed = sorted(line[1:] for line in told if line[0] == "pushed")
    finished = sorted(line[1:] for line in told if line[0] == "done")
    assert sorted(int(number) for number, _ in pushed) == list(range(1, entries + 1))
    assert finished == pushed  # none lost, and none twice


@pytest.mark.parametrize("entries", [10, pytest.param(100, marks=pytest.mark.more)])
def test_10_threads_race(memory: Python, entries: int) -> None:
    told: list[list[str]] = []

    def work(name: str) -> None:
        for n in range(entries):
            [number] = push(memory, f"{name}-{n}")
            told.append(["pushed", str(number), f"{name}-{n}"])
            taken = pop(memory, wait=60)
            done(memory, taken)
            told.append(["done", str(taken["sequence"]), taken["payload"]])

    together([lambda name=f"w{n}": work(name) for n in range(10)])
    check_race(told, 10 * entries)
    assert counts(memory) == [0] * 7


def together(works: list[Any]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def test_pushes_at_the_bound_do_not_go_beyond_it(here: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_QUEUE_LIMIT", "12")
    told: list[str] = []

    def work() -> None:
        for _ in range(4):
            try:
                push(here, "x")
                told.append("pushed")
            except Refused as error:
                told.append(error.code)

    together([work] * 6)
    assert sorted(told) == ["QUEUE_FULL"] * 12 + ["pushed"] * 12
    assert counts(here)[-1] == 12


def test_a_worker_killed_with_an_entry(shell: CommandLine) -> None:
    way = Python(shell.engine)
    push(way, "work", "more work")
    victim = start(shell, "hold", "1.5")
    assert victim.stdout is not None
    [[_, sequence, payload, receipt]] = lines(victim.stdout.readline())
    victim.kill()
    victim.communicate()
    assert (sequence, payload) == ("1", "work")
    assert pop(way)["payload"] == "more work"
    again = pop(way, wait=30)
    assert (again["payload"], again["tries"]) == ("work", 2)
    refusal("STALE_RECEIPT", way.do, "queue.done", queue=QUEUE, receipt=receipt)
    assert is_empty(way)  # it came back once
    done(way, again)
    assert counts(way) == [0, 0, 0, 1, 0, 0, 1]


def test_workers_killed_again_and_again(lone_shell: CommandLine) -> None:
    kill_loop(lone_shell, kills=12, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 5))
def test_workers_killed_for_long(lone_shell: CommandLine, seed: int) -> None:
    kill_loop(lone_shell, kills=150, seed=seed)


def kill_loop(shell: CommandLine, kills: int, seed: int) -> None:
    """Those who push and those who work are killed inside it; what was said to be done is never taken again."""
    source = random.Random(seed)
    promised: set[str] = set()
    finished: list[str] = []
    perhaps: set[str] = set()  # killed between the end of the work and the word that says so
    for n in range(kills):
        crew = [start(shell, "push", f"p{n}", "100000"), start(shell, "take", "0.3"), start(shell, "take", "0.3")]
        for worker in crew:
            assert worker.stdout is not None
            worker.stdout.read(1)  # it has begun
        time.sleep(source.random() * 0.05)
        for worker in crew:
            worker.kill()
        # The first letter of each was read above.
        for first, worker in zip((b"p", b"r", b"r"), crew, strict=True):
            for word, _, *rest in [line for line in lines(first + worker.communicate()[0]) if len(line) > 1]:
                if word == "pushed":
                    promised.add(rest[0])
                elif word == "taken":
                    perhaps.add(rest[0])
                elif word == "done":
                    finished.append(rest[0])
                    perhaps.discard(rest[0])
    left = []
    way = Python(shell.engine)
    while counts(way)[-1]:
        taken = pop(way, wait=30)
        done(way, taken)
        left.append(taken["payload"])
    assert len(set(finished)) == len(finished)
    assert not set(finished) & set(left)
    assert len(set(left)) == len(left)
    assert len(perhaps) <= 2 * kills
    assert promised <= {*finished, *left, *perhaps}
    assert finished, "the workers did nothing"


def test_a_command_that_waits_is_woken_at_once(shell: CommandLine) -> None:
    way = Python(shell.engine)
    push(way, "x")
    done(way, pop(way))
    took_s = []
    for n in range(5):
        waiting = shell.start(["queue", "pop", QUEUE, "--wait=30"])
        until_it_waits(waiting.pid)
        push(way, f"entry {n}")
        pushed_at = time.monotonic()
        assert f"entry {n}".encode() in waiting.communicate(timeout=30)[0]
        took_s.append(time.monotonic() - pushed_at)
    assert statistics.median(took_s) < 0.2  # looking once a second would take half of one


def test_of_many_who_wait_each_entry_goes_to_one(here: Python) -> None:
    found: list[dict[str, Any]] = []
    waiting = [threading.Thread(target=lambda: found.append(pop(here, wait=30))) for _ in range(5)]
    for thread in waiting:
        thread.start()
    time.sleep(0.3)  # most likely they wait by now
    started = time.monotonic()
    push(here, *"abcde")
    for thread in waiting:
        thread.join(30)
    assert time.monotonic() - started < 5
    assert sorted(one["payload"] for one in found) == list("abcde")
    assert counts(here) == [0, 0, 0, 5, 0, 0, 5]


@pytest.mark.parametrize("how", ["delayed", "not done in time", "failed"])
def test_who_waits_is_woken_by_what_comes_due(here: Python, how: str) -> None:
    if how == "delayed":
        push(here, "x", delay=0.4)
    else:
        push(here, "x")
        taken = pop(here, visibility=0.4)
        if how == "failed":
            here.do("queue.fail", queue=QUEUE, receipt=taken["receipt"], delay=0.4)
    started = time.monotonic()
    assert pop(here, wait=30)["payload"] == "x"
    assert time.monotonic() - started < 0.9  # looking once a second would take longer


def test_a_halt_ends_the_wait(way: Way) -> None:
    said: list[str] = []
    waiting = threading.Thread(target=lambda: said.append(refusal("HALTED", pop, way.acting(""), wait=30).code))
    waiting.start()
    time.sleep(0.5)  # until it waits
    Python(way.engine).do("halt.set", reason="too hot")
    waiting.join(20)
    assert said == ["HALTED"]


@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_long_queue_costs_what_a_short_one_does(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the items that are read, and the names in the folders that are listed."""
    costs = []
    for length in (2_000, 6_000):  # both begin in the middle of a folder of a thousand
        url = f"{engine}:{tmp_path}/{length}"
        store = open_store(url)
        store.load(_contents(length))
        store.close()
        with accord.open(engine=url) as home, monkeypatch.context() as patch:
            read = _count_reads(patch)
            _use(home)
            costs.append(len(read))
    assert costs[1] < costs[0] * 1.2


def _contents(length: int) -> "list[Content]":
    """A queue of which the first quarter is done."""
    first = length // 4 + 1
    entry, ready = b'{"priority":"normal","by":"ann","at":""}\nx', b'{"sequence":%d,"priority":"normal","tries":5}'
    return [
        (f"queue/{QUEUE}", length, [Item(number_id(n), entry, 0) for n in range(first, length + 1)]),
        (f"queue-normal/{QUEUE}", length, [Item(number_id(n), ready % n, 0) for n in range(first, length + 1)]),
        (f"queue-normal-taken/{QUEUE}", first - 1, []),
        (f"queue-taken-gone/{QUEUE}", first - 1, []),
    ]


def _use(home: Accord) -> None:
    [before] = home.queue.list()["queues"]
    for _ in range(8):
        home.queue.push(queue=QUEUE, payload="x", priority="low")
        taken = home.queue.pop(queue=QUEUE)
        home.queue.fail(queue=QUEUE, receipt=taken["receipt"])
        home.queue.done(queue=QUEUE, receipt=home.queue.pop(queue=QUEUE)["receipt"])
        home.queue.peek(queue=QUEUE, limit=3)
    [after] = home.queue.list()["queues"]
    ready = after["ready"]
    assert before["length"] == after["length"] == ready["high"] + ready["normal"] + ready["low"]


def _count_reads(patch: pytest.MonkeyPatch) -> list[object]:
    read: list[object] = []
    make, list_folder = Item.__init__, os.listdir

    def counted_make(item: Item, *values: Any) -> None:
        read.append(item)
        make(item, *values)

    def counted_list(path: Any) -> list[str]:
        names = list_folder(path)
        read.extend(names)
        return names

    patch.setattr(Item, "__init__", counted_make)
    patch.setattr(os, "listdir", counted_list)
    return read
