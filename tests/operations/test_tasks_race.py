"""Many who work on one task board at once: nothing is taken twice, nothing is lost, and no cycle slips through."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import accord
from accord import errors
from accord.services import board, tasks
from accord.services.tasks import Agent
from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.transaction import Transaction, transact
from tests.operations.people import refusal
from tests.operations.ways import CommandLine, Python

pytestmark = pytest.mark.covers("S8")

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 10
AT = "2026-01-01T00:00:00.000Z"


def start(shell: CommandLine, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.operations.task_worker", *words],
        env={**shell.env(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(shell: CommandLine, *words: str) -> "Counter[tuple[str, str]]":
    out, _ = start(shell, *words).communicate(timeout=300)
    return Counter((n, code) for n, code in (line.split() for line in out.splitlines()))


def add_many(shell: CommandLine, ids: list[str], after: "Callable[[int], str | None]" = lambda n: None) -> None:
    with accord.open(engine=shell.engine) as home:
        for n, id in enumerate(ids):
            home.task.add(title="x", id=id, after=after(n))


def test_10_processes(lone_shell: CommandLine) -> None:
    work_all(lone_shell, each=8)


@pytest.mark.more
def test_10_processes_and_100_tasks_each(lone_shell: CommandLine) -> None:
    work_all(lone_shell, each=100)


def work_all(shell: CommandLine, each: int) -> None:
    """Every third task waits for the one before."""
    ids = [f"n{n}" for n in range(PROCESSES * each)]
    add_many(shell, ids, lambda n: f"n{n - 1}" if n % 3 == 2 else None)
    crew = [start(shell, "work", f"p{n}") for n in range(PROCESSES)]
    for process in crew:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    lines = [line for process in crew for line in process.communicate("x", timeout=300)[0].splitlines()]
    told = Counter(lines)
    assert told.pop("EMPTY") == PROCESSES
    # A task that waited may come to be ready when all others have left.
    left = Python(shell.engine)
    for task in left.do("task.list", state="ready", limit=1000)["tasks"]:
        told += Counter([f"took {task['id']}", f"did {task['id']}"])
        left.do("task.done", id=task["id"])
    assert told == Counter([f"took {id}" for id in ids] + [f"did {id}" for id in ids])
    done = [task["id"] for task in left.do("task.list", state="done", limit=1000)["tasks"]]
    assert sorted(done) == sorted(ids)
    for n in range(2, len(ids), 3):
        assert done.index(f"n{n}") < done.index(f"n{n - 1}"), "the newest come first"


@pytest.mark.parametrize("each", [6, pytest.param(100, marks=pytest.mark.more)])
def test_10_threads(memory: Python, each: int) -> None:
    ids = [memory.do("task.add", title="x")["id"] for _ in range(PROCESSES * each)]
    took: list[str] = []

    def work(agent: str) -> None:
        with accord.open(engine=memory.engine) as home:
            try:
                while True:
                    id = home.task.next(agent=agent)["id"]
                    took.append(id)
                    home.task.done(id=id, agent=agent)
            except errors.Empty:
                pass

    crew = [threading.Thread(target=work, args=[f"p{n}"]) for n in range(PROCESSES)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert Counter(took) == Counter(ids)


def test_one_task_claimed_by_10_at_the_same_instant(lone_shell: CommandLine) -> None:
    claim_all(lone_shell, rounds=5)


@pytest.mark.more
def test_one_task_claimed_by_10_at_the_same_instant_100_times(lone_shell: CommandLine) -> None:
    claim_all(lone_shell, rounds=100)


def claim_all(shell: CommandLine, rounds: int) -> None:
    add_many(shell, [f"n{n}" for n in range(rounds)])
    told = said(shell, "claim", str(rounds), str(PROCESSES))
    for n in range(rounds):
        assert told[str(n), "ok"] == 1
        assert told[str(n), "ALREADY_CLAIMED"] == PROCESSES - 1


def test_two_halves_of_a_cycle(lone_shell: CommandLine) -> None:
    rounds = 10
    add_many(lone_shell, [f"{letter}{n}" for n in range(rounds) for letter in "ab"])
    told = said(lone_shell, "halves", str(rounds))
    assert told == {(str(n), code): 1 for n in range(rounds) for code in ("ok", "DEPENDENCY_CYCLE")}


def test_the_task_of_an_agent_that_was_killed(lone_shell: CommandLine) -> None:
    way = Python(lone_shell.engine)
    way.do("task.add", title="x", id="a")
    holder = start(lone_shell, "hold", "ann", "1")
    assert holder.stdout
    assert holder.stdout.readline() == "took a\n"
    holder.kill()
    holder.communicate()
    refusal("ALREADY_CLAIMED", way.do, "task.claim", id="a", agent="ben")
    started = time.monotonic()
    assert way.do("task.next", agent="ben", wait=30)["id"] == "a"
    assert time.monotonic() - started < 5
    refusal("NOT_CLAIMED", way.do, "task.done", id="a", agent="ann")
    way.do("task.done", id="a", agent="ben")


class Meanwhile:
    """What others commit between a work's first run and its commit."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def do(self, work: "Callable[[Transaction], object]") -> None:
        transact(self.store, work)

    def between(self, work: "Callable[[Transaction], object]", others: "Callable[[], None]") -> None:
        runs: list[int] = []

        def first_with_others(tx: Transaction) -> object:
            result = work(tx)
            runs.append(1)
            if len(runs) == 1:
                others()
            return result

        transact(self.store, first_with_others)

    def tidy(self) -> None:
        while transact(self.store, board.tidy):
            pass

    def ready(self) -> list[str]:
        self.tidy()
        return [task.id for task in transact(self.store, lambda tx: board.all_of(tx, "ready", None, 100))]


