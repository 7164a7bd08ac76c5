"""An agent takes the next task from a small board and from a large one, through `accord.open()`, and gives it back or
does it. Half of the tasks are ready; of the others some wait, some are blocked, some are done. What is timed is taking
it, a durable commit. In brackets stands the time on the large board.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import accord
from accord.services import tasks
from accord.store.contract import Item
from accord.store.open import open_store
from accord.store.transaction import Transaction, transact
from bench import place, progress
from bench.rounds import interleave, ratios
from bench.row import MICROSECONDS, TIMES_AS_LONG, Row
from bench.sizes import Sizes

if TYPE_CHECKING:
    from accord.api import Accord
    from accord.store.contract import Content

MOST = 2.0
AGENT = "ann"
_AT = "2026-01-01T00:00:00.000Z"
_ADDED_AT_ONCE = 8


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    boards = {count: _open_board(count) for count in (sizes.small, sizes.tasks)}
    rows = [
        _row(
            f"{sizes.tasks:,} tasks against {sizes.small:,}: {what}",
            rounds,
            [partial(step, one) for one in boards.values()],
        )
        for what, step in {
            "`task next`, then release": partial(_steps, times=sizes.reads, end=_release),
            "`task next`, then done": partial(_steps, times=sizes.reads, end=_finish),
        }.items()
    ]
    for opened in boards.values():
        opened.close()
    return rows


def _row(what: str, rounds: int, runs: "list[Callable[[], float]]") -> Row:
    little_us, big_us = interleave(
        rounds, {f"{what}, {size}": run for size, run in zip("sl", runs, strict=True)}
    ).values()
    return Row(what, TIMES_AS_LONG, ratios(big_us, little_us), MOST, note=MICROSECONDS.text(median(big_us)))


def _steps(home: "Accord", times: int, end: "Callable[[Accord, str], object]") -> float:
    """How long taking a task takes, in microseconds; not what follows."""
    took = 0.0
    for _ in range(times):
        start = time.perf_counter()
        id = home.task.next(agent=AGENT)["id"]
        took += time.perf_counter() - start
        end(home, id)
    return took / times * 1e6


def _release(home: "Accord", id: str) -> None:
    home.task.release(id=id, agent=AGENT)


def _finish(home: "Accord", id: str) -> None:
    """And another is added, so that there are always as many."""
    home.task.done(id=id, agent=AGENT)
    home.task.add(title="another")


def _open_board(count: int) -> "Accord":
    folder = place.kept(f"tasks {count}")
    progress.show(f"making {count:,} tasks")
    url = f"sqlite:{folder}/store.db"
    store = open_store(url)
    store.load(_contents(count))
    store.close()
    return accord.open(folder, engine=url)


def _contents(count: int) -> "Iterator[Content]":
    """What adding them one by one would leave behind, made on a board in memory and copied."""
    memory = open_store("memory:")
    for first in range(1, count + 1, _ADDED_AT_ONCE):
        transact(memory, partial(_add_some, range(first, min(first + _ADDED_AT_ONCE, count + 1))))
    with memory.snapshot() as snapshot:
        for collection in snapshot.collections(limit=100):
            yield collection, snapshot.head(collection).last, _items(snapshot, collection)
    memory.close()


def _add_some(numbers: "range", tx: Transaction) -> None:
    for number in numbers:
        id = f"t{number}"
        kind = number % 8
        tasks.add(tx, f"task {number}", _AT, id, after=["t1"] if kind in (2, 3) else ())
        if kind == 1:
            tasks.block(tx, id, "no reason")
        elif kind == 5:
            tasks.done(tx, id, _AT)


def _items(snapshot: "Any", collection: str) -> "Iterator[Item]":
    after = ""
    while page := snapshot.list(collection, after, 1000):
        yield from page
        after = page[-1].id
