"""A process that acquires a lock and releases it, again and again, and says how it went."""

import sys
import time
from dataclasses import dataclass

import accord
from bench import place, preload
from bench.processes import answer, run_together, wait_for_start

LOCK = "build"


@dataclass(frozen=True)
class Held:
    """What one process did."""

    pairs: int  # of acquire and release
    took_s: float  # from the common start to the last release
    waits_s: list[float]  # of each acquire


@dataclass(frozen=True)
class Run:
    held: list[Held]  # one of each process
    lost: int  # grants that are not among the numbers of the lock, or too many there


def run(processes: int, pairs: int, seconds: float = 3600.0, flush: str = "") -> Run:
    """Let processes acquire and release one lock so often each, or for `seconds`; `flush` is one of `preload`."""
    with place.folder() as folder:
        home = f"{folder}/home"
        with accord.open(home) as opened:
            opened.lock.list()
        commands = [["bench.locker", home, str(pairs), str(seconds), f"p{n}"] for n in range(processes)]
        held = [Held(*reply) for reply in run_together(commands, preload.environment(flush) if flush else {})]
        with accord.open(home) as opened:
            last = opened.lock.acquire(name=LOCK, owner="last")["token"]
    return Run(held, abs(last - 1 - sum(one.pairs for one in held)))


def main() -> None:
    home, pairs, seconds, name = sys.argv[1:]
    opened = accord.open(home)
    opened.lock.list()
    most = int(pairs)
    start_at = wait_for_start()
    end_at = start_at + float(seconds)
    waits_s: list[float] = []
    now = time.monotonic()
    while len(waits_s) < most and now < end_at:
        lock = opened.lock.acquire(name=LOCK, owner=name)
        waits_s.append(time.monotonic() - now)
        opened.lock.release(name=LOCK, owner=name, token=lock["token"])
        now = time.monotonic()
    answer([len(waits_s), now - start_at, waits_s])


if __name__ == "__main__":
    main()