@pytest.fixture
def meanwhile() -> Meanwhile:
    found = Meanwhile(open_store("memory:"))
    for id in ("a", "b"):
        found.do(lambda tx, id=id: tasks.add(tx, "x", AT, id))  # type: ignore[misc]
    return found


def test_the_other_half_of_a_long_cycle_comes_between(meanwhile: Meanwhile) -> None:
    """No task is written by both."""
    for first in ("a", "b"):
        before = first
        for n in range(75):
            id = f"{first}{n}"
            meanwhile.do(lambda tx, id=id, before=before: tasks.add(tx, "x", AT, id, after=[before]))  # type: ignore[misc]
            before = id
    with pytest.raises(errors.DependencyCycle):
        meanwhile.between(
            lambda tx: tasks.depend(tx, "a", ["b73"]),
            lambda: meanwhile.do(lambda tx: tasks.depend(tx, "b", ["a73"])),
        )
    assert meanwhile.ready() == ["a"]


def test_a_task_is_done_while_another_begins_to_wait_for_it(meanwhile: Meanwhile) -> None:
    meanwhile.between(
        lambda tx: tasks.add(tx, "x", AT, "c", after=["a"]), lambda: meanwhile.do(lambda tx: tasks.done(tx, "a", AT))
    )
    assert meanwhile.ready() == ["b", "c"]
    meanwhile.do(lambda tx: tasks.add(tx, "x", AT, "d"))
    meanwhile.between(lambda tx: tasks.done(tx, "d", AT), lambda: meanwhile.do(lambda tx: tasks.depend(tx, "b", ["d"])))
    assert meanwhile.ready() == ["b", "c"]


def test_a_task_is_given_back_while_what_it_waits_for_is_done(meanwhile: Meanwhile) -> None:
    meanwhile.do(lambda tx: tasks.claim(tx, "b", Agent("ann", AT, 60)))
    meanwhile.do(lambda tx: tasks.depend(tx, "b", ["a"]))

    def finish() -> None:
        meanwhile.do(lambda tx: tasks.done(tx, "a", AT))
        meanwhile.tidy()

    meanwhile.between(lambda tx: tasks.release(tx, "b", "ann"), finish)
    assert meanwhile.ready() == ["b"]


def test_several_changes_in_one_transaction(meanwhile: Meanwhile) -> None:
    def work(tx: Transaction) -> None:
        tasks.add(tx, "x", AT, "c", after=["a"], priority="high")
        tasks.add(tx, "x", AT)
        tasks.depend(tx, "t4", ["c"])
        tasks.done(tx, "a", AT)
        tasks.claim(tx, "c", Agent("ann", AT, 60))
        tasks.progress(tx, "c", "ann", AT, "fast")
        tasks.done(tx, "c", AT, "ann")
        tasks.assign(tx, "t4", Agent("ben", AT))
        tasks.block(tx, "b", "later")

    meanwhile.do(work)
    assert meanwhile.ready() == ["t4"]
    taken = transact(meanwhile.store, lambda tx: tasks.claim_next(tx, Agent("ben", AT, 60)))
    assert taken is not None
    assert taken.id == "t4"
