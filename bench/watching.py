"""A process commits, a millisecond apart, and another watches: when does it notice?

Counted from the moment at which the writer was told that its commit is durable; less than nothing means that the
watcher knew first. Then the watcher waits while nothing happens.
"""

import sys
import time
from dataclasses import dataclass
from itertools import pairwise

from accord.store.contract import Put
from accord.store.open import open_store
from bench import large, place, progress
from bench.processes import answer, run_together, wait_for_start
from bench.row import COUNT, MILLISECONDS, PERCENT, Row
from bench.sizes import Sizes

COLLECTION = "watched"
_GIVE_UP_S = 20.0


@dataclass(frozen=True)
class Watched:
    latencies_ms: list[float]
    faults: int  # changes missed, given twice or out of order
    idle_percent: float  # of a core


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    return [row for engine in large.ENGINES for row in _measure_engine(engine, rounds, sizes)]


def _measure_engine(engine: str, rounds: int, sizes: Sizes) -> list[Row]:
    runs = []
    for number in range(1, rounds + 1):
        progress.show(f"round {number} of {rounds}: {engine}, {sizes.watched:,} commits")
        runs.append(_run(engine, sizes))
    latencies_ms = [latency for run in runs for latency in run.latencies_ms]
    faults = [run.faults for run in runs]
    return [
        Row(f"{engine}: noticed after", MILLISECONDS, latencies_ms, 2),
        Row(f"{engine}: of {sizes.watched:,} commits missed, twice or out of order", COUNT, faults, 0, always=True),
        Row(f"{engine}: CPU of an idle watcher, of one core", PERCENT, [run.idle_percent for run in runs], 0.5),
    ]


def _run(engine: str, sizes: Sizes) -> Watched:
    with place.folder() as folder:
        url = f"{engine}:{folder}/store"
        open_store(url).close()
        count = str(sizes.watched)
        commands = [
            ["bench.watching", "write", url, count, str(sizes.watched_pause_s)],
            ["bench.watching", "watch", url, count, str(sizes.idle_s)],
        ]
        written, (noticed, idle_percent) = run_together(commands, {})
    acknowledged_at = dict(written)
    order = [revision for revision, _ in noticed]
    latencies_ms = [(at - acknowledged_at[revision]) / 1e6 for revision, at in noticed if revision in acknowledged_at]
    return Watched(latencies_ms, faults(list(acknowledged_at), order), idle_percent)


def faults(written: list[int], noticed: list[int]) -> int:
    """How far what was noticed is from what was written, in order and once."""
    missed = len(set(written) - set(noticed))
    twice = len(noticed) - len(set(noticed))
    strange = len(set(noticed) - set(written))
    disorder = sum(after < before for before, after in pairwise(noticed))
    return missed + twice + strange + disorder


def write(url: str, count: int, pause_s: float) -> None:
    """Commit, and answer the revision and the time of each."""
    store = open_store(url)
    wait_for_start()
    done = []
    for number in range(count):
        committed = store.commit((), [Put(COLLECTION, f"k{number % 100}", b"%d" % number)])
        done.append((committed.revision, time.monotonic_ns()))
        time.sleep(pause_s)
    answer(done)


def watch(url: str, count: int, idle_s: float) -> None:
    """Watch, answer the revision and the time of each change, and the CPU of waiting afterwards."""
    store = open_store(url)
    noticed: list[tuple[int, int]] = []  # revision, and when
    with store.watch([COLLECTION], since=0) as changes:
        wait_for_start()
        while len(noticed) < count and (change := changes.next(_GIVE_UP_S)) is not None:
            noticed.append((change.revision, time.monotonic_ns()))
        cpu_s, start = time.process_time(), time.monotonic()
        while (left_s := start + idle_s - time.monotonic()) > 0:
            if (change := changes.next(left_s)) is not None:
                noticed.append((change.revision, time.monotonic_ns()))
        idle_percent = (time.process_time() - cpu_s) / idle_s * 100
    answer((noticed, idle_percent))


def main() -> None:
    role, url, count, seconds = sys.argv[1:]
    {"write": write, "watch": watch}[role](url, int(count), float(seconds))


if __name__ == "__main__":
    main()
