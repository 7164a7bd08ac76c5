"""What several workers do at once, some of them killed, can be put in order; and no money is made or lost."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import pytest

from accord.store.open import open_store
from accord.store.protocols import Store
from accord.store.wrap.recorded import recorded
from accord.testing.histories import check_history
from accord.testing.histories.history import History, read_history
from tests.robustness.histories_crew import Crew
from tests.robustness.histories_worker import (
    ACCOUNTS,
    BANK,
    BOOK,
    COUNTER,
    REGISTERS,
    Operator,
    Teller,
    counted,
    open_recorded,
)
from tests.robustness.homes import all_items

ENGINES = ["sqlite", "files"]  # those that processes can share

WORKERS = 4  # every other one meets with faults
OPERATIONS = 2500
TRANSFERS = 400
KILLS = 20

# Kills come this long after something was done, at most, so that they land anywhere in what is done next.
KILL_WITHIN_S = 0.003


@pytest.mark.covers("S1", "S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_killed_processes_did_is_linearizable(engine: str, tmp_path: Path) -> None:
    operate_under_kills(f"{engine}:{tmp_path}/store", tmp_path, OPERATIONS, KILLS)


@pytest.mark.long
@pytest.mark.covers("S1", "S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_killed_processes_did_for_long_is_linearizable(engine: str, tmp_path: Path) -> None:
    operate_under_kills(f"{engine}:{tmp_path}/store", tmp_path, 10 * OPERATIONS, 10 * KILLS)


@pytest.mark.covers("S1")
def test_what_threads_did_in_memory_is_linearizable(tmp_path: Path) -> None:
    def operate(n: int) -> None:
        store = open_recorded(shared, str(tmp_path / f"{n}.history"), f"w{n}", n, n % 2 == 1)
        operations = Operator(store, f"w{n}", n).operate()
        for _ in range(OPERATIONS // WORKERS):
            next(operations)

    shared = open_store("memory:")
    in_threads(operate)
    history = check_box(shared, tmp_path, OPERATIONS)
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0


@pytest.mark.more
@pytest.mark.covers("S1", "S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_transfers_of_killed_processes_happen_once(engine: str, tmp_path: Path) -> None:
    transfer_under_kills(f"{engine}:{tmp_path}/store", tmp_path, TRANSFERS, KILLS)


@pytest.mark.long
@pytest.mark.covers("S1", "S4")
@pytest.mark.parametrize("engine", ENGINES)
def test_many_transfers_of_killed_processes_happen_once(engine: str, tmp_path: Path) -> None:
    transfer_under_kills(f"{engine}:{tmp_path}/store", tmp_path, 10 * TRANSFERS, 10 * KILLS)


@pytest.mark.covers("S1")
def test_transfers_of_threads_in_memory_happen_once(tmp_path: Path) -> None:
    def transfer(n: int) -> None:
        teller = Teller(open_recorded(shared, str(tmp_path / f"{n}.history"), f"w{n}", n, n % 2 == 1))
        requests = make_requests(f"w{n}")
        for _ in range(TRANSFERS // WORKERS):
            request = next(requests)
            answered[request] = teller.transfer(request)
            teller.audit()

    answered: dict[str, int] = {}
    shared = open_store("memory:")
    Teller(recorded(shared, str(tmp_path / "first.history"), "first")).open_accounts()
    in_threads(transfer)
    history = check_bank(shared, tmp_path, answered)
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0


class Killer:
    """Says when to kill, and keeps count of the kills that hit something."""

    def __init__(self, operations: int, kills: int) -> None:
        self.hits = 0
        self._kills_left = 10 * kills
        self._random = Random(0)
        self._longest = 2 * operations // kills
        self._wait = self._random.randint(1, self._longest)

    def is_due(self, done: int) -> bool:
        """Told how many more operations were done, whether to kill now."""
        self._wait -= done
        if self._wait > 0:
            return False
        self._wait = self._random.randint(1, self._longest)
        return True

    def choose(self, names: list[str]) -> str:
        assert self._kills_left, f"of all kills, only {self.hits} hit an operation"
        self._kills_left -= 1
        time.sleep(self._random.uniform(0, KILL_WITHIN_S))
        return self._random.choice(names)


def operate_under_kills(url: str, folder: Path, operations: int, kills: int) -> None:
    """Let workers operate, and kill one now and then, until enough was done and enough kills hit an operation."""
    killer = Killer(operations, kills)
    done = 0
    runs = count()
    working: set[str] = set()

    with Crew("operate", url, folder) as crew:

        def start() -> None:
            run = next(runs)
            crew.start(f"w{run}", seed=run, is_faulty=run % 2 == 1)

        for _ in range(WORKERS):
            start()
        while done < operations or killer.hits < kills:
            heard = crew.hear()
            done += len(heard)
            working |= {name for name, _ in heard}
            if killer.is_due(len(heard)):
                victim = killer.choose(sorted(working))
                crew.kill(victim)
                working.remove(victim)
                killer.hits += read_history([crew.history_of(victim)]).unanswered > 0
                start()
    with closing(open_store(url)) as store:
        history = check_box(store, folder, operations)
    assert history.unanswered >= killer.hits >= kills
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0


def check_box(store: Store, folder: Path, operations: int) -> History:
    """The whole history, with a look at the end of it, is in order; and the counter counted every increase once."""
    end = recorded(store, str(folder / "end.history"), "end")
    Operator(end, "end", 0).look_around()
    with end.snapshot() as snapshot:
        items = {key: snapshot.get(*key) for key in [*REGISTERS, COUNTER]}
    history = check_history(folder.glob("*.history"))
    for key in items:
        assert operations_on(key, history) >= operations / len(items)
    increases = [commit for commit in history.commits if COUNTER in commit.writes]
    acknowledged = [commit for commit in increases if commit.revision is not None]
    counter = items[COUNTER]
    assert counter is not None
    assert len(acknowledged) <= counted(counter.value) <= len(increases)
    return history


def operations_on(key: tuple[str, str], history: History) -> int:
    return sum(read.place == key for read in history.reads) + sum(key in commit.writes for commit in history.commits)


class Desk:
    """Gives each worker one request after another. What a killed one leaves, its successor is given first."""

    def __init__(self, crew: Crew) -> None:
        self.answered: dict[str, int] = {}
        self.left: dict[str, str] = {}  # who works at which request
        self.proven: set[str] = set()  # who has answered one
        self._crew = crew
        self._requests = make_requests("r")
        self._runs = count()

    def hire(self, request: str | None = None) -> None:
        run = next(self._runs)
        self._crew.start(f"w{run}", seed=run, is_faulty=run % 2 == 1)
        self._give(f"w{run}", request or next(self._requests))

    def take_answers(self, and_go_on: bool) -> int:
        """Wait for answers; how many there were."""
        heard = self._crew.hear()
        for name, line in heard:
            self._note(name, line)
            if and_go_on:
                self._give(name, next(self._requests))
        return len(heard)

    def kill(self, name: str) -> bool:
        """Kill a worker and hire another; whether that hit a request."""
        for line in self._crew.kill(name):
            self._note(name, line)
        self.proven.remove(name)
        request = self.left.pop(name, None)
        self.hire(request)
        return request is not None and read_history([self._crew.history_of(name)]).unanswered > 0

    def _give(self, name: str, request: str) -> None:
        self.left[name] = request
        self._crew.say(name, request)

    def _note(self, name: str, line: str) -> None:
        key, number = line.split()
        request = self.left.pop(name)
        assert request.split()[0] == key
        self.answered[request] = int(number)
        self.proven.add(name)


def transfer_under_kills(url: str, folder: Path, transfers: int, kills: int) -> None:
    """Let workers transfer, and kill one now and then, until enough was done and enough kills hit a request."""
    with closing(open_store(url)) as store:
        Teller(recorded(store, str(folder / "first.history"), "first")).open_accounts()
    killer = Killer(transfers, kills)
    with Crew("transfer", url, folder) as crew:
        desk = Desk(crew)
        for _ in range(WORKERS):
            desk.hire()
        while len(desk.answered) < transfers or killer.hits < kills:
            if killer.is_due(desk.take_answers(and_go_on=True)):
                killer.hits += desk.kill(killer.choose(sorted(desk.proven)))
        while desk.left:
            desk.take_answers(and_go_on=False)
    with closing(open_store(url)) as store:
        history = check_bank(store, folder, desk.answered)
    assert history.unanswered >= killer.hits >= kills
    assert history.outcomes["OUTCOME_UNKNOWN"] > 0


def check_bank(store: Store, folder: Path, answered: dict[str, int]) -> History:
    """Each request is in the book once, under the number that was answered, and the accounts agree with the book."""
    book = {item.value.decode(): int(item.id) for item in all_items(store, BOOK)}
    assert book == answered
    assert len(all_items(store, BOOK)) == len(book)
    balances = Counter(dict.fromkeys(ACCOUNTS, Teller.FIRST_BALANCE))
    for request in book:
        _, giver, taker, amount = request.split()
        balances[giver] -= int(amount)
        balances[taker] += int(amount)
    end = recorded(store, str(folder / "end.history"), "end")
    assert {item.id: counted(item.value) for item in all_items(end, BANK)} == balances
    teller = Teller(end)
    assert {request: teller.transfer(request) for request in list(book)[:20]}.items() <= book.items()
    assert len(all_items(store, BOOK)) == len(book)
    return check_history(folder.glob("*.history"))


def make_requests(prefix: str) -> Iterator[str]:
    random = Random(prefix)
    for n in count():
        giver, taker = random.sample(ACCOUNTS, 2)
        yield f"{prefix}-{n} {giver} {taker} {random.randint(1, 9)}"


def in_threads(work: Callable[[int], None]) -> None:
    """Let all workers run at once, with threads that take turns often."""
    failed: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(WORKERS)]
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual_s)
    if failed:
        raise failed[0]
