"""What is measured: each as a function that is called again and again, with how often it was."""

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from accord import api, errors
from accord.operations.context import local
from accord.place import PASSWORD_VARIABLE

RACE = "race"
NAMES = (RACE, "write", "read", "lock", "queue")

_SHARED = "counter"


class Job(NamedTuple):
    folder: str
    url: str  # without its password
    name: str
    calls: int  # of one worker; 0: any number
    duration_s: float  # 0: however long it takes


def run(job: Job, index: int, password: str) -> dict[str, Any]:
    """Do it so often or so long; when it began and ended, and the microseconds of each."""
    times = []
    with _open(job.folder, job.url, password) as home:
        once = _WORKLOADS[job.name](home, index)
        began = now = time.monotonic()
        for number in range(job.calls) if job.calls else itertools.count():
            once(number)
            before, now = now, time.monotonic()
            times.append(round((now - before) * 1e6))
            if job.duration_s and now - began > job.duration_s:
                break
    return {"began": began, "ended": now, "times": times}


def counted(folder: str, url: str, password: str) -> int:
    """How far the race has counted."""
    with _open(folder, url, password) as home:
        return int(home.doc.read(name=_SHARED)["text"])


def _open(folder: str, url: str, password: str) -> api.Accord:
    """With no settings but the defaults, whoever asks and wherever they are."""
    return api.Accord(local({"HOME": folder, PASSWORD_VARIABLE: password}, home=f"{folder}/home", engine=url))


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
