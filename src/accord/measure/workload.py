"""What is measured: each as a function that is called again and again, with how often it was."""

import itertools
import time
from collections.abc import Callable
from typing import Any

from accord import api, errors
from accord.operations.context import local

RACE = "race"
NAMES = (RACE, "write", "read", "lock", "queue")

_SHARED = "counter"


def run(folder: str, url: str, name: str, count: int, duration_s: float, index: int) -> dict[str, Any]:
    """Do it so often, 0: for so long; when it began and ended, and the microseconds of each."""
    times = []
    with _open(folder, url) as home:
        once = _WORKLOADS[name](home, index)
        began = now = time.monotonic()
        for number in range(count) if count else itertools.count():
            once(number)
            before, now = now, time.monotonic()
            times.append(round((now - before) * 1e6))
            if duration_s and now - began > duration_s:
                break
    return {"began": began, "ended": now, "times": times}


def counted(folder: str, url: str) -> int:
    """How far the race has counted."""
    with _open(folder, url) as home:
        return int(home.doc.read(name=_SHARED)["text"])


def _open(folder: str, url: str) -> api.Accord:
    """With no settings but the defaults, whoever asks and wherever they are."""
    return api.Accord(local({"HOME": folder}, home=f"{folder}/home", engine=url))


def _race(home: Any, index: int) -> Callable[[int], None]:
    """Read a number, add one, write it: whoever came second reads again."""

    def once(number: int) -> None:
        while True:
            try:
                found = home.doc.read(name=_SHARED)
            except errors.DocumentNotFound:
                found = {"text": "0", "revision": 0}
            try:
                home.doc.write(name=_SHARED, text=str(int(found["text"]) + 1), base=found["revision"])
                return
            except errors.Conflict:
                continue

    return once


def _write(home: Any, index: int) -> Callable[[int], None]:
    return lambda number: home.doc.write(name=f"w{index}/{number % 100}", text=f"{number} " * 50)


def _read(home: Any, index: int) -> Callable[[int], None]:
    for number in range(10):
        home.doc.write(name=f"r{index}/{number}", text=f"{number} " * 50)
    return lambda number: home.doc.read(name=f"r{index}/{number % 10}")


def _lock(home: Any, index: int) -> Callable[[int], None]:
    """One that nobody else wants, taken and given back."""

    def once(number: int) -> None:
        token = home.lock.acquire(name=f"l{index}", owner="bench")["token"]
        home.lock.release(name=f"l{index}", owner="bench", token=token)

    return once


def _queue(home: Any, index: int) -> Callable[[int], None]:
    """One that all share: pushed, popped, done."""

    def once(number: int) -> None:
        home.queue.push(queue="bench", payload=str(number))
        home.queue.done(queue="bench", receipt=home.queue.pop(queue="bench")["receipt"])

    return once


_WORKLOADS = {RACE: _race, "write": _write, "read": _read, "lock": _lock, "queue": _queue}
